"""What is kept of an audit: the verdict as JSON there and back, and the keys people script with."""

import json
from math import inf, isnan, nan

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
    Estimate,
    Verdict,
)
from heedful.results.explanation import MethodScores, TextExplanation

TAU = Estimate(0.35, 0.33, 0.37, 1725)


def verdict(**changes):
    """A verdict like the one in the contract."""
    agreement = CheckResult(
        "against",
        "Because.",
        {"tau_gradient": TAU},
        {"0": {"tau_gradient": TAU}},
        {"tau_gradient": 3},
        {"tau_shapley_leave_one_out": "Too many words."},
    )
    settings = {
        "answer": "unfaithful",
        "why": "Nearer to chance.",
        "degree": Estimate(0.41, 0.35, 0.47, 1725),
        "instead": BetterMethod("one_hot_gradient", 0.88, 0.8, 0.93, 1725),
        "claims": {name: ClaimResult("for", "So it is.", ("agreement",)) for name in CLAIMS},
        "checks": {"agreement": agreement},
    }
    return Verdict(**(settings | changes))


def test_the_keys_are_those_of_the_contract():
    raw = json.loads(verdict().to_json())
    named = ["schema", "answer", "why", "degree", "instead", "claims", "checks"]
    assert list(raw) == [*named, "multiverse"]  # the last is ours, and free
    assert raw["schema"] == 1
    assert raw["degree"] == {"value": 0.41, "low": 0.35, "high": 0.47, "n": 1725}
    share = {"recovered_share": 0.88, "low": 0.8, "high": 0.93, "n": 1725}
    assert raw["instead"] == {"method": "one_hot_gradient", **share}
    assert list(raw["claims"]) == ["used", "needed", "ranks", "exclusive", "robust"]
    said = {"answer": "for", "why": "So it is.", "checks": ["agreement"], "further": None}
    assert raw["claims"]["ranks"] == said
    check = raw["checks"]["agreement"]
    tau = {"value": 0.35, "low": 0.33, "high": 0.37, "n": 1725}
    named = {"answer", "why", "estimates", "by_class", "undefined", "missing"}
    assert check.keys() == {*named, "power"}
    assert check["estimates"] == {"tau_gradient": tau}
    assert check["by_class"] == {"0": {"tau_gradient": tau}}
    assert check["undefined"] == {"tau_gradient": 3}
    assert check["missing"] == {"tau_shapley_leave_one_out": "Too many words."}


def test_the_answers_are_those_of_the_contract():
    assert ANSWERS == ("faithful", "unfaithful", "undecided")


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_verdict_comes_back_equal(answer):
    one = verdict(answer=answer)
    assert Verdict.from_json(one.to_json()) == one


def test_a_share_without_an_interval_comes_back_without_one():
    one = verdict(instead=BetterMethod("lime", 0.5))
    assert json.loads(one.to_json())["instead"]["low"] is None
    back = Verdict.from_json(one.to_json()).instead
    assert (back.method, back.recovered_share, back.n) == ("lime", 0.5, 0)
    assert isnan(back.low)


def test_nothing_to_say_is_null():
    one = verdict(degree=None, instead=None, claims={}, checks={})
    raw = json.loads(one.to_json())
    assert (raw["degree"], raw["instead"], raw["claims"], raw["checks"]) == (None, None, {}, {})
    assert Verdict.from_json(one.to_json()) == one


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 10**9), st.text())
def test_numbers_and_words_come_back_to_the_last_bit(value, n, why):
    one = verdict(degree=Estimate(value, value, value, n), why=why)
    assert Verdict.from_json(one.to_json()) == one


def refuse(name):
    raise AssertionError(f"{name} is not JSON")


@pytest.mark.parametrize("hole", [nan, inf, -inf])
def test_numbers_that_do_not_exist_are_null_and_come_back_as_nan(hole):
    holes = Estimate(hole, hole, hole, 0)
    check = CheckResult("undecided", "", {"tau": holes}, {"a": {"tau": holes}})
    one = verdict(degree=holes, checks={"agreement": check})
    raw = json.loads(one.to_json(), parse_constant=refuse)
    nulls = {"value": None, "low": None, "high": None, "n": 0}
    assert raw["degree"] == nulls
    assert raw["checks"]["agreement"]["estimates"]["tau"] == nulls
    assert raw["checks"]["agreement"]["by_class"]["a"]["tau"] == nulls
    back = Verdict.from_json(one.to_json())
    again = back.checks["agreement"]
    for estimate in (back.degree, again.estimates["tau"], again.by_class["a"]["tau"]):
        assert all(map(isnan, (estimate.value, estimate.low, estimate.high)))
        assert estimate.n == 0


@pytest.mark.parametrize("schema", [0, 2, "1", None])
def test_another_schema_is_refused(schema):
    raw = json.loads(verdict().to_json()) | {"schema": schema}
    with pytest.raises(RunError) as caught:
        Verdict.from_json(json.dumps(raw))
    assert str(caught.value) == f"verdict.json has schema {schema!r}; this reads 1."


def test_no_schema_is_refused():
    with pytest.raises(RunError, match=r"^verdict.json has schema None; this reads 1.$"):
        Verdict.from_json("{}")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"schema": 1}'])
def test_a_damaged_verdict_is_refused(text):
    with pytest.raises(RunError, match=r"verdict\.json"):
        Verdict.from_json(text)


@pytest.mark.parametrize(
    ("estimate", "told"),
    [
        (TAU, "0.350 [0.330, 0.370]"),
        (Estimate(-0.0625, -1.0, 1.0, 2), "-0.062 [-1.000, 1.000]"),
        (Estimate(-1e-17, -1e-5, 0.0, 9), "0.000 [0.000, 0.000]"),  # rounding has no sign
        (Estimate(0.5, nan, nan, 1), "0.500 (n = 1, no interval)"),
        (Estimate(nan, nan, nan, 0), "nan (n = 0, no interval)"),
    ],
)
def test_an_estimate_is_told_with_its_interval_or_why_it_has_none(estimate, told):
    assert str(estimate) == told


PROMISED = {"text", "target", "granularity", "tokens", "methods"}  # of --json, in the contract


def test_an_explanation_is_printed_as_the_contract_says():
    scores = MethodScores("attention", False, (0.1, 0.6, 0.3))
    methods, tokens = {"rollout": scores}, ("a", "fine", "film")
    one = TextExplanation("a fine film", "positive", "word", tokens, methods, "negative", 0.25)
    told = one.to_dict()
    assert {name: told[name] for name in PROMISED} == {
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
    assert {name: told[name] for name in told.keys() - PROMISED} == more


def test_what_was_set_and_refused_is_printed_too():
    scores = MethodScores("saliency", True, (0.5,), "logit", {"samples": 8})
    methods, refused = {"lime": scores}, {"flow": "too long"}
    one = TextExplanation("x", "yes", "token", ("x",), methods, "yes", 1.0, refused, True)
    told = one.to_dict()
    assert told["methods"]["lime"]["settings"] == {"samples": 8}
    assert told["methods"]["lime"]["of"] == "logit"
    assert (told["refused"], told["truncated"]) == (refused, True)
