"""What is named instead of attention: who may be, shares by hand, and certain gains only."""

from math import nan

import numpy as np
import pytest

from heedful.core.records import BetterMethod, Estimate, MissingMeasure
from heedful.methods import methods
from heedful.pipeline.plan.plan import Plan
from heedful.pipeline.verdict.alternatives import (
    Alternative,
    best_alternative,
    can_replace_attention,
    find_alternatives,
)
from heedful.pipeline.verdict.estimate import Bootstrap
from heedful.pipeline.verdict.reach_verdict import reach_verdict
from support.check_powers import WHERE
from support.columns import columns_of

BOOTSTRAP = Bootstrap(400, 0, 0.95)
N = 40


def taus(mean, spread=0.1):
    """Always the same for the same mean."""
    return mean + np.random.default_rng(int(1000 * mean)).normal(0, spread, N)


def columns(own, control, reference=None, **methods):
    """The τ with leave-one-out of attention, of shuffled attention, and of other methods."""
    values = {"tau_leave_one_out": own, "tau_shuffled_leave_one_out": control}
    values |= {} if reference is None else {"tau_gradient_leave_one_out": reference}
    values |= {("tau_leave_one_out", name): one for name, one in methods.items()}
    return columns_of(["a"] * len(own), {"agreement": values})


def found(**more):
    own = columns(taus(0.2), taus(0.0), taus(0.6), **more)
    return find_alternatives(own, BOOTSTRAP)


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
    own, control, tau = (np.full(5, value) for value in (0.2, 0.1, 0.6))
    (exact,) = find_alternatives(columns(own, control, tau), BOOTSTRAP)
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
    both = columns(attention, taus(0.0), lime=attention + 0.05)
    (one,) = find_alternatives(both, BOOTSTRAP)
    assert one.gain.low == pytest.approx(0.05)
    assert one.gain.high == pytest.approx(0.05)


def test_the_best_of_those_that_certainly_gain():
    some = (rival("lime", 0.5, 0.2), rival("gradient", 0.7, 0.3), rival("shapley", 0.9, 0.0))
    assert best_alternative(some) == BetterMethod(
        "gradient", Estimate(0.7, 0.7 - 0.1, 0.7 + 0.1, N)
    )
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
    own = columns(taus(0.1), taus(0.0), taus(0.6), **more)
    missing = tuple(MissingMeasure("tau_leave_one_out", f"No {name}.", name) for name in more)
    return reach_verdict(plan, own, where=WHERE, labels=["a"], missing={"agreement": missing})


def test_the_verdict_names_the_best_of_all_that_were_tried():
    verdict = audited(lime=taus(0.8), occlusion=taus(0.95), kernel_shap=taus(0.7))
    assert verdict.answer == "unfaithful"
    assert verdict.instead.method == "lime"
    order = verdict.instead.order
    assert order.low < order.value < order.high
    assert audited().instead.method == "one_hot_gradient"


def test_a_measure_without_any_value_has_a_reason_and_one_with_some_counts_the_others():
    some = taus(0.5)
    some[:7] = nan
    check = audited(rollout=np.full(N, nan), shapley=some).checks["agreement"]
    assert check.missing == (MissingMeasure("tau_leave_one_out", "No rollout.", "rollout"),)
    assert list(check.by_method("tau_leave_one_out")) == ["shapley"]
    (row,) = (row for row in check.rows("tau_leave_one_out", method="shapley") if not row.predicted)
    assert (row.undefined, row.estimate.n) == (7, N - 7)
    assert check.undefined == {}


def test_the_share_of_an_older_run_may_have_no_interval():
    one = BetterMethod("lime", Estimate(0.5, nan, nan, 0))
    assert str(one) == "lime recovers 50% of the leave-one-out ranking."
    known = BetterMethod("lime", Estimate(0.5, 0.4, 0.6, 9))
    assert str(known).startswith("lime recovers 50% [40%, 60%] of the")
