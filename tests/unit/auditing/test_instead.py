"""What is named instead of attention: who may be, shares by hand, and certain gains only."""

from math import isnan, nan

import numpy as np
import pytest

from heedful.core.records import BetterMethod, Estimate
from heedful.methods import methods
from heedful.pipeline.plan.plan import Plan
from heedful.pipeline.verdict.alternatives import (
    Alternative,
    best_alternative,
    can_replace_attention,
    find_alternatives,
)
from heedful.pipeline.verdict.estimate import MeasuredColumns, reach_verdict
from trusted import WHERE

PLAN = Plan("m", "d", checks=("agreement",), resamples=400)
N = 40


def taus(mean, spread=0.1):
    """Always the same for the same mean."""
    return mean + np.random.default_rng(int(1000 * mean)).normal(0, spread, N)


def found(**more):
    columns = {
        "tau_leave_one_out": taus(0.2),
        "tau_shuffled_leave_one_out": taus(0.0),
        "tau_gradient_leave_one_out": taus(0.6),
        **{f"tau_{name}_leave_one_out": one for name, one in more.items()},
    }
    measures = {name: f"tau_{name}_leave_one_out" for name in more}
    return find_alternatives(
        PLAN, {"one_hot_gradient": "tau_gradient_leave_one_out"} | measures, columns
    )


def rival(name, share, gain):
    return Alternative(
        name, Estimate(share, share - 0.1, share + 0.1, N), Estimate(gain, *[gain] * 2, N)
    )


def test_who_may_stand_in_for_attention():
    allowed = {name for name in methods if can_replace_attention(name)}
    assert {"gradient", "integrated_gradients", "lime", "kernel_shap", "shapley"} <= allowed
    for name in ("leave_one_out", "occlusion"):  # the yardstick, and what is nearly the same
        assert name not in allowed
    kinds = {getattr(methods[name], "kind", None) for name in allowed}
    assert kinds == {"sensitivity", "saliency"}


def test_the_share_is_the_place_between_shuffled_attention_and_deletion_itself():
    (one,) = found()
    assert one.method == "one_hot_gradient"
    columns = {"tau": 0.6, "control": 0.1, "attention": 0.2}
    flat = {name: np.full(5, value) for name, value in columns.items()}
    (exact,) = find_alternatives(
        PLAN,
        {"one_hot_gradient": "tau"},
        {
            "tau": flat["tau"],
            "tau_leave_one_out": flat["attention"],
            "tau_shuffled_leave_one_out": flat["control"],
        },
    )
    assert exact.share.value == pytest.approx((0.6 - 0.1) / (1 - 0.1))
    assert exact.gain.value == pytest.approx(0.4)
    assert one.share.low < one.share.value < one.share.high
    assert one.share.n == N


def test_the_yardstick_and_the_kin_of_attention_are_no_rivals():
    names = ("leave_one_out", "occlusion", "rollout", "attention_x_gradient", "random", "lime")
    assert [one.method for one in found(**dict.fromkeys(names, taus(0.9)))] == [
        "one_hot_gradient",
        "lime",
    ]


@pytest.mark.parametrize(("holes", "kept"), [(0, True), (2, True), (3, False), (N, False)])
def test_who_serves_only_some_texts_is_no_rival(holes, kept):
    few = taus(0.9)
    few[:holes] = nan
    assert ("shapley" in [one.method for one in found(shapley=few)]) == kept


def test_the_more_are_tried_the_wider_each_interval_of_the_gain():
    tried = dict.fromkeys(("lime", "kernel_shap", "gradient", "smoothgrad"), taus(0.5))
    alone, *_ = found()
    among, *_ = found(**tried)
    assert among.gain.high - among.gain.low > 1.1 * (alone.gain.high - alone.gain.low)


def test_the_gain_is_paired():
    """Methods that move with attention from text to text gain the same on every one."""
    attention = taus(0.2, spread=0.5)
    columns = {
        "tau_leave_one_out": attention,
        "tau_shuffled_leave_one_out": taus(0.0),
        "tau_lime_leave_one_out": attention + 0.05,
    }
    (one,) = find_alternatives(PLAN, {"lime": "tau_lime_leave_one_out"}, columns)
    assert one.gain.low == pytest.approx(0.05)
    assert one.gain.high == pytest.approx(0.05)


def test_the_best_of_those_that_certainly_gain():
    some = (rival("lime", 0.5, 0.2), rival("gradient", 0.7, 0.3), rival("shapley", 0.9, 0.0))
    assert best_alternative(some) == BetterMethod("gradient", 0.7, 0.7 - 0.1, 0.7 + 0.1, N)
    assert best_alternative((rival("lime", 0.5, -0.1), rival("gradient", 0.5, nan))) is None
    assert best_alternative(()) is None


def audited(**more):
    plan = Plan(
        "m",
        "d",
        checks=("agreement",),
        resamples=200,
        settings={"agreement": {"methods": tuple(more)}},
    )
    columns = {
        "tau_leave_one_out": taus(0.1),
        "tau_shuffled_leave_one_out": taus(0.0),
        "tau_gradient_leave_one_out": taus(0.6),
        **{f"tau_{name}_leave_one_out": one for name, one in more.items()},
    }
    missing = {"agreement": {f"tau_{name}_leave_one_out": f"No {name}." for name in more}}
    return reach_verdict(
        plan, MeasuredColumns(np.array(["a"] * N), {"agreement": columns}, missing), ["a"], WHERE
    )


def test_the_verdict_names_the_best_of_all_that_were_tried():
    verdict = audited(lime=taus(0.8), occlusion=taus(0.95), kernel_shap=taus(0.7))
    assert verdict.answer == "unfaithful"
    assert verdict.instead.method == "lime"
    assert verdict.instead.low < verdict.instead.recovered_share < verdict.instead.high
    assert audited().instead.method == "one_hot_gradient"


def test_a_reason_is_told_where_no_text_has_a_value_and_holes_are_counted_where_some_have():
    some = taus(0.5)
    some[:7] = nan
    check = audited(rollout=np.full(N, nan), shapley=some).checks["agreement"]
    assert check.missing == {"tau_rollout_leave_one_out": "No rollout."}
    assert "tau_rollout_leave_one_out" not in check.estimates
    assert check.undefined == {"tau_shapley_leave_one_out": 7}
    assert check.estimates["tau_shapley_leave_one_out"].n == N - 7


def test_an_older_run_has_a_share_without_an_interval():
    one = BetterMethod("lime", 0.5)
    assert isnan(one.low)
    assert str(one) == "lime recovers 50% of the leave-one-out ranking."
    assert str(BetterMethod("lime", 0.5, 0.4, 0.6, 9)).startswith(
        "lime recovers 50% [40%, 60%] of the"
    )
