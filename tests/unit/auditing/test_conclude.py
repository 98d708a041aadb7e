"""From columns to estimates: means by hand, holes counted, classes apart."""

from dataclasses import replace
from math import isnan, nan

import numpy as np
import pytest

from heedful.pipeline.plan.plan import Plan
from heedful.pipeline.verdict.estimate import MeasuredColumns, dataset_measures, reach_verdict
from trusted import WHERE

PLAN = Plan("m", "d", checks=("permutation",), resamples=200)
MEDIAN = np.array([0.1, 0.2, 0.6, 0.5, 0.1, 0.3])
SHARE = np.array([0.5, nan, 0.7, nan, nan, 0.6])
PREDICTED = np.array(["good", "good", "bad", "good", "bad", "good"])


def permutation(**changes):
    columns = {
        "median_tvd": MEDIAN,
        "leverage": np.full(6, 0.5),
        "median_of_leverage": SHARE,
        "max_attention": np.ones(6),
    }
    return MeasuredColumns(PREDICTED, {"permutation": columns | changes})


def found(columns, plan=PLAN, labels=("bad", "good", "ugly")):
    return reach_verdict(plan, columns, labels, WHERE).checks["permutation"]


def test_an_estimate_is_the_mean_of_the_defined_values():
    estimates = found(permutation()).estimates
    assert estimates["median_tvd"].value == pytest.approx(1.8 / 6)
    assert estimates["median_tvd"].n == 6
    assert estimates["median_of_leverage"].value == pytest.approx(1.8 / 3)
    assert estimates["median_of_leverage"].n == 3


def test_intervals_lie_around_the_mean_and_within_the_data():
    one = found(permutation()).estimates["median_tvd"]
    assert MEDIAN.min() <= one.low < one.value < one.high <= MEDIAN.max()
    flat = found(permutation()).estimates["leverage"]
    assert (flat.low, flat.value, flat.high) == (0.5, 0.5, 0.5)


def test_only_the_measures_of_a_check_are_estimated():
    result = found(permutation())
    assert list(result.estimates) == ["median_tvd", "leverage", "median_of_leverage"]
    assert list(result.by_class["good"]) == list(result.estimates)


def test_holes_are_counted_and_only_where_there_are_any():
    assert found(permutation()).undefined == {"median_of_leverage": 3}


def test_each_predicted_class_has_its_own_estimates():
    by_class = found(permutation()).by_class
    assert list(by_class) == ["bad", "good"]  # in the model's order; nothing was called ugly
    assert by_class["bad"]["median_tvd"].value == pytest.approx((0.6 + 0.1) / 2)
    assert by_class["bad"]["median_tvd"].n == 2
    assert by_class["good"]["median_tvd"].value == pytest.approx((0.1 + 0.2 + 0.5 + 0.3) / 4)
    assert by_class["good"]["median_of_leverage"].n == 2
    one = by_class["bad"]["median_of_leverage"]
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
    values = dict(permutation().values["permutation"])
    del values["leverage"]
    reasons = {"permutation": {"leverage": "The decoder is not linear."}}
    result = found(MeasuredColumns(PREDICTED, {"permutation": values}, reasons))
    assert "leverage" not in result.estimates
    assert result.missing == {"leverage": "The decoder is not linear."}


def test_level_and_seed_are_those_of_the_plan():
    wide = found(permutation()).estimates["median_tvd"]
    narrow = found(permutation(), replace(PLAN, level=0.5)).estimates["median_tvd"]
    assert wide.low < narrow.low < narrow.high < wide.high
    assert found(permutation()).estimates["median_tvd"] == wide
    assert found(permutation(), replace(PLAN, seed=1)).estimates["median_tvd"] != wide


def test_epsilon_is_that_of_the_plan_with_and_without_the_adversarial_check():
    columns = permutation(median_tvd=np.full(6, 0.2))
    assert found(columns).answer == "for"  # 0.05 by default
    adversarial = dict.fromkeys(
        ("epsilon_max_jsd", "certified_jsd", "bound_jsd", "of_bound", "output_tvd"), np.zeros(6)
    )
    both = replace(columns, values={**columns.values, "adversarial": adversarial})
    for epsilon, answer in ((0.05, "for"), (0.3, "against")):
        alone = replace(PLAN, epsilon=epsilon)
        assert found(columns, alone).answer == answer
        assert found(both, replace(alone, checks=("permutation", "adversarial"))).answer == answer


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
    columns = dict.fromkeys(TAUS, zeros) | {
        "tau_leave_one_out": np.array(attention),
        "tau_shuffled_leave_one_out": np.array(control),
        "tau_gradient_leave_one_out": np.array(reference),
    }
    return MeasuredColumns(np.array(["a"] * len(attention)), {"agreement": columns})


def test_the_degree_is_the_place_between_control_and_reference():
    verdict = reach_verdict(RANKS, agreement([0.2] * 4, [0.0] * 4, [0.8] * 4), ["a", "b"], WHERE)
    assert verdict.degree.value == pytest.approx(0.25)
    assert verdict.degree.n == 4
    assert verdict.answer == "unfaithful"
    high = reach_verdict(RANKS, agreement([0.7] * 4, [0.0] * 4, [0.8] * 4), ["a", "b"], WHERE)
    assert high.degree.value == pytest.approx(0.875)
    assert high.answer == "faithful"


def test_the_degree_counts_instances_where_all_three_exist():
    columns = agreement([0.2, 0.4, nan, 9.0], [0.0, 0.0, 0.0, nan], [0.8, 0.4, 0.8, 0.8])
    degree = reach_verdict(RANKS, columns, ["a", "b"], WHERE).degree
    assert degree.value == pytest.approx((0.2 + 0.4) / (0.8 + 0.4))
    assert degree.n == 2


def test_without_agreement_there_is_no_degree():
    assert reach_verdict(PLAN, permutation(), ["bad", "good"], WHERE).degree is None


P = {"gradient": [0.001, 0.02, 0.04, 0.9, nan], "leave_one_out": [0.03, 0.03, 0.04, 0.05, 0.03]}


def by_hand(p, level):
    """Benjamini and Hochberg: the largest k with p(k) ≤ k/m·level rejects the k smallest."""
    real = sorted(one for one in p if not isnan(one))
    passed = [one for k, one in enumerate(real, 1) if one <= k / len(real) * level]
    line = max(passed, default=-1.0)
    return [nan if isnan(one) else float(one <= line) for one in p]


def test_what_needs_all_instances_is_computed_from_all_of_them():
    columns = MeasuredColumns(
        np.array(["a"] * 5), {"agreement": {f"p_{name}": np.array(p) for name, p in P.items()}}
    )
    whole = dataset_measures(RANKS, columns)
    assert list(whole) == ["agreement"]
    for name, p in P.items():
        found = whole["agreement"][f"significant_{name}_bh"]
        np.testing.assert_array_equal(found, by_hand(p, 0.05))
    assert by_hand(P["gradient"], 0.05)[:4] == [1, 1, 0, 0]  # the example tells the two apart
    both = columns.with_whole(whole)
    assert both.values["agreement"].keys() == {
        *columns.values["agreement"],
        *whole["agreement"],
    }
    assert "significant_gradient_bh" not in columns.values["agreement"]


def test_checks_that_see_one_batch_at_a_time_add_nothing():
    assert dataset_measures(PLAN, permutation()) == {}
    assert permutation().with_whole({}).values["permutation"].keys() == {
        "median_tvd",
        "leverage",
        "median_of_leverage",
        "max_attention",
    }
