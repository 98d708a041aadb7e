"""Numbers with intervals, claims held against them, tables and pages, by hand."""

from dataclasses import replace
from math import isnan, nan

import numpy as np
import pytest
from scipy import stats

from heedful.core.records import Estimate
from heedful.report.pages.section_page import render_page_html, render_page_markdown
from heedful.studies.cell_results import CellResults
from heedful.studies.claims import ClaimFinding, evaluate_claims
from heedful.studies.estimates import (
    STATISTICS,
    UNIT_RANGE,
    estimate_statistic,
    mean,
    t_interval_over_seeds,
    value_range,
)
from heedful.studies.figures import build_study_figures
from heedful.studies.page import (
    StudyOutcome,
    build_cost_section,
    build_heading,
    build_sections,
    format_sample_size,
)
from heedful.studies.published_numbers import (
    NumberKey,
    PublishedNumber,
    PublishedNumbers,
    ReplicatedNumber,
    compare_numbers,
    estimate_number,
    render_csv,
)
from heedful.studies.study import QuickSettings, SetupDifference, Study, StudyClaim, StudyDataset

MAIN, OTHER = ("bilstm", "additive"), ("bilstm", "dot")
TAU, REFERENCE = "agreement.tau_leave_one_out", "agreement.tau_gradient_leave_one_out"


class Fake(CellResults):
    """Cells whose numbers are given."""

    seeds = instances = None  # set below, where cells would look into their runs

    def __init__(self, tables, seeds=1, performance=None):
        given = {name: np.array(one, dtype=float) for name, one in tables.items()}
        for name, value in (
            ("tables", given),
            ("seeds", tuple(range(seeds))),
            ("instances", np.arange(next(iter(given.values())).shape[1])),
            ("scores", performance or {}),
            ("class_names", {"0": ("0", "negative"), "1": ("1", "positive")}),
        ):
            object.__setattr__(self, name, value)

    def table(self, measure, of_class="all"):
        empty = np.full((len(self.seeds), len(self.instances)), nan)
        return self.tables.get(measure, empty)

    def performance(self, name):
        return np.array(self.scores.get(name, [nan]))

    def verdict_estimates(self, measure):
        return ()


def study_of(*claims):
    sets = (StudyDataset("sst", "SST", ("sst",)), StudyDataset("snli", "SNLI", ("snli",)))
    return Study(
        "a-study",
        "A <b>title</b>",
        "Somebody, 2019",
        "Why?",
        ("bilstm",),
        ("additive", "dot"),
        ("agreement",),
        MAIN,
        1,
        QuickSettings(10, 5, 1),
        sets,
        claims,
    )


def test_over_seeds_is_students_interval():
    values = np.array([0.31, 0.29, 0.35, 0.30])
    found = t_interval_over_seeds(values)
    low, high = stats.t.interval(0.95, 3, loc=values.mean(), scale=stats.sem(values))
    assert (found.value, found.low, found.high, found.n) == pytest.approx(
        (values.mean(), low, high, 4)
    )
    alone = t_interval_over_seeds(np.array([0.3, nan]))
    assert alone.value == 0.3
    assert isnan(alone.low)
    assert alone.n == 1
    assert t_interval_over_seeds(np.array([nan])).n == 0


def test_the_interval_of_a_share_holds_no_share_that_cannot_be():
    values = np.array([0.99, 0.90, 0.70])
    assert t_interval_over_seeds(values).high > 1
    found = t_interval_over_seeds(values, UNIT_RANGE)
    assert (found.value, found.low, found.high) == (
        t_interval_over_seeds(values).value,
        t_interval_over_seeds(values).low,
        1.0,
    )
    flips = np.array([[1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    assert (
        estimate_statistic(flips, mean, UNIT_RANGE).low,
        estimate_statistic(flips, mean, UNIT_RANGE).high,
    ) == (0.0, 1.0)


def test_one_seed_has_an_interval_over_texts_and_undefined_ones_do_not_count():
    random = np.random.default_rng(0)
    values = random.normal(0.3, 0.2, 200)
    found = estimate_statistic(np.append(values, [nan] * 5)[None], mean)
    assert found.n == 200
    assert found.value == pytest.approx(values.mean())
    half = 1.972 * values.std(ddof=1) / np.sqrt(200)
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.1)


def test_statistics_are_what_their_names_say():
    values = np.array([0.1, 0.5, 0.6, 0.9])
    want = {
        "mean": 0.525,
        "sd": np.std(values),
        "median": 0.55,
        "share 0.5": 0.75,
        "share 0.6": 0.5,
    }
    assert {name: one(values) for name, one in STATISTICS.items()} == pytest.approx(want)


def test_several_seeds_are_held_as_the_mean_of_their_means():
    table = np.array([[0.1, 0.3], [0.3, 0.7]])
    found = estimate_statistic(table, mean)
    assert found.value == pytest.approx(0.35)
    assert found.n == 2


def claim(kind="measures", **rest):
    return StudyClaim("c", "It is so", kind, TAU, **rest)


@pytest.mark.parametrize(
    ("first", "second", "answer"),
    [(0.6, 0.3, "held"), (0.3, 0.6, "did not hold"), (0.3, 0.3, "undecided")],
)
def test_a_claim_of_two_measures(first, second, answer):
    noise = np.random.default_rng(0).normal(0, 0.05, (2, 60))
    noise -= noise.mean(1, keepdims=True)
    made = {("sst", MAIN): Fake({TAU: [first + noise[0]], REFERENCE: [second + noise[1]]})}
    known = PublishedNumbers(
        {
            NumberKey("sst", MAIN, TAU, "mean"): PublishedNumber(0.5, "repo"),
            NumberKey("sst", MAIN, REFERENCE, "mean"): PublishedNumber(0.2, "repo"),
        }
    )
    (found,) = evaluate_claims(study_of(claim(than=REFERENCE)), made, known)
    assert found.answer == answer
    assert found.estimate.value == pytest.approx(first - second)
    assert found.published == pytest.approx(0.3)
    assert found.as_published == {"held": True, "did not hold": False, "undecided": None}[answer]


def test_a_claim_of_two_models_goes_seed_by_seed():
    tables = [[0.5, 0.6], [0.4, 0.6], [0.6, 0.6]], [[0.1, 0.2], [0.1, 0.3], [0.2, 0.2]]
    made = {
        ("sst", model): Fake({TAU: table}, seeds=3)
        for model, table in zip((MAIN, OTHER), tables, strict=True)
    }
    study = study_of(claim("models", than_model=OTHER))
    (found,) = evaluate_claims(study, made, PublishedNumbers({}))
    want = t_interval_over_seeds(np.array([0.55 - 0.15, 0.5 - 0.2, 0.6 - 0.2]))
    assert (found.estimate.low, found.estimate.high) == pytest.approx((want.low, want.high))
    assert (found.answer, found.over) == ("held", "seeds")


def test_two_models_are_held_against_each_other_on_the_seeds_both_have():
    noise = np.random.default_rng(1).normal(0, 0.05, 40)
    mine, theirs = [0.5 + noise, 0.1 + noise, 0.1 + noise], [0.3 + 2 * noise]
    made = {
        ("sst", MAIN): Fake({TAU: mine}, seeds=3),
        ("sst", OTHER): Fake({TAU: theirs}),
    }
    (found,) = evaluate_claims(
        study_of(claim("models", than_model=OTHER)), made, PublishedNumbers({})
    )
    assert found.estimate.value == pytest.approx(0.2 - noise.mean())
    assert (found.answer, found.over) == ("held", "texts")


def test_what_is_claimed_of_one_model_is_asked_of_transformers_too():
    tuned = ("models/minilm", "own")
    made = {
        ("sst", MAIN): Fake({TAU: [[0.6, 0.7] * 20], REFERENCE: [[0.1, 0.2] * 20]}),
        ("sst", tuned): Fake({TAU: [[0.1, 0.2] * 20], REFERENCE: [[0.6, 0.7] * 20]}),
    }
    ours, beyond = evaluate_claims(study_of(claim(than=REFERENCE)), made, PublishedNumbers({}))
    assert (ours.answer, ours.dataset_label("SST")) == ("held", "SST")
    assert (beyond.answer, beyond.dataset_label("SST")) == ("did not hold", "SST, minilm")
    assert beyond.as_published is None
    assert beyond.estimate.value == pytest.approx(-0.5)
    assert (
        len(
            evaluate_claims(study_of(claim("models", than_model=OTHER)), made, PublishedNumbers({}))
        )
        == 1
    )


def test_a_model_that_was_not_run_leaves_a_claim_unexamined():
    made = {("sst", MAIN): Fake({TAU: [[0.1, 0.2]]})}
    (found,) = evaluate_claims(
        study_of(claim("models", than_model=OTHER)), made, PublishedNumbers({})
    )
    assert (found.answer, found.why) == ("not examined", "bilstm dot was not run")
    (found,) = evaluate_claims(
        study_of(claim(than="agreement.nothing")), made, PublishedNumbers({})
    )
    assert found.answer == "not examined"


def test_a_share_of_texts_and_a_mean_below_a_line():
    made = {("sst", MAIN): Fake({TAU: [np.r_[np.full(90, 0.6), np.full(10, 0.1)]]})}
    (share,) = evaluate_claims(study_of(claim("share", line=0.5)), made, PublishedNumbers({}))
    assert (share.answer, share.estimate.value) == ("held", pytest.approx(0.9))
    seeds = [np.r_[np.full(many, 0.6), np.full(10 - many, 0.1)] for many in (10, 10, 8)]
    over = {("sst", MAIN): Fake({TAU: seeds}, seeds=3)}
    (several,) = evaluate_claims(study_of(claim("share", line=0.5)), over, PublishedNumbers({}))
    assert several.estimate.high == 1.0
    (below,) = evaluate_claims(study_of(claim("below", line=0.7)), made, PublishedNumbers({}))
    assert below.answer == "held"
    (above,) = evaluate_claims(study_of(claim("below", line=0.1)), made, PublishedNumbers({}))
    assert above.answer == "did not hold"


def test_where_the_paper_says_otherwise_not_holding_is_as_published():
    made = {("snli", MAIN): Fake({TAU: [np.linspace(0.1, 0.3, 50)], REFERENCE: [[0.6] * 50]})}
    (found,) = evaluate_claims(
        study_of(claim(than=REFERENCE, except_=("snli",))), made, PublishedNumbers({})
    )
    assert found.answer == "did not hold"
    assert found.as_published is True


def test_rows_stand_beside_published_numbers_and_medians_are_taken_in_bins():
    values, height = [0.1, 0.2, 0.6, 0.8], [0.1, 0.2, 0.3, 0.9]
    cells = Fake(
        {"permutation.median_tvd": [values], "permutation.max_attention": [height], TAU: [values]},
        performance={"accuracy": [0.8, 0.9]},
    )
    keys = {
        NumberKey("sst", MAIN, "permutation.median_tvd", "median 0.00-0.25"): PublishedNumber(
            0.03, "svg"
        ),
        NumberKey("sst", MAIN, "performance.accuracy", "value"): PublishedNumber(0.81, "repo"),
        NumberKey("sst", MAIN, TAU, "mean"): PublishedNumber(0.29, "repo"),
        NumberKey("sst", MAIN, REFERENCE, "mean"): PublishedNumber(0.66, "repo"),
        NumberKey("imdb", MAIN, TAU, "mean"): PublishedNumber(0.34, "repo"),
    }
    rows = {row.key: row for row in compare_numbers({("sst", MAIN): cells}, PublishedNumbers(keys))}
    binned, score, tau, missing = (rows[key] for key in list(keys)[:4])
    assert binned.ours.value == pytest.approx(0.15)
    assert score.ours.value == pytest.approx(0.85)
    assert score.difference == pytest.approx(0.04)
    assert tau.ours.value == pytest.approx(0.425)
    assert missing.ours is None
    assert isnan(missing.difference)
    assert NumberKey("imdb", MAIN, TAU, "mean") not in rows
    table = render_csv(list(rows.values())).splitlines()
    assert len(table) == len(rows) + 1
    assert table[3].startswith(
        "sst,bilstm additive,all,all,agreement.tau_leave_one_out,mean,0.425,"
    )
    assert table[4].endswith(",0.66,repo,")


def test_a_published_number_inside_our_interval_is_said():
    row = ReplicatedNumber(
        NumberKey("sst", MAIN, TAU, "mean"),
        Estimate(0.3, 0.2, 0.4, 3),
        "seeds",
        PublishedNumber(0.35, "repo"),
    )
    assert row.inside is True
    assert (
        estimate_number(NumberKey("sst", MAIN, "performance.f1", "value"), Fake({TAU: [[0.1]]}))
        is None
    )


def test_pages_escape_every_word():
    study = replace(study_of(), differs=(SetupDifference("a|b <u>", "x|y", "<img src=x>"),))
    cells = [f"<i>odd</i> {number}" for number in range(2)]
    outcome = StudyOutcome(study, {}, (), (), (), {"sst": "<p>"}, {cells[0]: "<b>"}, missing=cells)
    heading, sections = build_heading(outcome), build_sections(outcome)
    page = render_page_html(heading, sections, kind="reproduced")
    text = render_page_markdown(heading, sections)
    for bad in ("<i>odd", "<img src", "<b>title", "<u>", "<p>,"):
        assert bad not in page
        assert bad not in text.replace("\\<", "")
    assert "x\\|y" in text
    for said in ("1 cell failed; see Set-up for why.", "Not run yet: 1 cell: "):
        assert said in page
        assert said in text


def test_the_page_shows_answers_and_numbers_by_class():
    claims = [claim(than=REFERENCE), claim("share", line=0.5)]
    found = [
        ClaimFinding(claims[0], "sst", "held", Estimate(0.3, 0.2, 0.4, 3), 0.1, "seeds"),
        ClaimFinding(claims[0], "snli", "not examined", why="not measured"),
    ]
    keys = [NumberKey("sst", MAIN, TAU, "mean", one) for one in ("all", "1")]
    rows = [ReplicatedNumber(key, Estimate(-0.3, -0.4, 0.1, 9), "texts") for key in keys]
    outcome = StudyOutcome(study_of(*claims), {}, rows, found, (), {})
    heading, sections = build_heading(outcome), build_sections(outcome)
    page = render_page_html(heading, sections, kind="reproduced")
    assert '<span class="answer did-not-hold">' not in page
    assert '<span class="answer held">held</span>' in page
    assert "τ of attention and leave-one-out, by predicted class" in page
    text = render_page_markdown(heading, sections)
    assert r"| SST | held | 0.300 \[0.200, 0.400\] | 3 seeds | 0.100 | yes |" in text
    assert "| SNLI | not examined: not measured | – |" in text
    assert r"−0.300 \[−0.400, 0.100\] | 9 texts | – | – |" in text


def test_the_cost_of_a_study_adds_up():
    cells = Fake({TAU: [[0.1]]})
    spent = {"training": 60.0, "audit": 150.0, "leave_one_out": 60.0, "gradient": 30.0}
    spent |= {"adversarial": 36.0, "forward": 6.0}
    object.__setattr__(cells, "summaries", ({"cpu_seconds": spent},))
    made = {("sst", MAIN): cells, ("sst", OTHER): cells, ("snli", MAIN): cells}
    (table,) = build_cost_section(StudyOutcome(study_of(), made, (), (), (), {})).tables
    head = ("data set", "cells", "training", "leave-one-out", "adversarial", "gradient")
    assert table.head == (*head, "rest of the audit", "all")
    assert table.rows == (
        ("sst", "2", "2.0", "2.0", "1.2", "1.0", "0.8", "7.0"),
        ("snli", "1", "1.0", "1.0", "0.6", "0.5", "0.4", "3.5"),
        ("all", "3", "3.0", "3.0", "1.8", "1.5", "1.2", "10.5"),
    )


def test_means_are_drawn_beside_the_published_ones():
    ours, theirs = Estimate(0.3, 0.2, 0.4, 3), PublishedNumber(0.25, "repo")
    tuned = ("models/minilm", "own")
    numbers = [
        ReplicatedNumber(NumberKey("sst", MAIN, TAU, "mean"), ours, "seeds", theirs),
        ReplicatedNumber(
            NumberKey("sst", OTHER, TAU, "mean"), Estimate(0.5, nan, nan, 1), "texts", theirs
        ),
        ReplicatedNumber(
            NumberKey("sst", tuned, TAU, "mean"), Estimate(-0.1, -0.2, 0.0, 9), "texts"
        ),
        ReplicatedNumber(NumberKey("sst", MAIN, TAU, "sd"), ours, "seeds", theirs),
        ReplicatedNumber(NumberKey("sst", MAIN, TAU, "mean", "1"), ours, "seeds", theirs),
        ReplicatedNumber(NumberKey("sst", ("cnn", "dot"), TAU, "mean"), None, "", theirs),
    ]
    (found,) = build_study_figures(study_of(claim()), {}, [], numbers)
    told = [(row["group"], row["class"], row["value"], row["certain"]) for row in found.rows]
    name = found.rows[0]["group"].split(",")[0]
    assert told == [
        (f"{name}, bilstm additive", "here", 0.3, True),  # filled: the published lies within
        (f"{name}, bilstm additive", "published", 0.25, False),
        (f"{name}, bilstm dot", "here", 0.5, False),
        (f"{name}, bilstm dot", "published", 0.25, False),
        (f"{name}, minilm", "here", -0.1, False),
    ]
    assert (found.rows[0]["low"], found.rows[0]["high"]) == (0.2, 0.4)
    assert found.rows[2]["low"] == 0.5  # no interval: a point
    assert found.span == (pytest.approx(-0.25), pytest.approx(0.55))


@pytest.mark.parametrize(
    ("measure", "statistic", "ends"),
    [
        ("agreement.tau_leave_one_out", "mean", (-1, 1)),
        ("agreement.tau_leave_one_out", "sd", (0, 1)),
        ("agreement.tau_leave_one_out", "significant", (0, 1)),
        ("permutation.median_tvd", "median", (0, 1)),
        ("adversarial.epsilon_max_jsd", "mean", (0, np.log(2))),
        ("adversarial.epsilon_max_jsd", "share 0.5", (0, 1)),
        ("seeds.jsd_adversary_beyond_seeds", "mean", (-np.inf, np.inf)),
        ("erasure.js_top_minus_random", "mean", (-np.inf, np.inf)),
        ("erasure.flip_both", "mean", (0, 1)),
        ("necessity.gain", "mean", (-np.inf, np.inf)),
        ("guide.score_base", "mean", (0, 1)),
    ],
)
def test_no_interval_reaches_where_no_value_can_be(measure, statistic, ends):
    assert value_range(measure, statistic) == pytest.approx(ends)


def test_as_published_is_said_only_of_what_was_published():
    held = ClaimFinding(claim(than=REFERENCE), "sst", "held", Estimate(0.3, 0.2, 0.4, 3))
    assert held.as_published is None
    assert replace(held, published=0.1).as_published is True
    assert replace(held, published=-0.1).as_published is False
    apart = replace(held.claim, except_=("sst",))
    assert replace(held, claim=apart).as_published is False
    assert replace(held, claim=apart, answer="did not hold").as_published is True
    assert replace(held, published=0.1, answer="undecided").as_published is None


def test_numbers_of_a_model_that_we_lack_stand_beside_our_main_one():
    study = Study.read("serrano-smith-2019")
    known = PublishedNumbers.of(study.name, {study.published_as: study.main})
    key = NumberKey("imdb", study.main, "erasure.flip_only_top", "mean")
    assert known.figures[key].value == 0.122
    assert key not in PublishedNumbers.of(study.name).figures
    assert PublishedNumbers.of("no-such-study").figures == {}


def test_the_first_table_of_the_paper_is_f1_where_there_are_two_classes():
    key = NumberKey("sst", MAIN, "performance.table_1", "value")
    two = Fake({TAU: [[0.1, 0.2]]}, performance={"accuracy": [0.8], "f1": [0.7]})
    many = Fake({TAU: [[0.1, 0.2]]}, performance={"accuracy": [0.8]})
    assert estimate_number(key, two).value == 0.7
    assert estimate_number(key, many).value == 0.8


def test_rows_name_their_class_and_say_what_their_interval_is_over():
    cells = Fake({TAU: [[0.1, 0.2, 0.4]]})
    keys = {NumberKey("sst", MAIN, TAU, "mean", "1"): PublishedNumber(0.3, "repo")}
    row = next(
        row
        for row in compare_numbers({("sst", MAIN): cells}, PublishedNumbers(keys))
        if row.published
    )
    assert (row.key.of_class, row.of_class) == ("1", "positive")
    assert render_csv([row]).splitlines()[1].startswith("sst,bilstm additive,1,positive,agreement.")
    assert format_sample_size(row.ours, row.over) == "3 texts"
    assert format_sample_size(Estimate(0.3, 0.2, 0.4, 3), "seeds") == "3 seeds"
    assert format_sample_size(Estimate(0.3, nan, nan, 1), "seeds") == "1 seed"
    assert format_sample_size(None, "texts") == "–"
