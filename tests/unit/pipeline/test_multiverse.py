"""Other choices: each changes one thing, and the answers follow the rules."""

import numpy as np
import pytest

from heedful.pipeline.plan.plan import Plan
from heedful.pipeline.verdict.estimate import Bootstrap, estimate_all
from heedful.pipeline.verdict.multiverse import multiverse
from heedful.pipeline.verdict.reach_verdict import reach_verdict
from support.check_powers import WHERE, trusted
from support.columns import columns_of

PLAN = Plan("m", "d", checks=("agreement", "permutation"), resamples=400)
N = 60
NAMES = np.array(["a", "b"] * (N // 2))


def noisy(mean):
    return mean + np.random.default_rng(int(1000 * mean)).normal(0, 0.05, N)


def columns(**changes):
    agreement = {
        "tau_leave_one_out": noisy(0.5),
        "tau_shuffled_leave_one_out": noisy(0.0),
        "tau_gradient_leave_one_out": noisy(0.8),
        "tau_gradient": noisy(0.3),
        "tau_gradient_shuffled": noisy(0.2),
        "top1_leave_one_out": np.ones(N),
    }
    permutation = {"median_tvd": noisy(0.06), "leverage": noisy(0.5)}
    both = {"agreement": agreement, "permutation": permutation}
    return {name: {**own, **changes.get(name, {})} for name, own in both.items()}


def rows(plan=PLAN, **changes):
    values = columns_of(NAMES, columns(**changes))
    evidence = estimate_all(plan, values, missing={}, labels=["a", "b"])
    found = multiverse(values, evidence, trusted(), Bootstrap.of(plan))
    return {one["choice"]: one for one in found}


def test_lines_move_the_answers_that_go_by_them():
    found = rows()
    assert found["ε = 0.01"]["used"] == "supported"
    assert found["ε = 0.1"]["used"] == "refuted"
    assert "ε = 0.05" not in found  # that is the verdict's own
    assert found["the line at a third of the way"]["ranks"] == "supported"  # the degree is 0.625
    assert found["the line at two thirds of the way"]["ranks"] != "supported"
    assert found["the line at two thirds of the way"]["used"] == "supported"  # as with ε = 0.05


def test_references_and_yardsticks():
    found = rows()
    # from 0 to 1 attention is halfway
    assert found["reference: leave-one-out’s own ranking"]["ranks"] == "undecided"
    # (0.3 − 0.2) / (0.8 − 0.2)
    assert found["yardstick: the gradient"]["ranks"] == "refuted"
    tried = Plan("m", "d", checks=("agreement",), settings={"agreement": {"methods": ("lime",)}})
    found = rows(tried, agreement={("tau_leave_one_out", "lime"): noisy(1.2)})
    assert found["reference: lime"]["ranks"] == "refuted"


def test_classes_alone():
    taus = np.where(NAMES == "a", 0.7, 0.1) + noisy(0.0)
    moved = np.where(NAMES == "a", 0.2, 0.01)
    found = rows(agreement={"tau_leave_one_out": taus}, permutation={"median_tvd": moved})
    assert found["texts predicted a alone"]["ranks"] == "supported"
    assert found["texts predicted b alone"]["ranks"] == "refuted"
    assert found["texts predicted a alone"]["used"] == "supported"
    assert found["texts predicted b alone"]["used"] == "refuted"


def test_special_tokens_where_a_model_has_them():
    assert "special tokens shuffled too" not in rows()
    found = rows(permutation={"median_tvd_all_keys": noisy(0.3)})
    assert found["special tokens shuffled too"]["used"] == "supported"


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
