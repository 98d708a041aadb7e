"""The table of powers: which row holds for whom, what a vote weighs, and what ships."""

import json
from importlib.resources import files

import pytest

from heedful.checks import checks, default_checks
from heedful.core.records import Estimate
from heedful.pipeline.verdict.check_power import (
    NOT_MEASURED,
    AuditSetting,
    PowerTable,
    describe_power,
    powers_for,
    read_bundled_powers,
)
from heedful.pipeline.verdict.judge import texts_needed
from heedful.planted import ASKED_KINDS, KINDS, PLANTED_VERSION, Case
from support.check_powers import VOTERS, row, trusted

ROWS = tuple(
    row("ranks", "agreement", 20, texts - 10, words=words, texts=texts, architecture=kind)
    for kind in ("recurrent", "transformer")
    for words in (10, 20, 60)
    for texts in (10, 25)
)


@pytest.mark.parametrize(
    ("where", "like"),
    [
        (AuditSetting("recurrent", 10.0, 10), "recurrent, 10 texts of about 10 words"),
        (AuditSetting("recurrent", 13.0, 24), "recurrent, 10 texts of about 10 words"),
        (AuditSetting("recurrent", 15.0, 25), "recurrent, 25 texts of about 20 words"),
        (AuditSetting("transformer", 300.0, 9999), "transformer, 25 texts of about 60 words"),
        (AuditSetting("recurrent", 5.0, 10), "recurrent, 10 texts of about 10 words"),
        (AuditSetting("recurrent", 4.9, 10), "recurrent, 10 texts of about 10 words"),
        (AuditSetting("recurrent", 0.0, 10), "recurrent, 10 texts of about 10 words"),
        (AuditSetting("recurrent", 299.0, 10), "recurrent, 10 texts of about 60 words"),
        (AuditSetting("recurrent", 301.0, 10), "recurrent, 10 texts of about 60 words"),
        (AuditSetting("recurrent", 20.0, 9), None),
        (AuditSetting("perceptron", 20.0, 100), None),
    ],
)
def test_the_row_of_such_subjects_and_texts_or_none(where, like):
    found = PowerTable(where, ROWS).of("ranks", "agreement")
    assert (found and found.like) == like
    assert PowerTable(where, ROWS).of("used", "agreement") is None


def test_without_power_it_says_so():
    assert describe_power(None) == NOT_MEASURED == "power not measured"
    known = trusted(row("ranks", "agreement", 8, 1, 1)).of("ranks", "agreement")
    assert describe_power(known) == (
        "misses 10%, false alarms 10%, undecided 10% "
        "(20 cases of known truth, of 2 kinds: recurrent, 10 texts of about 20 words)"
    )


@pytest.mark.parametrize(
    ("right", "wrong", "undecided", "votes"),
    [(30, 0, 0, True), (15, 0, 15, False), (25, 5, 0, False), (29, 1, 0, True), (0, 0, 30, False)],
)
def test_a_vote_takes_being_right_clearly_more_often_than_wrong(right, wrong, undecided, votes):
    power = trusted(row("ranks", "agreement", right, wrong, undecided)).of("ranks", "agreement")
    assert (power.weight > 0) is votes
    assert power.weight in (0.0, power.skill.low)


def test_a_witness_who_is_silent_about_one_side_and_never_wrong_has_a_vote():
    one_sided = {
        **row("exclusive", "permutation"),
        "kinds": {"y": [True, 0, 0, 9], "n": [False, 0, 9, 0]},
    }
    assert trusted(one_sided).of("exclusive", "permutation").weight == 0.5


def test_the_shipped_table_is_of_this_benchmark_and_every_witness():
    table = read_bundled_powers()
    assert table["planted"] == PLANTED_VERSION
    measured = {(one["claim"], one["check"]) for one in table["rows"]}
    assert measured == set(VOTERS)
    asked = {
        one["architecture"] == "recurrent with a question"
        for one in table["rows"]
        if set(one["kinds"]) & set(ASKED_KINDS)
    }
    assert asked == {True}  # those with questions are never mixed with others
    for one in table["rows"]:
        for kind, (truth, *counts) in one["kinds"].items():
            assert sum(counts) > 0
            if kind in {*KINDS, *ASKED_KINDS}:
                assert Case(kind, "easy", 10, 0).truth[one["claim"]] is truth
    raw = files("heedful.pipeline.verdict").joinpath("power.json").read_text(encoding="utf-8")
    assert json.loads(raw) == table


def test_of_the_usual_checks_some_vote_on_used_and_ranks():
    for architecture in ("recurrent", "recurrent with a question", "transformer"):
        known = powers_for(AuditSetting(architecture, 20.0, 100))
        assert known.of("used", "influence").weight > 0.5
        assert known.of("ranks", "influence").weight > 0.5
        assert known.of("used", "permutation") is known.of("ranks", "agreement") is None
    assert {check for _, check in VOTERS} <= set(checks)
    assert {"influence", "agreement", "permutation"} <= set(default_checks())


def test_influence_has_one_row_for_any_model():
    rows = [
        powers_for(AuditSetting(architecture, words, 100)).of("ranks", "influence")
        for architecture, words in (("recurrent", 20.0), ("transformer", 400.0), ("unknown", 5.0))
    ]
    assert rows[0].like == rows[1].like == rows[2].like == "any model, 120 texts"
    assert rows[0].kinds > 100


@pytest.mark.parametrize(
    ("found", "more"),
    [
        (Estimate(0.6, 0.4, 0.8, 100), 300),
        (Estimate(0.4, 0.3, 0.55, 100), 125),  # its upper half counts
        (Estimate(0.6, 0.55, 0.65, 100), 0),  # it is decided
        (Estimate(0.5, 0.4, 0.6, 100), None),
        (Estimate(0.501, 0.4, 0.6, 100), None),  # a hundred times as many would not do
        (Estimate(float("nan"), float("nan"), float("nan"), 0), None),
        (Estimate(0.6, float("nan"), float("nan"), 1), None),
    ],
)
def test_texts_that_would_decide(found, more):
    assert texts_needed(found, 0.5) == more
