"""Other choices: each changes one thing, and the answers follow the rules."""

import numpy as np
import pytest

from heedful.checks.influence.names import CROSS_FITTED, HALF, MASKING, MEAN, NAME, SHUFFLED
from heedful.checks.spec import Evidence
from heedful.core.records import CheckResult, Estimate, EstimateRow
from heedful.pipeline.plan.plan import Plan
from heedful.pipeline.verdict.multiverse import multiverse
from heedful.pipeline.verdict.reach_verdict import reach_verdict
from support.check_powers import WHERE, trusted
from support.columns import columns_of

N = 60
NAMES = np.array(["a", "b"] * (N // 2))


def noisy(mean):
    return mean + np.random.default_rng(int(1000 * mean)).normal(0, 0.05, N)


def columns():
    agreement = {
        "tau_leave_one_out": noisy(0.5),
        "tau_shuffled_leave_one_out": noisy(0.0),
        "tau_gradient_leave_one_out": noisy(0.8),
        "tau_gradient": noisy(0.3),
        "tau_gradient_shuffled": noisy(0.2),
        "top1_leave_one_out": np.ones(N),
    }
    permutation = {"median_tvd": noisy(0.06), "leverage": noisy(0.5)}
    return {"agreement": agreement, "permutation": permutation}


def near(value, half=0.05):
    return Estimate(value, value - half, value + half, 100)


def influence(order, masked, classes=()):
    """A result of `influence` with the given places; those of the controls are as they must be."""
    rows = [
        *(("order", "attention", setting, value) for setting, value in order.items()),
        ("order", "attention", MASKING, masked),
        *(("order", None, setting, 0.9) for setting in (HALF, f"{HALF}, {MEAN}")),
        *((name, None, HALF, 0.9) for name in ("top_set", "top_word")),
        *((name, "attention", None, 0.8) for name in ("top_set", "top_word")),
        ("top_word", "attention", CROSS_FITTED, 0.8),
        ("order", "attention", SHUFFLED, 0.0),
        ("share_below", None, "0.05", 0.0),
    ]
    by = tuple(EstimateRow(name, near(v), m, setting=s) for name, m, s, v in rows)
    by += tuple(
        EstimateRow("order", near(value), "attention", setting=setting, predicted=name)
        for name, value in classes
        for setting in (None, MEAN)
    )
    plain = {"reliability": near(0.9), "top_set_gap": near(0.3), "leverage_top": near(0.2)}
    return Evidence({NAME: CheckResult("undecided", "", plain, by)}, {}, {}, 0.05)


def choices(evidence):
    return {one["choice"]: one for one in multiverse(evidence, trusted())}


def test_lines_move_the_answers_that_go_by_them():
    found = choices(influence({None: 0.6, MEAN: 0.6}, 0.7))
    assert found["the line at a third of the way"]["ranks"] == "supported"
    assert found["the line at two thirds of the way"]["ranks"] != "supported"
    assert found["ε = 0.1"]["used"] == "supported"
    assert "ε = 0.05" not in found  # that is the verdict's own


def test_another_reading_takes_the_place_of_the_first():
    found = choices(influence({None: 0.8, MEAN: 0.8}, 0.6))
    assert found["influence by masking words"]["ranks"] == "supported"
    found = choices(influence({None: 0.8, MEAN: 0.8}, 0.52))
    assert found["influence by masking words"]["ranks"] == "undecided"


def test_classes_alone():
    found = choices(influence({None: 0.6, MEAN: 0.6}, 0.7, classes=[("a", 0.8), ("b", 0.5)]))
    assert found["texts predicted a alone"]["ranks"] == "supported"
    assert found["texts predicted b alone"]["ranks"] == "undecided"


@pytest.mark.parametrize("checks", [("agreement",), ("permutation",)])
def test_with_fewer_checks_there_are_fewer_choices(checks):
    plan = Plan("m", "d", checks=checks, resamples=200)
    values = {name: own for name, own in columns().items() if name in checks}
    values = columns_of(NAMES, values)
    verdict = reach_verdict(plan, values, where=WHERE, labels=["a", "b"], missing={})
    other = {"agreement": "used", "permutation": "ranks"}[checks[0]]
    assert {one[other] for one in verdict.multiverse} == {"not tested"}
    assert len(verdict.multiverse) >= 7
    assert type(verdict).from_json(verdict.to_json()).multiverse == verdict.multiverse
