"""Every check that votes convicts the guilty and acquits the innocent."""

import numpy as np
import pytest
import torch

import heedful
from heedful.checks import checks
from heedful.checks.faithfulness.removal import ItemView, RemovalMetrics, Removals
from heedful.checks.faithfulness.soft_erasure import SoftErasureMetrics
from heedful.methods import methods
from heedful.models.batch_context import BatchContext
from heedful.numerics.stats.bootstrap import estimate_means
from heedful.planted.hand_built import draw_texts, hand_built_subjects

# truth by construction: claim → answer
TRUTH = {
    "honest-peaked": {"used": "supported", "ranks": "supported"},
    "honest-graded": {"used": "supported", "ranks": "supported"},
    "inert-random": {"used": "refuted", "ranks": "refuted"},
    "inert-proportional": {"used": "refuted", "ranks": "supported"},
}
ANSWERS = {  # attention must rank words and be used
    "honest-peaked": "faithful",
    "honest-graded": "faithful",
    "inert-random": "unfaithful",
    "inert-proportional": "unfaithful",
}


def test_every_planted_kind_has_its_truth():
    assert set(TRUTH) == set(ANSWERS) == set(hand_built_subjects)


@pytest.mark.parametrize("kind", TRUTH)
@pytest.mark.parametrize("seed", [0, 1])
def test_planted_subjects_get_their_verdict(kind, seed):
    subject = hand_built_subjects.build(kind) if seed == 0 else hand_built_subjects[kind](seed=seed)
    rows = [
        {"text": one.text, "label": subject.labels[one.label]}
        for one in draw_texts(subject, 100, seed=seed)
    ]
    settings = {"influence": {"methods": ["attention"]}}
    verdict = heedful.audit(
        subject, rows, checks=["influence"], settings=settings, seed=seed
    ).verdict
    assert {claim: verdict.claims[claim].answer for claim in TRUTH[kind]} == TRUTH[kind]
    assert verdict.answer == ANSWERS[kind]


def erasure(kind, seed=0):
    subject = hand_built_subjects[kind](seed=seed)
    rows = [
        {"text": e.text, "label": subject.labels[e.label]}
        for e in draw_texts(subject, 200, seed=seed)
    ]
    return heedful.audit(subject, rows, checks=["erasure"], seed=seed).verdict.checks["erasure"]


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("kind", ["honest-peaked", "honest-graded"])
def test_honest_attention_flips_decisions_with_few_words(kind, seed):
    found = erasure(kind, seed).estimates
    least, own, chance = (
        found[f"fraction_to_flip_{name}"] for name in ("optimal", "attention", "random")
    )
    # attention does not know which side a word is on, so it is not the optimum itself
    assert own.high < (least.value + chance.value) / 2
    assert found["can_flip"].value == 1.0
    assert found["flip_top"].low > found["flip_random"].high
    assert found["js_top_minus_random"].low > 0
    # two classes and no bias: each term is a weight times its gradient
    assert found["fraction_to_flip_attention_x_gradient"] == least


@pytest.mark.parametrize("kind", ["inert-random", "inert-proportional"])
def test_inert_attention_flips_nothing(kind):
    found = erasure(kind)
    assert found.estimates["can_flip"].value == found.estimates["flip_top"].value == 0.0
    assert found.estimates["can_flip"].high == found.estimates["flip_top"].high < 0.02  # of 200
    assert found.estimates["fraction_to_flip_attention"].n == 0
    assert found.undefined["fraction_to_flip_optimal"] == 200


@pytest.mark.parametrize("kind", TRUTH)
def test_words_of_honest_attention_move_the_output_beyond_chance_and_random_ones_do_not(kind):
    """By every way, dimmed too; orders drawn at random do as random orders do."""
    subject, seed = hand_built_subjects[kind](seed=0), 4
    encoded = [subject.encode(one) for one in draw_texts(subject, 120, seed=seed)]
    check = checks.build("faithfulness", methods=("random",), orders=6)
    found = {"attention": [], "random": [], "soft": []}
    with torch.no_grad():
        for start in range(0, 120, 40):
            batch = subject.batch(encoded[start : start + 40])
            words = ItemView(BatchContext(subject, batch, seed=seed))
            scores, _ = check.scores(words)
            drawn = methods.build("random")(words.context, words.context.predicted).scores
            both = torch.stack([scores[0], words.joined(drawn.double(), "sum"), scores[-1]])
            trials = [
                RemovalMetrics(Removals(words, way), both, check.chance(words), check.bins, 1)
                for way in check.ways
            ]
            beyond = torch.stack([one.columns()["beyond_random"] for one in trials]).mean(0)
            found["attention"] += [beyond[0].numpy()]
            found["random"] += [beyond[1].numpy()]
            soft = SoftErasureMetrics(words, scores, 10).columns()["soft_beyond_random"]
            found["soft"] += [soft[0].numpy()]
    intervals = estimate_means({name: np.concatenate(one) for name, one in found.items()})
    assert intervals["random"].low < 0 < intervals["random"].high
    if TRUTH[kind]["ranks"] == "supported":
        assert intervals["attention"].low > 0
        assert intervals["soft"].low > 0
    else:
        assert intervals["attention"].low < 0 < intervals["attention"].high
