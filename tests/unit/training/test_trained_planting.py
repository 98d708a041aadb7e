"""Trained cases: their truth proved again by other means, the same from the same seed, counted."""

import pickle
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import expit, logit

from heedful.core.errors import ConfigError, UnknownName
from heedful.planted import TRAINED_KINDS, TRAINED_LENGTHS, TrainedCase, trained_cases
from heedful.planted.texts import CUE_WORDS, PlantedSubject
from heedful.planted.trained import case as module
from heedful.planted.trained.bounds import BOUNDS, TextMeasurement, evaluate_bounds, measure_texts
from heedful.planted.trained.kinds import TrainedKind
from heedful.planted.trained.train import build_untrained, freeze_float64
from support.planted_cases import SEED, trained

TRUTH = {  # committed before any rule was held against it: used, ranks, exclusive
    "trained-peaked": (True, True, True),
    "trained-graded": (True, True, None),
    "trained-beside": (True, False, None),
    "trained-away": (None, False, None),
    "trained-leaky": (False, False, False),
    "trained-late": (False, None, False),
}
USUALLY = {"trained-peaked", "trained-away"}
DOCS = Path(__file__).parents[3] / "docs" / "planted.md"


every_kind = pytest.mark.parametrize("kind", TRAINED_KINDS)


def test_the_truth_is_the_one_committed():
    assert tuple(TRUTH) == tuple(TRAINED_KINDS)
    for kind, truth in TRUTH.items():
        assert tuple(trained(kind).truth.values()) == truth
        why = TRAINED_KINDS[kind].train.__doc__.lower()
        assert all(
            claim in why for claim, is_so in trained(kind).truth.items() if is_so is not None
        )
        said = " | ".join({True: "yes", False: "no", None: "·"}[one] for one in truth)
        assert f"| {kind} | {said} |" in DOCS.read_text(encoding="utf-8")


@every_kind
def test_what_is_proved_holds_on_the_texts_of_an_audit(kind):
    case = trained(kind)
    rows = case.texts(16)
    assert not {row["text"] for row in rows} & set(case.accepted_attempt.texts)
    held = evaluate_bounds(
        measure_texts(case.accepted_attempt.plant, [row["text"] for row in rows]), case.truth
    )
    assert len(held) == len(case.accepted_attempt.proof)
    assert sum(one.holds for one in held) >= len(held) - 1  # the worst text of others may be worse
    assert {row["label"] for row in rows} == {"negative", "positive"}


@pytest.mark.parametrize(
    "kind",
    [  # one without context and one with it; the others with the studies
        pytest.param(kind, marks=() if kind in USUALLY else pytest.mark.study)
        for kind in TRAINED_KINDS
    ],
)
def test_the_same_seed_gives_the_same_weights(kind):
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    same, subject = TrainedCase(kind, 10, SEED), trained(kind).subject
    one, two = (s.network.state_dict() for s in (subject, same.subject))
    assert list(one) == list(two)
    for name, weight in one.items():
        assert weight.numpy().tobytes() == two[name].numpy().tobytes()
    assert same.texts(3) == trained(kind).texts(5)[:3]
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    assert not any(weight.requires_grad for weight in subject.network.parameters())


def test_another_seed_gives_other_weights_and_texts():
    one, other = trained("trained-peaked"), TrainedCase("trained-peaked", 10, SEED + 1)
    assert one.subject.fingerprint() != other.subject.fingerprint()
    assert one.texts(3) != other.texts(3)


def untaught(setting):
    return PlantedSubject(freeze_float64(build_untrained(setting, "average")), CUE_WORDS)


def test_what_fails_its_proof_is_drawn_again_and_counted(monkeypatch):
    taught = TRAINED_KINDS["trained-peaked"].train

    def badly_at_first(setting):
        return taught(setting) if setting.attempt else untaught(setting)

    kind = TrainedKind(TRAINED_KINDS["trained-peaked"].truth, badly_at_first)
    monkeypatch.setattr(module, "TRAINED_KINDS", {"trained-peaked": kind})
    again = TrainedCase("trained-peaked", 10, SEED)
    assert again.redrawn == 1
    assert not again.accepted_attempt.broken
    assert again.subject.fingerprint() != trained("trained-peaked").subject.fingerprint()


def test_a_truth_that_no_training_keeps_is_an_error(monkeypatch):
    kind = TrainedKind(TRAINED_KINDS["trained-peaked"].truth, untaught)
    monkeypatch.setattr(module, "TRAINED_KINDS", {"trained-peaked": kind})
    monkeypatch.setattr(module, "MAX_ATTEMPTS", 2)
    with pytest.raises(ConfigError, match=r"None of 2 trainings.*smallest of.*Choose another"):
        TrainedCase("trained-peaked", 10, SEED).texts(1)


def of_text(weights, moved, said, z):
    return TextMeasurement(*(np.array(one) for one in (weights, moved, said)), z)


def test_figures_of_a_text_by_hand():
    one = of_text([0.5, 0.3, 0.2], [2.0, 0.1, 0.5], [3.0, 0.0, -1.0], 1.0)
    assert one.max_change == pytest.approx(expit(1.0) - expit(-1.0))
    assert one.tau == pytest.approx(1 / 3)  # of three pairs the last two words' is the other way
    assert one.in_order == (2, 2)  # 0.3 and 0.2 are not far enough apart to count
    assert one.effect_ratio == pytest.approx(4.0)
    assert one.top_agrees
    assert one.elsewhere == pytest.approx(1 - logit(expit(1.0) - 0.05) / 3.0)
    assert of_text([0.5, 0.5], [1.0, 0.0], [1.0, 1.0], 1.0).elsewhere == 1.0


def test_every_bound_can_fail():
    opposite = {
        "used": of_text([0.6, 0.4], [1.0, 0.1], [1.0, 1.0], 1.0),
        "ranks": of_text([0.6, 0.3], [0.5, 1.0], [1.0, 1.0], 1.0),
        "exclusive": of_text([0.5, 0.5], [1.0, 0.1], [1.0, 1.0], 1.0),
    }
    agreeing = of_text([0.7, 0.3], [1.0, 0.9], [4.0, -4.0], 1.6)
    for (claim, truth), bounds in BOUNDS.items():
        held = [bound.evaluate([opposite[claim] if truth else agreeing]) for bound in bounds]
        assert not any(one.holds for one in held)
        assert all("must be at" in str(one) for one in held)
    equal = of_text([0.5, 0.5], [1.0, 0.1], [1.0, 1.0], 1.0)
    assert not BOUNDS["ranks", True][1].evaluate([equal]).holds  # no pair is far apart: no figure


def test_cases_take_turns():
    made = trained_cases(3, 12)
    assert [one.kind for one in made] == [*TRAINED_KINDS, *TRAINED_KINDS]
    assert {(one.kind, one.length) for one in made} == {
        (kind, length) for kind in TRAINED_KINDS for length in TRAINED_LENGTHS
    }
    assert trained_cases(3, 5) == made[:5]
    assert trained_cases(4, 5) != made[:5]
    assert all(one.seed != other.seed for one, other in pairwise(made))


def test_what_is_not_there_is_refused():
    with pytest.raises(UnknownName, match=r"'trained-shy'.*Known: trained-peaked"):
        trained_cases(0, 1, ["trained-shy"])
    with pytest.raises(ConfigError, match="No kinds were given"):
        trained_cases(0, 1, [])
    with pytest.raises(ConfigError, match="got 200"):
        TrainedCase("trained-late", 200, 0)


def test_a_case_that_was_trained_can_be_sent_to_another_process():
    case = trained("trained-peaked")
    assert not case.accepted_attempt.broken
    sent = pickle.loads(pickle.dumps(case))
    assert sent == case
    assert sent.accepted_attempt.proof == case.accepted_attempt.proof
    assert sent.subject.fingerprint() == case.subject.fingerprint()
