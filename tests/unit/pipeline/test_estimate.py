"""From columns to estimates: means by hand, holes counted, classes apart."""

from dataclasses import replace
from math import isnan, nan

import numpy as np
import pytest

from heedful.core.records import MeasureKey, MissingMeasure
from heedful.pipeline.plan.plan import Plan
from heedful.pipeline.verdict.estimate import estimate_all, measure_dataset
from heedful.pipeline.verdict.reach_verdict import reach_verdict
from heedful.results.text_ids import TextIds
from support.check_powers import WHERE
from support.columns import columns_of

PLAN = Plan("m", "d", checks=("permutation",), resamples=200)
MEDIAN = np.array([0.1, 0.2, 0.6, 0.5, 0.1, 0.3])
SHARE = np.array([0.5, nan, 0.7, nan, nan, 0.6])
PREDICTED = np.array(["good", "good", "bad", "good", "bad", "good"])


def permutation(**changes):
    values = {
        "median_tvd": MEDIAN,
        "leverage": np.full(6, 0.5),
        "median_of_leverage": SHARE,
        "max_attention": np.ones(6),
    }
    return columns_of(PREDICTED, {"permutation": values | changes})


def concluded(plan, columns, labels, missing=None):
    return reach_verdict(plan, columns, where=WHERE, labels=labels, missing=missing or {})


def found(columns, plan=PLAN, labels=("bad", "good", "ugly"), missing=None):
    return concluded(plan, columns, labels, missing).checks["permutation"]


def test_an_estimate_is_the_mean_of_the_defined_values():
    estimates = found(permutation()).estimates
    assert estimates["median_tvd"].value == pytest.approx(1.8 / 6)
    assert estimates["median_tvd"].n == 6
    assert estimates["median_of_leverage"].value == pytest.approx(1.8 / 3)
    assert estimates["median_of_leverage"].n == 3


def test_intervals_lie_around_the_mean():
    one = found(permutation()).estimates["median_tvd"]
    assert one.low < one.value < one.high
    flat = found(permutation()).estimates["leverage"]
    assert (flat.low, flat.value, flat.high) == (0.5, 0.5, 0.5)


def test_only_the_measures_of_a_check_are_estimated():
    result = found(permutation())
    assert list(result.estimates) == ["median_tvd", "leverage", "median_of_leverage"]
    classes = {row.measure for row in result.by if row.predicted == "good"}
    assert classes == set(result.estimates)


def test_holes_are_counted_and_only_where_there_are_any():
    assert found(permutation()).undefined == {"median_of_leverage": 3}


def test_each_predicted_class_has_its_own_estimates():
    result = found(permutation())
    assert result.classes == ("bad", "good")  # in the model's order; no text was predicted ugly
    median, share = (result.by_class(name) for name in ("median_tvd", "median_of_leverage"))
    assert median["bad"].value == pytest.approx((0.6 + 0.1) / 2)
    assert median["bad"].n == 2
    assert median["good"].value == pytest.approx((0.1 + 0.2 + 0.5 + 0.3) / 4)
    assert share["good"].n == 2
    one = share["bad"]
    assert (one.value, one.n) == (0.7, 1)
    assert isnan(one.low)
    assert isnan(one.high)


def test_a_column_of_holes_has_no_value():
    result = found(permutation(median_of_leverage=np.full(6, nan)))
    one = result.estimates["median_of_leverage"]
    assert one.n == 0
    assert isnan(one.value)
    assert result.undefined == {"median_of_leverage": 6}


def test_a_missing_measure_has_its_reason_and_no_estimate():
    columns = permutation()
    values = {key: one for key, one in columns.values.items() if key.measure != "leverage"}
    refused = (MissingMeasure("leverage", "The decoder is not linear."),)
    result = found(replace(columns, values=values), missing={"permutation": refused})
    assert "leverage" not in result.estimates
    assert result.missing == refused


def test_rows_by_method_layer_and_setting_have_estimates_of_their_own():
    columns = permutation()
    keys = {
        MeasureKey("permutation", "median_tvd", layer=2, head=1): MEDIAN / 2,
        MeasureKey("permutation", "median_tvd", method="lime"): SHARE,
        MeasureKey("permutation", "median_tvd", setting="half"): MEDIAN * 2,
    }
    result = found(replace(columns, values={**columns.values, **keys}))
    assert result.of("median_tvd").value == pytest.approx(1.8 / 6)
    assert result.of("median_tvd", layer=2, head=1).value == pytest.approx(0.9 / 6)
    assert result.of("median_tvd", setting="half").value == pytest.approx(3.6 / 6)
    (lime,) = (row for row in result.rows("median_tvd", method="lime") if row.predicted is None)
    assert (lime.estimate.n, lime.undefined) == (3, 3)
    assert result.of("median_tvd", method="lime", predicted="bad").value == 0.7
    assert not [row for row in result.by if row.predicted and (row.layer or row.setting)]
    assert result.undefined == {"median_of_leverage": 3}


def test_parts_of_the_texts_by_class_correctness_and_length():
    columns = replace(permutation(), label=np.array(["good"] * 6, dtype=object))
    lengths = np.array([3.0, 4, 5, 6, 7, nan])
    verdict = reach_verdict(PLAN, columns, where=WHERE, labels=[], missing={}, lengths=lengths)
    parts = {r.slice: r.estimate for r in verdict.checks["permutation"].rows("median_tvd")}
    assert parts["Predicted class: bad"].value == pytest.approx((0.6 + 0.1) / 2)
    assert parts["Prediction: correct"].value == pytest.approx((0.1 + 0.2 + 0.5 + 0.3) / 4)
    assert parts["Prediction: wrong"].value == pytest.approx((0.6 + 0.1) / 2)
    by_length = {name: one for name, one in parts.items() if name.startswith("Length")}
    assert sum(one.n for one in by_length.values()) == 5  # one text has no length
    assert parts["Length: 3–4 words"].value == pytest.approx((0.1 + 0.2) / 2)


def test_level_and_seed_are_those_of_the_plan():
    wide = found(permutation()).estimates["median_tvd"]
    narrow = found(permutation(), replace(PLAN, level=0.5)).estimates["median_tvd"]
    assert wide.low < narrow.low < narrow.high < wide.high
    assert found(permutation()).estimates["median_tvd"] == wide
    assert found(permutation(), replace(PLAN, seed=1)).estimates["median_tvd"] != wide


@pytest.mark.parametrize("epsilon", [0.05, 0.3])
def test_epsilon_is_that_of_the_plan_with_and_without_the_adversarial_check(epsilon):
    columns = permutation(median_tvd=np.full(6, 0.2))
    adversarial = dict.fromkeys(
        ("epsilon_max_jsd", "certified_jsd", "bound_jsd", "of_bound", "output_tvd"), np.zeros(6)
    )
    more = columns_of(PREDICTED, {"adversarial": adversarial}).values
    both = replace(columns, values={**columns.values, **more})
    alone = replace(PLAN, epsilon=epsilon)
    side = "more" if epsilon < 0.2 else "less"
    assert f"{side} than the {epsilon:g} that counts" in found(columns, alone).why
    together = replace(alone, checks=("permutation", "adversarial"))
    assert f"{side} than the {epsilon:g} that counts" in found(both, together).why


TAUS = (
    "tau_gradient",
    "tau_leave_one_out",
    "tau_gradient_leave_one_out",
    "tau_shuffled_leave_one_out",
    "tau_gradient_shuffled",
)
RANKS = Plan("m", "d", checks=("agreement",), resamples=200)


def agreement(attention, control, reference):
    zeros = np.zeros(len(attention))
    values = dict.fromkeys(TAUS, zeros) | {
        "tau_leave_one_out": np.array(attention),
        "tau_shuffled_leave_one_out": np.array(control),
        "tau_gradient_leave_one_out": np.array(reference),
    }
    return columns_of(["a"] * len(attention), {"agreement": values})


def test_agreement_has_a_place_between_control_and_reference():
    columns = agreement([0.2, 0.4, nan, 9.0], [0.0, 0.0, 0.0, nan], [0.8, 0.4, 0.8, 0.8])
    place = estimate_all(RANKS, columns, missing={}, labels=["a", "b"]).place("agreement").place
    assert place.value == pytest.approx((0.2 + 0.4) / (0.8 + 0.4))
    assert place.n == 2
    assert concluded(RANKS, columns, ["a", "b"]).degree is None


def test_without_influence_there_is_no_degree():
    assert concluded(PLAN, permutation(), ["bad", "good"]).degree is None


P = {"gradient": [0.001, 0.02, 0.04, 0.9, nan], "leave_one_out": [0.03, 0.03, 0.04, 0.05, 0.03]}


def by_hand(p, level):
    """Benjamini and Hochberg: the largest k with p(k) ≤ k/m·level rejects the k smallest."""
    real = sorted(one for one in p if not isnan(one))
    passed = [one for k, one in enumerate(real, 1) if one <= k / len(real) * level]
    line = max(passed, default=-1.0)
    return [nan if isnan(one) else float(one <= line) for one in p]


def test_what_needs_all_instances_is_computed_from_all_of_them():
    columns = columns_of(
        ["a"] * 5, {"agreement": {f"p_{name}": np.array(p) for name, p in P.items()}}
    )
    whole = measure_dataset(RANKS, columns)
    assert {key.check for key in whole} == {"agreement"}
    assert all(key.plain for key in whole)
    for name, p in P.items():
        found = whole[MeasureKey("agreement", f"significant_{name}_bh")]
        np.testing.assert_array_equal(found, by_hand(p, 0.05))
    assert by_hand(P["gradient"], 0.05)[:4] == [1, 1, 0, 0]  # the example tells the two apart


def test_checks_that_see_one_batch_at_a_time_add_nothing():
    assert measure_dataset(PLAN, permutation()) == {}


def ids_of(names, clusters=None):
    return TextIds(np.array(names), None if clusters is None else np.array(clusters))


def judged(columns, ids, plan=PLAN):
    return reach_verdict(plan, columns, where=WHERE, labels=("bad", "good"), missing={}, ids=ids)


def ends_of(result):
    rows = [(name, one) for name, one in result.estimates.items()]
    rows += [
        ((row.measure, row.method, row.predicted, row.slice), row.estimate) for row in result.by
    ]
    return {name: (one.value, one.low, one.high) for name, one in rows}


def many(n, seed=0):
    """Columns of every kind: shares and means, with methods, classes and slices."""
    random = np.random.default_rng(seed)
    beyond = random.normal(0.12, 1.0, n)
    values = {("beyond_random", "attention"): beyond, ("flip", "attention"): (beyond > 0) * 1.0}
    label = np.where(random.random(n) < 0.8, "good", "bad")
    return columns_of(
        np.where(random.random(n) < 0.5, "good", "bad"),
        {
            "permutation": {
                "median_tvd": random.random(n),
                "leverage": random.random(n),
                "median_of_leverage": np.where(random.random(n) < 0.2, nan, random.random(n)),
            },
            "faithfulness": values,
        },
        label,
    )


BOTH = Plan(
    "m",
    "d",
    checks=("permutation", "faithfulness"),
    resamples=200,
    settings={"faithfulness": {"methods": ("attention",)}},
)


@pytest.mark.parametrize("n", [40, 120])
def test_copies_of_every_text_change_no_interval_and_no_p_value(n):
    columns, names = many(n), [f"{number:03d}" for number in range(n)]
    once = judged(columns, ids_of(names), BOTH)
    rows = np.tile(np.arange(n), 3)
    copies = columns_of(
        columns.predicted[rows],
        {
            check: {key[1:3]: one[rows] for key, one in columns.of_check(check).items()}
            for check in BOTH.checks
        },
        columns.label[rows],
    )
    copied = judged(copies, ids_of(names * 3), BOTH)
    for check in BOTH.checks:
        one, other = (ends_of(each.checks[check]) for each in (once, copied))
        assert one.keys() == other.keys()
        for key, wanted in one.items():
            assert other[key] == pytest.approx(wanted, nan_ok=True)
    assert copied.texts == replace(once.texts, audited=3 * n)
    assert copied.score.accuracy.low == pytest.approx(once.score.accuracy.low)
    p = copied.checks["faithfulness"].of("p_beyond_random", method="attention")
    alone = judged(copies, None, BOTH).checks["faithfulness"]
    assert p.value > alone.of("p_beyond_random", method="attention").value


@pytest.mark.parametrize("n", [40, 120])
def test_the_order_of_the_texts_changes_no_bit(n):
    columns, random = many(n, 1), np.random.default_rng(2)
    names = np.array([f"{number:03d}" for number in random.integers(n // 2, size=n)])
    order = random.permutation(n)
    turned = replace(columns.at(order), instances=np.arange(n))
    one = judged(columns, ids_of(names), BOTH)
    other = judged(turned, ids_of(names[order]), BOTH)
    assert one.to_json() == other.to_json()


def test_clusters_are_drawn_and_counted():
    names = [str(number) for number in range(40)]
    wide, narrow = (
        judged(many(40), ids_of(names, clusters)) for clusters in ([*"abcdefgh"] * 5, None)
    )
    assert (wide.texts.distinct, wide.texts.clusters) == (40, 8)
    assert "8 clusters" in wide.texts.note
    assert narrow.texts.clusters is narrow.texts.note is None
    one, other = (each.checks["permutation"].of("leverage") for each in (wide, narrow))
    assert one.n == other.n == 40
    assert (one.low, one.high) != (other.low, other.high)


def test_few_distinct_texts_are_said_not_to_be_trusted():
    counts = judged(many(40), ids_of(["a", "b"] * 20)).texts
    assert counts.note.startswith("The texts form only 2 distinct texts")
    assert judged(many(40), ids_of(["a"] * 40)).texts.note.startswith(
        "The texts form only 1 distinct text:"
    )


def scored(right, wrong, unlabelled=0):
    """Texts of which the model calls every one good."""
    label = ["good"] * right + ["bad"] * wrong + [""] * unlabelled
    n = len(label)
    columns = columns_of(["good"] * n, {"permutation": {"leverage": np.ones(n)}}, label)
    return judged(columns, ids_of([f"{number:03d}" for number in range(n)])).score


def test_the_models_own_score_counts_texts_with_a_label():
    score = scored(90, 10, unlabelled=7)
    assert (score.accuracy.value, score.accuracy.n) == (0.9, 100)
    assert (score.majority, score.n_by_class) == (0.9, {"bad": 10, "good": 90})
    assert score.accuracy.low < 0.9 < score.accuracy.high
    assert score.at_chance  # it names the most frequent class
    assert scored(0, 0, unlabelled=3) is None


def test_a_model_that_knows_its_classes_is_not_at_chance():
    label = ["good", "bad"] * 50
    columns = columns_of(label, {"permutation": {"leverage": np.ones(100)}}, label)
    assert not judged(columns, ids_of([f"{number:03d}" for number in range(100)])).score.at_chance
    copies = judged(columns, ids_of(["one", "other"] * 50)).score
    assert copies.at_chance  # a hundred copies of two texts show nothing
