"""What is kept of an audit: the verdict as JSON there and back, and the keys people script with."""

import json
from math import inf, isnan, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.core.errors import RunError
from heedful.core.records import (
    ANSWERS,
    CLAIMS,
    BetterMethod,
    CheckResult,
    ClaimResult,
    Degree,
    Estimate,
    EstimateRow,
    MeasureKey,
    Measurement,
    MissingMeasure,
    Verdict,
)
from heedful.results.explanation import MethodScores, TextExplanation

TAU = Estimate(0.35, 0.33, 0.37, 1725)


ROWS = (
    EstimateRow("tau_gradient", TAU, predicted="0"),
    EstimateRow("tau_leave_one_out", TAU, method="lime", undefined=2),
    EstimateRow("tau_leave_one_out", TAU, layer=3, head=0),
    EstimateRow("tau_leave_one_out", TAU, seed=0, setting="λ 0.1", slice="Length: 3 words"),
)


def verdict(**changes):
    """A verdict like the one in the contract."""
    agreement = CheckResult(
        "refutes",
        "Because.",
        {"tau_gradient": TAU},
        ROWS,
        {"tau_gradient": 3},
        (MissingMeasure("tau_leave_one_out", "Too many words.", "shapley"),),
    )
    settings = {
        "answer": "unfaithful",
        "why": "Nearer to chance.",
        "degree": Degree("agreement", Estimate(0.41, 0.35, 0.47, 1725)),
        "instead": BetterMethod("one_hot_gradient", Estimate(0.88, 0.8, 0.93, 1725)),
        "claims": {name: ClaimResult("supported", "So it is.", ("agreement",)) for name in CLAIMS},
        "checks": {"agreement": agreement},
    }
    return Verdict(**(settings | changes))


def test_the_keys_are_those_of_the_contract():
    raw = json.loads(verdict().to_json())
    named = ["schema", "answer", "why", "degree", "places", "flips", "score", "texts", "instead"]
    assert list(raw) == [*named, "claims", "checks", "multiverse"]  # the last is ours, and free
    assert raw["schema"] == 2
    known = {"value": 0.41, "low": 0.35, "high": 0.47, "n": 1725}
    assert raw["degree"] == {"of": "agreement", **known}
    share = {"value": 0.88, "low": 0.8, "high": 0.93, "n": 1725}
    assert raw["instead"] == {"method": "one_hot_gradient", "order": share}
    assert list(raw["claims"]) == ["used", "needed", "ranks", "exclusive", "robust"]
    claim = {"answer": "supported", "why": "So it is.", "checks": ["agreement"], "further": None}
    assert raw["claims"]["ranks"] == claim
    check = raw["checks"]["agreement"]
    tau = {"value": 0.35, "low": 0.33, "high": 0.37, "n": 1725}
    assert list(check) == ["answer", "why", "estimates", "by", "undefined", "missing", "power"]
    assert check["answer"] == "refutes"
    assert check["estimates"] == {"tau_gradient": tau}
    assert check["by"] == [
        {"measure": "tau_gradient", "class": "0", **tau},
        {"measure": "tau_leave_one_out", "method": "lime", **tau, "undefined": 2},
        {"measure": "tau_leave_one_out", "layer": 3, "head": 0, **tau},
        {
            **{"measure": "tau_leave_one_out", "seed": 0, "setting": "λ 0.1"},
            **{"slice": "Length: 3 words", **tau},
        },
    ]
    assert check["undefined"] == {"tau_gradient": 3}
    assert check["missing"] == [
        {"measure": "tau_leave_one_out", "method": "shapley", "reason": "Too many words."}
    ]


def test_estimates_are_found_by_exactly_their_keys():
    check = verdict().checks["agreement"]
    assert check.of("tau_gradient") == TAU
    assert check.of("tau_leave_one_out").n == 0  # there are only rows
    assert check.of("tau_leave_one_out", layer=3, head=0) == TAU
    assert check.of("tau_leave_one_out", layer=3).n == 0
    assert check.of("tau_leave_one_out", layer=4, head=0).n == 0
    assert check.rows("tau_leave_one_out", layer=3) == [ROWS[2]]
    assert check.by_method("tau_leave_one_out") == {"lime": TAU}
    assert check.by_class("tau_gradient") == {"0": TAU}
    assert (check.classes, check.methods) == (("0",), ("lime",))
    assert check.measured
    assert not CheckResult("undecided", "", {}).measured


@pytest.mark.parametrize(
    ("key", "written"),
    [
        (MeasureKey("permutation", "leverage"), "permutation.leverage"),
        (MeasureKey("", "degree"), "degree"),
        (MeasureKey("faithfulness", "flip", "lime"), "faithfulness.flip[lime]"),
        (
            MeasureKey("roar", "score", "lime", 0, 5, 0, "0.5"),
            "roar.score[lime, layer 0, head 5, seed 0, 0.5]",
        ),
    ],
)
def test_a_key_is_written_as_users_write_it(key, written):
    assert str(key) == written
    assert key.plain == ("[" not in written)
    assert Measurement(key.measure, np.empty(0), key.setting, *key[2:6]).key(key.check) == key


def test_the_answers_are_those_of_the_contract():
    assert ANSWERS == ("faithful", "unfaithful", "undecided")


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_verdict_comes_back_equal(answer):
    one = verdict(answer=answer)
    assert Verdict.from_json(one.to_json()) == one


def test_a_share_without_an_interval_comes_back_without_one():
    one = verdict(instead=BetterMethod("lime", Estimate(0.5, nan, nan, 0)))
    assert json.loads(one.to_json())["instead"]["order"]["low"] is None
    back = Verdict.from_json(one.to_json()).instead
    assert (back.method, back.order.value, back.order.n) == ("lime", 0.5, 0)
    assert isnan(back.order.low)


def test_nothing_to_say_is_null():
    one = verdict(degree=None, instead=None, claims={}, checks={})
    raw = json.loads(one.to_json())
    assert (raw["degree"], raw["instead"], raw["claims"], raw["checks"]) == (None, None, {}, {})
    assert Verdict.from_json(one.to_json()) == one


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 10**9), st.text())
def test_numbers_and_words_come_back_to_the_last_bit(value, n, why):
    one = verdict(degree=Degree("order", Estimate(value, value, value, n)), why=why)
    assert Verdict.from_json(one.to_json()) == one


def refuse(name):
    raise AssertionError(f"{name} is not JSON")


@pytest.mark.parametrize("hole", [nan, inf, -inf])
def test_numbers_that_do_not_exist_are_null_and_come_back_as_nan(hole):
    holes = Estimate(hole, hole, hole, 0)
    row = EstimateRow("tau", holes, predicted="a")
    check = CheckResult("undecided", "", {"tau": holes}, (row,))
    one = verdict(degree=Degree("agreement", holes), checks={"agreement": check})
    raw = json.loads(one.to_json(), parse_constant=refuse)
    nulls = {"value": None, "low": None, "high": None, "n": 0}
    assert raw["degree"] == {"of": "agreement", **nulls}
    assert raw["checks"]["agreement"]["estimates"]["tau"] == nulls
    assert raw["checks"]["agreement"]["by"] == [{"measure": "tau", "class": "a", **nulls}]
    back = Verdict.from_json(one.to_json())
    again = back.checks["agreement"]
    for estimate in (back.degree.estimate, again.of("tau"), again.of("tau", predicted="a")):
        assert all(map(isnan, (estimate.value, estimate.low, estimate.high)))
        assert estimate.n == 0


@pytest.mark.parametrize("schema", [0, 1, 3, "2", None])
def test_another_schema_is_refused(schema):
    raw = json.loads(verdict().to_json()) | {"schema": schema}
    with pytest.raises(RunError) as caught:
        Verdict.from_json(json.dumps(raw))
    assert str(caught.value) == f"verdict.json has schema {schema!r}; this reads 2."


def test_no_schema_is_refused():
    with pytest.raises(RunError, match=r"^verdict.json has schema None; this reads 2.$"):
        Verdict.from_json("{}")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"schema": 2}'])
def test_a_damaged_verdict_is_refused(text):
    with pytest.raises(RunError, match=r"verdict\.json"):
        Verdict.from_json(text)


@pytest.mark.parametrize(
    ("estimate", "written"),
    [
        (TAU, "0.350 [0.330, 0.370]"),
        (Estimate(-0.0625, -1.0, 1.0, 2), "-0.062 [-1.000, 1.000]"),
        (Estimate(-1e-17, -1e-5, 0.0, 9), "0.000 [0.000, 0.000]"),  # rounding has no sign
        (Estimate(0.5, nan, nan, 1), "0.500 (n = 1, no interval)"),
        (Estimate(nan, nan, nan, 0), "nan (n = 0, no interval)"),
        (Estimate(0.04, nan, nan, 20), "0.040"),  # a p-value
    ],
)
def test_an_estimate_is_written_with_its_interval_or_why_it_has_none(estimate, written):
    assert str(estimate) == written


PROMISED = {"text", "target", "granularity", "tokens", "methods"}  # of --json, in the contract


def test_an_explanation_is_printed_as_the_contract_says():
    scores = MethodScores("attention", False, (0.1, 0.6, 0.3))
    methods, tokens = {"rollout": scores}, ("a", "fine", "film")
    one = TextExplanation("a fine film", "positive", "word", tokens, methods, "negative", 0.25)
    raw = one.to_dict()
    assert {name: raw[name] for name in PROMISED} == {
        "text": "a fine film",
        "target": "positive",
        "granularity": "word",
        "tokens": ["a", "fine", "film"],
        "methods": {
            "rollout": {
                "kind": "attention",
                "signed": False,
                "of": None,
                "scores": [0.1, 0.6, 0.3],
            }
        },
    }
    more = {"predicted": "negative", "probability": 0.25, "refused": {}, "truncated": False}
    assert {name: raw[name] for name in raw.keys() - PROMISED} == more


def test_what_was_set_and_refused_is_printed_too():
    scores = MethodScores("saliency", True, (0.5,), "logit", {"samples": 8})
    methods, refused = {"lime": scores}, {"flow": "too long"}
    one = TextExplanation("x", "yes", "token", ("x",), methods, "yes", 1.0, refused, True)
    raw = one.to_dict()
    assert raw["methods"]["lime"]["settings"] == {"samples": 8}
    assert raw["methods"]["lime"]["of"] == "logit"
    assert (raw["refused"], raw["truncated"]) == (refused, True)
