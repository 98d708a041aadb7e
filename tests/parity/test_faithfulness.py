"""Faithfulness by plain loops: every text alone, every set of words removed by hand."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from captum.metrics import infidelity

from heedful.checks import checks, default_checks
from heedful.checks.faithfulness.check import METHOD_MEASURES, Faithfulness
from heedful.core.batch import Encoded, collate
from heedful.core.errors import ConfigError
from heedful.core.records import Series
from heedful.core.rng import generator
from heedful.methods import methods
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.erased_words import get_mask_embedding
from heedful.numerics.stats.multiple_testing import holm_adjusted
from heedful.numerics.stats.permutation_tests import one_sided_sign_flip_p
from heedful.numerics.tensor.erasure_metrics import bin_sizes, grid_sizes
from support import measured_values, subjects
from support.reference_removal import Counted, linear, members, subject, texts_of

BINS = (0.01, 0.05, 0.1, 0.2, 0.5)
SEED, ORDERS = 3, 4
ASKED = ("one_hot_gradient", "gradient", "input_x_gradient", "leave_one_out", "occlusion")
NAMES = ("bilstm", "cnn", "bert", "xlnet")  # the last is padded on the left
ways = pytest.mark.parametrize("way", ["deletion", "masking"])


def rows_of(findings):
    return measured_values.columns(findings)


def plain(findings):
    return of_way(findings, "deletion")


def of_way(findings, way):
    """The columns of one way of removing words, by measure and method."""
    setting = None if way == "deletion" else way
    rows = [one for one in findings.measurements if one.setting == setting]
    return {f"{one.measure}[{one.method}]": one.values for one in rows}


def check_of(**settings):
    usual = {
        "methods": ASKED,
        "orders": ORDERS,
        "draws": 0,
        "perturbations": 0,
    }  # dimming has a file of its own
    return checks.build("faithfulness", **(usual | settings))


def texts_and_sitting(name):
    """The texts of the other tests and a longer one."""
    one, texts = subject(name), texts_of(name)
    if name == "bilstm":
        texts += subjects.encoded(one, [9, 23], seed=4)
    texts = [replace(text, index=7 + place) for place, text in enumerate(texts)]
    return texts, BatchContext(one, one.batch(texts), seed=SEED)


def deleted(one, text, places):
    """p of every class of the text without these tokens, encoded anew."""
    left = [t for t in range(len(text.ids)) if t not in places]
    shorter = Encoded(
        text.index,
        0,
        tuple(text.ids[t] for t in left),
        tuple(text.word[t] for t in left),
        text.words,
        types=None if text.types is None else tuple(text.types[t] for t in left),
    )
    with torch.no_grad():
        return one.forward(one.batch([shorter])).logits[0].double().softmax(-1).tolist()


def hidden(one, text, places):
    """The same of the text with these tokens blank."""
    batch = one.batch([text])
    x = one.embed(batch).clone()
    for place in places:
        x[0, place] = get_mask_embedding(BatchContext(one, batch)).vector
    with torch.no_grad():
        return one.forward(batch, x).logits[0].double().softmax(-1).tolist()


class Text:
    """One text alone: its words, and what the model says without some of them."""

    def __init__(self, one, text, way):
        self.one, self.text, self.way, self.kept = one, text, way, {}
        self.words = members(text, "words")
        self.context = BatchContext(one, one.batch([text]), seed=SEED)
        self.target = int(self.context.predicted)

    def said(self, gone):
        places = [t for word in sorted(gone) for t in self.words[word]]
        if frozenset(gone) not in self.kept:
            ask = deleted if self.way == "deletion" else hidden
            self.kept[frozenset(gone)] = ask(self.one, self.text, places)
        return self.kept[frozenset(gone)]

    def p(self, gone):
        return self.said(gone)[self.target]

    def scores(self, name):
        part = methods.build(name)
        tokens = part(self.context, torch.tensor([self.target])).scores[0].double()
        if part.join == "norm":
            return [math.sqrt(sum(float(tokens[t]) ** 2 for t in word)) for word in self.words]
        return [sum(float(tokens[t]) for t in word) for word in self.words]

    def chance(self):
        drawn = generator(SEED, "orders of faithfulness", self.text.content)
        return drawn.random((ORDERS, len(self.words))).tolist()

    def order(self, scores):
        """Highest first; scores that rounding alone tells apart stand as in the text."""
        near = 1e-6 * max(map(abs, scores)) + 1e-12
        ranked = sorted(range(len(scores)), key=lambda w: -scores[w])
        groups = [[ranked[0]]]
        for before, w in pairwise(ranked):
            if scores[before] - scores[w] <= near:
                groups[-1].append(w)
            else:
                groups.append([w])
        return [w for group in groups for w in sorted(group)]

    def sizes(self):
        return [max(1, math.ceil(round(share * len(self.words), 9))) for share in BINS]


def averaged(text, order, *, keep=False):
    gone = [order[size:] if keep else order[:size] for size in text.sizes()]
    return sum(text.p(()) - text.p(one) for one in gone) / len(gone)


def normalised(text, order, *, keep):
    full, empty, found = text.p(()), text.p(range(len(text.words))), []
    start = 1 - max(0.0, full - empty)
    if 1 - start <= 1e-6:
        return math.nan
    for size in text.sizes():
        lost = max(0.0, full - text.p(order[size:] if keep else order[:size]))
        share = ((1 - lost) - start) / (1 - start) if keep else lost / (1 - start)
        found.append(min(1.0, max(0.0, share)))
    return sum(found) / len(found)


def flip(text, order):
    for size in range(1, len(order)):
        said = text.said(order[:size])
        if said.index(max(said)) != text.target:
            return size / len(order)
    return math.inf


def infidelities(text, scores):
    told, lost = [], []
    for drawn in text.chance():
        for size in text.sizes():
            gone = text.order(drawn)[:size]
            told.append(sum(scores[w] for w in gone))
            lost.append(text.p(()) - text.p(gone))
    square = sum(a * a for a in told)
    unit = sum(a * b for a, b in zip(told, lost, strict=True)) / square if square else 1.0
    pairs = [*zip(told, lost, strict=True)]
    mean = sum((a - b) ** 2 for a, b in pairs) / len(pairs)
    return mean, sum((unit * a - b) ** 2 for a, b in pairs) / len(pairs)


def violated(text, scores):
    least = 1e-6 * max(map(abs, scores)) + 1e-12
    effects = [text.p(()) - text.p([w]) for w in range(len(scores))]
    pairs = zip(scores, effects, strict=True)
    both = [(s, e) for s, e in pairs if abs(s) > least and abs(e) > 1e-6]
    return sum((s > 0) != (e > 0) for s, e in both) / len(both) if both else math.nan


def by_hand(text, names):
    """Every measure of one text."""
    chance = [text.order(one) for one in text.chance()]
    random, several = [averaged(text, one) for one in chance], len(text.words) > 1
    scores = {name: text.scores(name) for name in names}
    orders = {name: text.order(one) for name, one in scores.items()}
    flips = {name: flip(text, order) for name, order in orders.items()}
    at_random = [flip(text, order) for order in chance]
    can = any(math.isfinite(one) for one in (*flips.values(), *at_random))
    found = {
        "comprehensiveness[random]": np.mean(random),
        "sufficiency[random]": np.mean([averaged(text, one, keep=True) for one in chance]),
        "flip[random]": np.mean([min(one, 1.0) for one in at_random]) if can else math.nan,
    }
    first = [*range(len(text.words))]
    even = [1 / len(first)] * len(first)
    found["comprehensiveness[uniform]"] = averaged(text, first)
    found["sufficiency[uniform]"] = averaged(text, first, keep=True)
    found["infidelity[uniform]"], found["infidelity_scaled[uniform]"] = infidelities(text, even)
    for name, order in orders.items():
        own = averaged(text, order)
        beats = [0.5 if abs(own - one) <= 1e-6 else float(own > one) for one in random]
        raw, scaled = infidelities(text, scores[name])
        found |= {
            f"comprehensiveness[{name}]": own,
            f"sufficiency[{name}]": averaged(text, order, keep=True),
            f"beyond_random[{name}]": own - np.mean(random) if several else math.nan,
            f"diagnosticity[{name}]": np.mean(beats) if several else math.nan,
            f"worst[{name}]": averaged(text, order[::-1]),
            f"flip[{name}]": min(flips[name], 1.0) if can else math.nan,
            f"infidelity[{name}]": raw,
            f"infidelity_scaled[{name}]": scaled,
            f"normalised_comprehensiveness[{name}]": normalised(text, order, keep=False),
            f"normalised_sufficiency[{name}]": normalised(text, order, keep=True),
        }
        if methods.build(name).signed:
            found[f"violation[{name}]"] = violated(text, scores[name])
    return found


@pytest.mark.parametrize("name", NAMES)
@ways
def test_every_measure_is_that_of_a_plain_loop(name, way):
    texts, context = texts_and_sitting(name)
    check = check_of(steps=30)
    found = of_way(check(context), way)
    want = [by_hand(Text(context.subject, text, way), check.names) for text in texts]
    assert set(found) == set(want[0])
    assert set(map(measured_values.plain, found)) == {*METHOD_MEASURES, "violation"}
    for measure, values in found.items():
        hand = [one[measure] for one in want]
        same = np.testing.assert_allclose
        same(values, hand, rtol=0, atol=1e-7, equal_nan=True, err_msg=measure)


def losses(context, row):
    """Log-odds of a linear text, and p of its class when it has lost so much of them."""
    odds = float(context.logits.detach()[row, 1])
    sign = 1.0 if odds > 0 else -1.0
    return odds, lambda gone: 1 / (1 + math.exp(-sign * (odds - gone)))


def test_a_bag_of_words_has_its_closed_form():
    """Deletion and blank vectors are one, and input × gradient ranks as the words' own terms do."""
    lengths = [1, 2, 7, 30]
    context, added = linear(lengths, seed=2, max_batch_tokens=50)
    findings = check_of(methods=("input_x_gradient", "leave_one_out"))(context)
    found = {way: of_way(findings, way) for way in ("deletion", "masking")}
    for row, length in enumerate(lengths):
        terms = added[row][context.batch.mask[row]].tolist()
        odds, p = losses(context, row)
        best = sorted(terms, reverse=odds > 0)
        sizes = [max(1, math.ceil(round(share * length, 9))) for share in BINS]
        comprehensive = np.mean([p(0.0) - p(sum(best[:k])) for k in sizes])
        sufficient = np.mean([p(0.0) - p(sum(best[k:])) for k in sizes])
        worst = np.mean([p(0.0) - p(sum(best[-k:])) for k in sizes])
        for way in ("deletion", "masking"):
            for name in ("input_x_gradient", "leave_one_out"):
                for measure, want in (
                    ("comprehensiveness", comprehensive),
                    ("sufficiency", sufficient),
                    ("worst", worst),
                    ("violation", 0.0),
                ):
                    value = np.nan_to_num(found[way][f"{measure}[{name}]"][row])  # p is 1
                    assert value == pytest.approx(want, abs=1e-9), (measure, name)


def test_the_best_order_beats_all_others_and_its_reverse_none():
    context, _ = linear([12, 20, 33], seed=5)
    found = plain(check_of(orders=40, methods=("input_x_gradient", "occlusion"))(context))
    best, worst = (found[f"{one}[input_x_gradient]"] for one in ("comprehensiveness", "worst"))
    for name in ("random", "uniform", "attention"):
        assert (best >= found[f"comprehensiveness[{name}]"] - 1e-12).all()
        assert (worst <= found[f"comprehensiveness[{name}]"] + 1e-12).all()
    assert (found["diagnosticity[input_x_gradient]"] > 0.9).all()
    assert (found["flip[input_x_gradient]"] <= found["flip[random]"]).all()


def test_random_orders_reach_their_expected_value():
    """A single word removed at random takes the mean of what each takes."""
    context, added = linear([6], seed=3)
    found = plain(check_of(methods=("leave_one_out",), orders=4000, bins=(0.1,))(context))
    _, p = losses(context, 0)
    each = [p(0.0) - p(float(one)) for one in added[0][context.batch.mask[0]]]
    spread = np.std(each) / math.sqrt(4000)
    assert found["comprehensiveness[random]"][0] == pytest.approx(np.mean(each), abs=4 * spread)
    top = max(each)
    beaten = np.mean([top > one for one in each]) + 0.5 / 6
    assert found["diagnosticity[leave_one_out]"][0] == pytest.approx(beaten, abs=0.03)


@pytest.mark.parametrize("scaled", [False, True])
def test_infidelity_is_that_of_captum(scaled):
    text, name = subjects.encoded(subject("bilstm"), [9], seed=8)[0], "input_x_gradient"
    alone = Text(subject("bilstm"), text, "masking")
    scores = torch.tensor([alone.scores(name)], dtype=torch.float64)
    sizes, count = alone.sizes(), len(alone.words)
    sets = [alone.order(one)[:size] for one in alone.chance() for size in sizes]
    gone = torch.zeros(len(sets), count, dtype=torch.float64)
    for row, one in enumerate(sets):
        gone[row, one] = 1.0

    def model(present):
        return torch.tensor(
            [alone.p(np.flatnonzero(row < 0.5).tolist()) for row in present.numpy()]
        )

    want = infidelity(
        model,
        lambda inputs: (gone, inputs - gone),
        torch.ones(1, count, dtype=torch.float64),
        scores,
        n_perturb_samples=len(sets),
        max_examples_per_batch=len(sets),
        normalize=scaled,
    )
    found = plain(check_of(ways=("masking",))(alone.context))
    measure = f"infidelity_scaled[{name}]" if scaled else f"infidelity[{name}]"
    assert found[measure][0] == pytest.approx(float(want), abs=1e-9)


def test_every_distinct_variant_is_run_once_without_padding_and_within_the_budget():
    seen = []

    class Watched(Counted):
        def forward(self, batch, embedded=None):
            if embedded is None and bool(batch.present.all()):
                seen.append([tuple(row.tolist()) for row in batch.ids])
            return super().forward(batch, embedded)

    first, *more = subjects.encoded(subject("bilstm"), [6, 6, 9], seed=4)
    one = Watched(subject("bilstm"))
    context = BatchContext(
        one, collate([first, *more, replace(first, index=9)]), max_batch_tokens=40
    )
    leave_one_out = context.without_each  # has passes of its own, with padding
    assert len(leave_one_out) == 4
    seen.clear()
    one.run = 0
    check_of(ways=("deletion",), methods=("leave_one_out",))(context)
    assert all(len(rows) * len(rows[0]) <= 40 for rows in seen)
    assert one.run == sum(map(len, seen)) > 100
    assert all(len(set(rows)) == len(rows) for rows in seen)
    sets = [set(rows) for rows in seen]
    assert sum(map(len, sets)) < 1.2 * len(set().union(*sets))  # texts alike may ask one by one


@pytest.mark.parametrize("name", ["bilstm", "bert"])
def test_company_and_budget_never_matter(name):
    texts, context = texts_and_sitting(name)
    check = check_of()
    together = rows_of(check(context))
    for row, text in enumerate(texts):
        one = context.subject
        alone = rows_of(check(BatchContext(one, one.batch([text]), seed=SEED, max_batch_tokens=9)))
        for key, values in alone.items():
            np.testing.assert_allclose(values[0], together[key][row], atol=1e-6, err_msg=str(key))


def test_words_that_tie_go_as_they_stand():
    context = texts_and_sitting("bilstm")[1]
    found = plain(check_of(methods=("uniform", "random"))(context))
    assert check_of(methods=("uniform", "random")).names == ("attention",)
    scored = Text(context.subject, texts_and_sitting("bilstm")[0][-1], "deletion")
    first = averaged(scored, [*range(len(scored.words))])
    assert found["comprehensiveness[uniform]"][-1] == pytest.approx(first)


def test_one_word_can_be_removed_but_not_ranked():
    found = plain(check_of()(texts_and_sitting("bilstm")[1]))
    for name in ("attention", "leave_one_out"):
        assert found[f"sufficiency[{name}]"][1] == 0.0
        assert found[f"comprehensiveness[{name}]"][1] != 0.0
        for measure in ("beyond_random", "diagnosticity", "flip"):
            assert np.isnan(found[f"{measure}[{name}]"][1])
            assert not np.isnan(found[f"{measure}[{name}]"]).all()


def test_a_model_that_cannot_read_nothing_has_no_value_for_it():
    """GPT-2 adds no tokens of its own, so a text of one word leaves nothing when it goes."""
    _, context = texts_and_sitting("gpt2")
    found = rows_of(check_of(methods=(), steps=3)(context))
    assert np.isnan(found["comprehensiveness[attention]"][1])
    assert np.isnan(found["normalised_sufficiency[attention]"][1])
    assert not np.isnan(found["comprehensiveness[attention]"][0])
    assert not np.isnan(found["comprehensiveness[attention, masking]"][1])


def test_a_method_that_refuses_says_why_and_harms_no_other():
    context = texts_and_sitting("bilstm")[1]
    found = check_of(methods=("rollout", "shapley"))(context)
    missing = {
        name for name in measured_values.missing(found) if not name.startswith("off_distribution")
    }
    assert missing == {f"{one}[{m}]" for one in METHOD_MEASURES for m in ("rollout", "shapley")} | {
        "violation[shapley]"
    }
    columns = plain(found)
    assert np.isnan(columns["comprehensiveness[rollout]"]).all()
    long = [len(text.words) > 12 for text in texts_and_sitting("bilstm")[0]]
    assert np.isnan(columns["comprehensiveness[shapley]"]).tolist() == long
    usual = plain(check_of(methods=())(context))
    for measure in ("comprehensiveness[attention]", "comprehensiveness[random]"):
        np.testing.assert_array_equal(columns[measure], usual[measure])


def test_sizes_are_rounded_up_and_hold_at_least_one_word():
    assert bin_sizes(torch.tensor([1, 20, 700]), BINS).T.tolist() == [
        [1, 1, 1, 1, 1],
        [1, 1, 2, 4, 10],
        [7, 35, 70, 140, 350],
    ]
    for words in (1, 2, 5, 21, 22, 100):
        sizes = [one for one in grid_sizes(torch.tensor([words]), 20)[:, 0].tolist() if one]
        assert sizes == sorted(set(sizes))
        assert len(sizes) == min(20, words - 1)
        assert not sizes or sizes[-1] == words - 1


def test_p_values_are_those_of_all_signs_and_corrected_over_methods():
    values = np.array([0.4, -0.1, 0.3, 0.2, np.nan, 0.25, -0.05, 0.1, 0.3])
    defined = values[~np.isnan(values)]
    signs = np.array(np.meshgrid(*[[-1, 1]] * len(defined))).reshape(len(defined), -1)
    exact = np.mean(signs.T @ defined >= defined.sum() - 1e-12)
    assert one_sided_sign_flip_p(values, resamples=20_000) == pytest.approx(exact, abs=0.005)
    assert one_sided_sign_flip_p(-values) > 0.9
    assert math.isnan(one_sided_sign_flip_p(np.full(3, np.nan)))
    p = [0.04, 0.001, float("nan"), 0.02, 0.5, 0.02]
    for level in (0.01, 0.05, 0.07, 0.09, 0.2):
        adjusted, rejected = np.array(holm_adjusted(p)) <= level, np.zeros(6, dtype=bool)
        for left, place in zip(range(5, 0, -1), (1, 3, 5, 0, 4), strict=True):
            if p[place] * left > level:
                break
            rejected[place] = True
        assert (adjusted == rejected).all()
    columns = {
        Series("beyond_random", name): values * sign
        for name, sign in zip(("attention", "b", "c"), (1, 1, -1), strict=True)
    }
    found = Faithfulness(methods=()).test(columns, resamples=200, seed=0)
    expected = one_sided_sign_flip_p(values, resamples=200)
    assert found == {Series("p_beyond_random", "attention"): expected}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"orders": 0}, "orders must be a whole number of at least 1"),
        ({"steps": 0}, "steps must be a whole number of at least 1"),
        ({"bins": ()}, "bins must be a list of numbers above 0 and of at most 1"),
        ({"bins": (0.0, 0.5)}, "bins must be a list of numbers above 0 and of at most 1"),
        ({"ways": ("deletion", "burning")}, "ways must be deletion or masking"),
        ({"ways": ()}, "ways must be deletion or masking"),
        ({"ways": ("masking", "masking")}, "ways must be deletion or masking"),
    ],
)
def test_what_cannot_be_asked_is_refused(settings, told):
    with pytest.raises(ConfigError, match=told):
        check_of(**settings)


def test_all_are_all_that_rank_and_the_check_is_run_when_asked_for():
    left_out = {"random", "uniform", "diffmask"}  # the last for want of an explainer
    assert set(Faithfulness(methods=("all",)).names) == set(methods) - left_out
    assert "faithfulness" in checks
    assert "faithfulness" not in default_checks()
    assert "erasure" in default_checks()
