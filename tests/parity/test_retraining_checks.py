"""What the checks that retrain measure, against plain loops over the texts."""

import copy
import json
import math
from dataclasses import replace
from zlib import crc32

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from heedful.checks import checks
from heedful.checks.retraining.deception.check import attention_mass
from heedful.checks.retraining.hidden_word_marks import mark_hidden_words
from heedful.checks.retraining_base import RetrainingContext
from heedful.core.batch import collate
from heedful.core.errors import ConfigError
from heedful.core.rng import generator
from heedful.methods import methods
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.erased_words import get_mask_embedding
from heedful.training.loop.epochs import EarlyStopping
from heedful.training.loop.predictions import predict_all
from heedful.training.objectives import BatchOutput, DistillationObjective
from heedful.training.variants.texts import (
    EncodedTexts,
    HiddenWords,
    RandomMasks,
    mask_random_words,
    masking_token_id,
)
from heedful.training.variants.variants import (
    AdversaryVariant,
    RetrainedVariant,
    ShuffledLabelsVariant,
    TrainedVariant,
    WithoutWordsVariant,
    variant_from_dict,
    variant_to_dict,
)
from support import measured_values
from support.reference_removal import grouped
from support.retraining import base, data

PACE = {"epochs": 3, "patience": 3}
CUES = HiddenWords("rationale")


class Made:
    """Subjects by lesson, made up: other weights of the base's own kind, drawn by the lesson."""

    def __call__(self, variant):
        subject = base()
        network = type(subject.network)(subject.network.shape).double()
        draw = torch.Generator().manual_seed(crc32(str(variant).encode()))
        with torch.no_grad():
            for one in network.parameters():
                one.copy_(torch.randn(one.shape, generator=draw).double() * 0.5)
        return TrainedVariant(replace(subject, network=network.requires_grad_(False)), {})


@pytest.fixture(scope="module")
def trial():
    subject = base()
    texts, dev = (
        EncodedTexts(subject, list(data(*one)), 1, mark_hidden_words)
        for one in (("test", 25), ("dev", 15))
    )
    made, kept = Made(), {}

    def trained(variant):
        if variant not in kept:
            kept[variant] = made(variant)
        return kept[variant]

    return RetrainingContext(subject, texts, dev, trained, seed=3)


def one_by_one(subject, texts):
    """Output and attention of each text on its own, in plain lists."""
    found = []
    for one in texts.encoded:
        forward = subject.forward(collate([one]))
        found.append((forward.probabilities[0].tolist(), forward.attention[0].tolist()))
    return found


def plain_jsd(p, q):
    total = 0.0
    for a, b in zip(p, q, strict=True):
        middle = (a + b) / 2
        total += 0.5 * (a * math.log(a / middle) if a else 0.0)
        total += 0.5 * (b * math.log(b / middle) if b else 0.0)
    return total


def columns(check, trial, **settings):
    return measured_values.columns(checks.build(check, **settings).examine(trial))


def test_necessity(trial):
    found = columns("necessity", trial, seeds=2, **PACE)
    gold = [one.label for one in trial.texts.encoded]
    arms = {"score_trained": "own", "score_uniform": "uniform"}
    means = {}
    for measure, attention in arms.items():
        rows = []
        for seed in (1, 2):
            subject = trial.trained(RetrainedVariant(seed, attention, EarlyStopping(3, 3))).subject
            right = [
                float(output.index(max(output)) == label)
                for (output, _), label in zip(one_by_one(subject, trial.texts), gold, strict=True)
            ]
            assert found[f"{measure}[seed {seed}]"].tolist() == right
            rows.append(right)
        means[measure] = [sum(pair) / 2 for pair in zip(*rows, strict=True)]
        assert found[measure].tolist() == pytest.approx(means[measure])
    wanted = [a - b for a, b in zip(*means.values(), strict=True)]
    assert found["gain"].tolist() == pytest.approx(wanted)


def test_the_swap_is_the_mean_of_the_words_contributions(trial):
    found = columns("necessity", trial, seeds=2, **PACE)["uniform_swap_tvd"]
    subject = trial.base
    for row, one in enumerate(trial.texts.encoded):
        batch = collate([one])
        forward = subject.forward(batch)
        decoder = subject.decoder(batch, forward)
        words = [t for t, word in enumerate(one.word) if word >= 0]
        z = float(decoder.bias[1]) + sum(
            float(decoder.contributions[0, t, 1]) for t in words
        ) / len(words)
        moved = abs(1 / (1 + math.exp(-z)) - float(forward.probabilities[0, 1]))
        assert float(found[row]) == pytest.approx(moved, abs=1e-6)


def test_no_seed_is_the_base_models_own(trial):
    for own, wanted in ((0, [1, 2, 3]), (1, [2, 3, 4]), (3, [1, 2, 4]), (9, [1, 2, 3])):
        other = replace(trial, base_seed=own)
        assert other.seeds(3) == wanted
        for check in ("necessity", "seeds"):
            made = checks.build(check, seeds=3, **PACE).variants(other)
            assert {one.seed for one in made if isinstance(one, RetrainedVariant)} == set(wanted)


def test_seeds(trial):
    found = columns("seeds", trial, seeds=3, adversary=0.5, shuffles=4, **PACE)
    own = one_by_one(trial.base, trial.texts)
    each = []
    for seed in (1, 2, 3):
        other = one_by_one(
            trial.trained(RetrainedVariant(seed, pace=EarlyStopping(3, 3))).subject, trial.texts
        )
        each.append([plain_jsd(a[1], b[1]) for a, b in zip(other, own, strict=True)])
        assert found[f"jsd_seeds[seed {seed}]"].tolist() == pytest.approx(each[-1], abs=1e-7)
    middle = [sorted(three)[1] for three in zip(*each, strict=True)]
    assert found["jsd_seeds"].tolist() == pytest.approx(middle, abs=1e-7)
    variant = AdversaryVariant(0.5, pace=EarlyStopping(6, 6))
    far = one_by_one(trial.trained(variant).subject, trial.texts)
    apart = [plain_jsd(a[1], b[1]) for a, b in zip(far, own, strict=True)]
    wanted = [a - b for a, b in zip(apart, middle, strict=True)]
    assert found["jsd_adversary_beyond_seeds"].tolist() == pytest.approx(wanted, abs=1e-7)
    even = [plain_jsd(a, [0.0, *([1 / (len(a) - 2)] * (len(a) - 2)), 0.0]) for _, a in own]
    assert found["jsd_uniform"].tolist() == pytest.approx(even, abs=1e-7)
    assert found["max_attention"].tolist() == pytest.approx([max(a) for _, a in own])
    assert (found["jsd_shuffled"] <= math.log(2)).all()


def test_adversary(trial):
    settings = {"weights": (0.5, 2.0), "starts": ("scratch",), "epochs": 6, "patience": 6}
    found = columns("adversary", trial, **settings)
    own, gold = one_by_one(trial.base, trial.texts), [one.label for one in trial.texts.encoded]
    for weight in (0.5, 2.0):
        variant = AdversaryVariant(weight, "scratch", pace=EarlyStopping(6, 6))
        other, setting = (
            one_by_one(trial.trained(variant).subject, trial.texts),
            f"λ {weight:g}, scratch",
        )
        moved = [abs(a[0][1] - b[0][1]) for a, b in zip(other, own, strict=True)]
        assert found[f"tvd[{setting}]"].tolist() == pytest.approx(moved, abs=1e-6)
        apart = [plain_jsd(a[1], b[1]) for a, b in zip(other, own, strict=True)]
        assert found[f"jsd[{setting}]"].tolist() == pytest.approx(apart, abs=1e-7)
        right = [float((a[1] > a[0]) == bool(g)) for (a, _), g in zip(other, gold, strict=True)]
        assert found[f"score[{setting}]"].tolist() == right
    another = one_by_one(
        trial.trained(RetrainedVariant(1, pace=EarlyStopping(3, 3))).subject, trial.texts
    )
    moved = [abs(a[0][1] - b[0][1]) for a, b in zip(another, own, strict=True)]
    assert found["tvd_another_seed"].tolist() == pytest.approx(moved, abs=1e-6)


def test_deception_masses(trial):
    found = columns("deception", trial, weights=(1.0,), **PACE)
    own = one_by_one(trial.base, trial.texts)
    wanted = []
    for (_, weights), one, example in zip(
        own, trial.texts.encoded, trial.texts.examples, strict=True
    ):
        wanted.append(
            sum(w for w, word in zip(weights, one.word, strict=True) if word in example.rationale)
        )
    assert found["mass_before"].tolist() == pytest.approx(wanted, abs=1e-7)
    lost = found["score_before"] - found["score_after"]
    assert found["score_lost"].tolist() == lost.tolist()


def test_masses_are_undefined_where_nothing_or_everything_is_hidden(trial):
    marks = [torch.zeros(len(one.ids), dtype=torch.bool) for one in trial.texts.encoded]
    marks[0] = torch.tensor(trial.texts.encoded[0].word) >= 0
    marks[1][1] = True
    seen = predict_all(trial.base, trial.texts.encoded, keep_rows=True)
    found = attention_mass(seen, marks, trial.texts)
    assert np.isnan(found[0])
    assert np.isnan(found[2:]).all()
    assert 0 < found[1] < 1


@pytest.mark.parametrize("share", [0.1, 0.34])
def test_marks_by_saliency_are_the_words_that_deletion_moves_most(trial, share):
    texts = trial.texts
    marks = mark_hidden_words(
        HiddenWords("saliency", share=share), trial.base, texts.examples, texts.encoded, {}
    )
    for one, marked in zip(texts.encoded[:6], marks, strict=False):
        before = trial.base.forward(collate([one])).probabilities[0]
        target = int(before.argmax())
        effect = {}
        for place in range(1, len(one.ids) - 1):
            ids = one.ids[:place] + one.ids[place + 1 :]
            shorter = replace(one, ids=ids, word=one.word[:place] + one.word[place + 1 :])
            after = trial.base.forward(collate([shorter])).probabilities[0]
            effect[place] = abs(float(before[target] - after[target]))
        count = max(1, math.ceil(share * len(effect)))
        top = sorted(effect, key=effect.get, reverse=True)[:count]
        assert sorted(marked.nonzero().flatten().tolist()) == sorted(top)


def test_marks_by_a_list_know_no_case_and_hide_words_whole(trial):
    from heedful.core.batch import Encoded
    from heedful.core.values import Example

    one = Encoded(0, 1, (9, 1, 2, 3, 9), (-1, 0, 0, 1, -1), ("Unlike", "it"))
    (found,) = mark_hidden_words(
        HiddenWords("list", ("unlike",)), trial.base, [Example(0, "", 1)], [one], {}
    )
    assert found.tolist() == [False, True, True, False, False]


def test_labels(trial):
    network = copy.deepcopy(trial.base.network).double()  # ranks must not hang on rounding
    trial = replace(trial, base=replace(trial.base, network=network))
    asked = ("gradient", "leave_one_out")
    check = checks.build("labels", seeds=2, methods=asked, **PACE)
    found = columns("labels", trial, seeds=2, methods=asked, **PACE)
    assert check.variants(trial) == [
        *(ShuffledLabelsVariant(seed, EarlyStopping(3, 3)) for seed in (1, 2)),
        *(RetrainedVariant(seed, "own", EarlyStopping(3, 3)) for seed in (1, 2)),
    ]
    arms = {"rank_correlation": "shuffled labels, seed", "with_labels": "own attention, seed"}
    for name in ("attention", *asked):
        means = {}
        for arm, told in arms.items():
            each = []
            for seed in (1, 2):
                other = trial.trained(f"{told} {seed}").subject
                rows = [rho(trial.base, other, one, name) for one in trial.texts.encoded]
                np.testing.assert_allclose(found[f"{arm}[{name}, seed {seed}]"], rows, atol=1e-9)
                each.append(rows)
            means[arm] = np.mean(each, axis=0)
            np.testing.assert_allclose(found[f"{arm}[{name}]"], means[arm], atol=1e-9)
        learned = means["with_labels"] - means["rank_correlation"]
        np.testing.assert_allclose(found[f"learned[{name}]"], learned, atol=1e-9)
    assert set(map(measured_values.plain, found)) == measured_values.measures(checks.spec("labels"))


def rho(base, other, one, name):
    """Spearman's, of two models' scores of one text for the class that the first predicts."""
    batch = collate([one])
    target = BatchContext(base, batch).predicted
    both = [
        methods.build(name)(BatchContext(model, batch, seed=3), target)
        .scores[0, 1:-1]
        .abs()
        .tolist()
        for model in (base, other)
    ]
    return spearmanr(*map(grouped, both)).statistic


def words_gone(subject, one, name, share):
    """The places of the words with the largest scores, never all of them."""
    context = BatchContext(subject, collate([one]))
    scores = methods.build(name)(context, context.predicted).scores[0].abs().tolist()
    places = [t for t, word in enumerate(one.word) if word >= 0]
    count = min(max(1, math.ceil(round(share * len(places), 9))), len(places) - 1)
    return sorted(places, key=lambda t: -scores[t])[:count]


def test_roar(trial):
    asked, shares = ("attention", "leave_one_out", "rollout"), (0.1, 0.4)
    check = checks.build("roar", methods=asked, shares=shares, seeds=2, **PACE)
    findings = check.examine(trial)
    found = measured_values.columns(findings)
    right = {}
    for name in ("attention", "leave_one_out", "random"):
        for share in shares:
            hidden = HiddenWords("saliency", method=name, share=share)
            for seed in (1, 2):
                subject = trial.trained(
                    WithoutWordsVariant(hidden, seed, EarlyStopping(3, 3))
                ).subject
                column = []
                for one in trial.texts.encoded:
                    gone = words_gone(trial.base, one, name, share)
                    left = [t for t in range(len(one.ids)) if t not in gone]
                    shorter = replace(
                        one,
                        ids=tuple(one.ids[t] for t in left),
                        word=tuple(one.word[t] for t in left),
                    )
                    output = subject.forward(collate([shorter])).logits[0].tolist()
                    column.append(float(output.index(max(output)) == one.label))
                assert found[f"score[{name}, seed {seed}, share {share}]"].tolist() == column
                right[name, share, seed] = np.array(column)
    for name in ("attention", "leave_one_out", "random"):
        mine = np.mean([one for key, one in right.items() if key[0] == name], axis=0)
        assert found[f"score[{name}]"] == pytest.approx(mine)
        chance = np.mean([one for key, one in right.items() if key[0] == "random"], axis=0)
        if name != "random":
            assert found[f"beyond_random[{name}]"] == pytest.approx(chance - mine)
        for seed in (1, 2):
            of_seed = (right[name, 0.1, seed] + right[name, 0.4, seed]) / 2
            assert found[f"score[{name}, seed {seed}]"] == pytest.approx(of_seed)
        for share in shares:
            of_share = (right[name, share, 1] + right[name, share, 2]) / 2
            assert found[f"score[{name}, share {share}]"] == pytest.approx(of_share)
    missing = measured_values.missing(findings)
    assert set(missing) == {"score[rollout]", "beyond_random[rollout]"}
    assert "several layers" in missing["score[rollout]"]
    assert set(map(measured_values.plain, found)) == measured_values.measures(checks.spec("roar"))


def test_roar_asks_for_every_model_once_and_for_methods_as_they_are_set(trial):
    lime = methods.build("lime", samples=16)
    check = checks.build("roar", methods=(lime, "rollout"), shares=(0.2,), seeds=2, **PACE)
    made = check.variants(trial)
    assert len(made) == len(set(made)) == 2 + 3 * 2  # whole texts; attention, lime and random
    hidden = {one.hidden.method: one.hidden for one in made if isinstance(one, WithoutWordsVariant)}
    assert hidden["lime"].settings == (("samples", 16),)
    assert hidden["attention"].settings == hidden["random"].settings == ()
    (variant,) = (one for one in made if str(one).endswith("lime ranks highest, seed 1"))
    assert variant_from_dict(json.loads(json.dumps(variant_to_dict(variant)))) == variant


def test_scores_are_asked_for_once_however_many_shares(trial):
    asked = []

    def counted(*given):
        asked.append(given[0].share)
        return mark_hidden_words(*given)

    texts = replace(trial.texts, mark=counted, hidden_cache={}, score_cache={})
    marks = [texts.hidden(HiddenWords("saliency", share=share)) for share in (0.1, 0.5, 0.1)]
    assert asked == [0.1, 0.5]
    assert list(texts.score_cache) == [("leave_one_out", ())]
    assert all((few <= many).all() for few, many in zip(marks[0], marks[1], strict=True))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"shares": ()}, "shares must be a list of numbers above 0 and below 1, at least one"),
        ({"shares": (0.5, 1.0)}, "shares must be a list of numbers above 0 and below 1"),
        ({"shares": (0.5, 0.5)}, "shares must differ"),
        ({"seeds": 1}, "seeds must be a whole number of at least 2"),
        ({"methods": ("nobody",)}, "No method is named 'nobody'"),
        ({"epochs": 0}, "epochs"),
    ],
)
def test_what_roar_cannot_do_is_refused(settings, told):
    with pytest.raises(ConfigError, match=told):
        checks.build("roar", **settings)


def masked_p(subject, one, gone, target):
    """p of a class, the vectors of these tokens zero."""
    batch = collate([one])
    x = subject.embed(batch).clone()
    x[0, list(gone)] = 0.0
    return float(subject.forward(batch, x).probabilities[0, target])


def test_off_manifold(trial):
    bins = (0.2, 0.5)
    check = checks.build("off_manifold", methods=(), bins=bins, orders=2, steps=2, **PACE)
    (variant,) = check.variants(trial)
    copy = trial.trained(variant).subject
    findings = check.examine(trial)
    found = measured_values.columns(findings)
    listed = {one.name for one in checks.spec("off_manifold").measures if one.kind != "p"}
    listed -= {"violation"}  # of signed methods
    assert {measured_values.plain(name) for name in found if "masking]" not in name} == listed
    assert not findings.missing
    for row, one in enumerate(trial.texts.encoded):
        own, other = (subject.forward(collate([one])) for subject in (trial.base, copy))
        target = int(own.probabilities[0].argmax())
        same = float(int(other.probabilities[0].argmax()) == target)
        assert found["same_prediction"][row] == same
        apart = 0.5 * float((own.probabilities[0] - other.probabilities[0]).abs().sum())
        assert found["copy_tvd"][row] == pytest.approx(apart)
        places = [t for t, word in enumerate(one.word) if word >= 0]
        order = sorted(places, key=lambda t: -float(own.attention[0, t]))  # that of the model
        chance = generator(3, "orders of faithfulness", one.content).random((2, len(places)))
        orders = [order, *([places[w] for w in (-keys).argsort()] for keys in chance)]
        sizes = [max(1, math.ceil(round(share * len(places), 9))) for share in bins]
        for subject, setting in ((copy, ""), (trial.base, ", masking")):
            full = masked_p(subject, one, [], target)
            losses = [
                np.mean([full - masked_p(subject, one, some[:size], target) for size in sizes])
                for some in orders
            ]
            mine = found[f"comprehensiveness[attention{setting}]"][row]
            assert mine == pytest.approx(losses[0], abs=1e-7)
            beyond = found[f"beyond_random[attention{setting}]"][row]
            assert beyond == pytest.approx(losses[0] - np.mean(losses[1:]), abs=1e-7)


def test_a_hole_is_what_masking_puts_in_the_place_of_a_word(trial):
    batch = collate([trial.texts.encoded[0]])
    blank = get_mask_embedding(BatchContext(trial.base, batch)).vector
    holed = mask_random_words(trial.texts.encoded[0], 5, 1, masking_token_id(trial.base))
    gone = [t for t, (a, b) in enumerate(zip(holed.ids, batch.ids[0], strict=True)) if a != b]
    assert gone
    vectors = trial.base.embed(collate([holed]))[0]
    assert all(torch.equal(vectors[t], blank) for t in gone)
    assert collate([holed]).present.all()


def test_holes_are_of_every_size_and_belong_to_seed_copy_and_text(trial):
    one = max(trial.texts.encoded, key=lambda text: text.explained_tokens)
    shares = []
    for number in range(1, 400):
        holed = mask_random_words(one, 0, number, 0)
        count = sum(a != b for a, b in zip(holed.ids, one.ids, strict=True))
        shares.append(count / one.explained_tokens)
        assert (holed.word, holed.label, holed.index) == (one.word, one.label, one.index)
    assert np.mean(shares) == pytest.approx(0.5, abs=0.06)
    assert {0.0, 1.0} <= set(shares)
    assert mask_random_words(one, 0, 1, 0) == mask_random_words(one, 0, 1, 0)
    assert mask_random_words(one, 0, 1, 0) != mask_random_words(one, 1, 1, 0)
    pieced = replace(one, ids=(9, 5, 6, 7, 9), word=(-1, 0, 0, 1, -1), words=("ab", "c"))
    for number in range(30):
        ids = mask_random_words(pieced, 0, number, 1).ids
        assert (ids[1] == 1) == (ids[2] == 1)  # the pieces of a word go together
    texts = RandomMasks(0, 2).masked_texts(trial.texts.encoded, 0)
    assert texts[: len(trial.texts.encoded)] == trial.texts.encoded
    assert len(texts) == 3 * len(trial.texts.encoded)
    with pytest.raises(ConfigError, match="copies must be a whole number of at least 1"):
        RandomMasks(copies=0)


def test_the_loss_of_an_echo_is_least_at_what_was_said(trial):
    batch = collate(trial.texts.encoded[:2])
    weights = torch.zeros(2, batch.ids.shape[1])
    said = torch.tensor([[0.9, 0.1], [0.3, 0.7]], dtype=torch.float64)
    echo, other = (
        DistillationObjective(said),
        torch.tensor([[0.2, 0.8], [0.3, 0.7]], dtype=torch.float64).log(),
    )

    def seen(logits):
        return BatchOutput(batch, logits, weights[:, None], weights, trial.base.forward)

    by_hand = [-sum(p * float(q) for p, q in zip(row, logits, strict=True)) for row, logits in
               zip(said.tolist(), other, strict=True)]  # fmt: skip
    assert echo.text_scores(seen(other), [0, 1]).tolist() == pytest.approx(
        [-one for one in by_hand]
    )
    assert float(echo.loss(seen(other), [0, 1])) == pytest.approx(np.mean(by_hand))
    assert float(echo.loss(seen(said.log()), [0, 1])) < float(echo.loss(seen(other), [0, 1]))
