"""The verdict card: every answer, at every width, and no name that can do more than be read."""

from io import StringIO
from itertools import cycle
from math import nan
from typing import get_args

import pytest
from rich.console import Console

from heedful.checks import checks
from heedful.core.records import (
    ANSWERS,
    CLAIMS,
    CheckResult,
    ClaimAnswer,
    ClaimResult,
    Degree,
    Estimate,
    EstimateRow,
    MissingMeasure,
    Verdict,
    Vote,
)
from heedful.report.sections.claims import CLAIM_LABELS
from heedful.report.sections.verdict_summary import HEADLINES
from heedful.report.terminal.verdict_card import (
    COLOURS,
    WIDTH,
    print_card,
)
from support.influence_records import SCORE, influenced, near
from support.records import better

TAU = Estimate(0.35, 0.33, 0.37, 1725)
MEASURES = {  # those that have a plain estimate; one sentence sums up how methods agree
    spec.name: tuple(
        one.name
        for one in spec.measures
        if one.averaged and "{method}" not in one.label and one.name not in spec.summed_up
    )
    for spec in checks.specs()
}
TITLES = {spec.name: spec.title for spec in checks.specs() if spec.title}
EVERY = [one for name, measures in MEASURES.items() if name not in TITLES for one in measures]
CONTROLS = {
    one
    for name, measures in MEASURES.items()
    if name not in TITLES
    for one in measures
    if checks.spec(name).measure(one).role == "control"
}
SHOWN = [measure.removeprefix("fraction_") for measure in EVERY]  # the longest are cut in front


def manifest(**changes):
    data = {"name": "sample:movies", "split": "test", "texts": 1725, "bad_rows": "no bad rows"}
    usual = {
        "model": {"name": "runs/demo/model"},
        "data": data,
        "seconds": {"agreement": {"cpu": 1.25, "wall": 2.0}, "forward": {"cpu": 2.5, "wall": 3.0}},
        "too_short": 0,
        "truncated": 0,
        "level": 0.95,
        "interval": "95% expanded percentile bootstrap over instances, 2000 resamples",
        "seed": 7,
    }
    return usual | changes


def verdict(labels=("0", "1"), undefined=(), missing=None, **changes):
    """Every check with every measure, all of them 0.350."""
    results = {
        name: CheckResult(
            vote,
            f"The sentence of {name}.",
            dict.fromkeys(measures, TAU),
            tuple(EstimateRow(one, TAU, predicted=label) for label in labels for one in measures),
            {one: 12 for one in measures if one in undefined},
            (missing or {}).get(name, ()),
        )
        for (name, measures), vote in zip(MEASURES.items(), cycle(get_args(Vote)), strict=False)
    }
    answers = zip(CLAIMS, cycle(get_args(ClaimAnswer)), strict=False)
    claims = {name: ClaimResult(answer, f"So {name}.") for name, answer in answers}
    settings = {
        "answer": "unfaithful",
        "why": "Attention ranks words nearer to chance.",
        "degree": Estimate(0.41, 0.36, 0.47, 1725),
        "instead": better("one_hot_gradient", 0.876),
        "claims": claims,
        "checks": results,
    }
    given = settings | changes
    return Verdict(**given | {"degree": given["degree"] and Degree("agreement", given["degree"])})


def shown(one, *, width=80, colour=False, details=True, **changes):
    system = "standard" if colour else None
    console = Console(file=StringIO(), width=width, force_terminal=colour, color_system=system)
    print_card(one, manifest(**changes), details=details, console=console)
    return console.file.getvalue()


def flowing(text):
    """The card without its frame, as one line."""
    return " ".join(text.replace("│", " ").split())


def test_everything_that_can_be_said_has_words_and_colour():
    assert {*get_args(Vote), *get_args(ClaimAnswer), *ANSWERS} == COLOURS.keys()
    assert tuple(HEADLINES) == ANSWERS
    assert tuple(CLAIM_LABELS) == CLAIMS
    assert set(CONTROLS) < set(EVERY)


SCREEN = 24  # lines of a terminal
LONG = "Two readings disagree: order 0.636 [0.621, 0.650], but where words are masked, order is "


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_card_fits_one_screen_and_leads_with_answer_places_and_flips(answer):
    claims = influenced().verdict.claims
    both = {name: ClaimResult("undecided", f"{LONG}0.485 [0.450, 0.522].") for name in CLAIMS[:3:2]}
    one = influenced(answer=answer, claims=claims | both).verdict
    text = shown(one, width=80, details=False)
    assert len(text.splitlines()) <= SCREEN
    told = flowing(text)
    leading = [
        HEADLINES[answer],
        "order of all words 0 ├",
        "top words together 0 ├",
        "Without the 20 % of the words that attention names",
        "as many at random 11 % (paired difference 22 % [19, 26])",
        *([LONG.strip()] if answer == "undecided" else []),
        "used undecided output depends on the attention",
        "exclusive refuted; published τ",
        "integrated_gradients ranks words better",
        "--methods integrated_gradients",
        "Accuracy 0.760",
        "7 of these 200 texts were used in training.",
    ]
    places = [told.index(part) for part in leading]
    assert places == sorted(places)
    assert "measure" not in told


def test_a_model_at_chance_is_the_first_line():
    chance = SCORE.__class__(near(0.5), 0.51, SCORE.n_by_class)
    lines = shown(influenced(score=chance).verdict, width=100, details=False).splitlines()
    assert "The model is at chance" in lines[1]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_are_as_wide_as_the_terminal_and_details_as_many_as_there_are(width):
    for answer in ANSWERS:
        text = shown(verdict(answer=answer), width=width)
        assert {len(line) for line in text.splitlines()} == {min(width, 100)}
        told = flowing(text)
        for part in (
            HEADLINES[answer],
            "Attention ranks words nearer to chance.",
            "Degree of attention, from shuffled attention (0) to the gradient (1)",
            "one_hot_gradient ranks words better: order 0.876",
            *(f"{title}: The sentence of {name}." for name, title in TITLES.items()),
            "1725 texts of sample:movies (test)",
            "2000 resamples · seed 7 · 3.8 CPU seconds",
        ):
            assert part in told
        for name in (*CLAIMS, *MEASURES):
            assert name in told


def test_claims_have_a_line_each_and_those_not_tested_one_together():
    one = verdict()
    lines = [flowing(line) for line in shown(one, width=100, details=False).splitlines()]
    untested = [name for name in CLAIMS if one.claims[name].answer == "not tested"]
    assert 0 < len(untested) < len(CLAIMS)
    assert f"not tested {', '.join(untested)}" in lines
    for name in {*CLAIMS} - {*untested}:
        wanted = f"{name} {one.claims[name].answer} {CLAIM_LABELS[name]}"
        assert lines.count(wanted) == 1


@pytest.mark.parametrize("width", [80, 120])
def test_measures_are_shown_whole_with_their_interval_and_classes(width):
    lines = [flowing(line) for line in shown(verdict(), width=width).splitlines()]
    wanted = {f"{measure} 0.350 [0.330, 0.370] 0.350 0.350" for measure in SHOWN}
    assert wanted - set(lines) == set()


@pytest.mark.parametrize(("level", "told"), [(0.95, "mean [95%]"), (0.9, "mean [90%]")])
def test_the_level_of_the_intervals_is_told(level, told):
    assert told in shown(verdict(), level=level)


def test_reasons_of_claims_that_were_examined_are_details():
    claims = {
        name: ClaimResult("undecided", f"So {name}.", () if name == "robust" else ("some",))
        for name in CLAIMS
    }
    told = flowing(shown(verdict(claims=claims)))
    assert [name for name in CLAIMS if f"{name}: So {name}." in told] == list(CLAIMS[:-1])
    assert "So used." not in flowing(shown(verdict(claims=claims), details=False))


LONGEST = max(SHOWN, key=len)


@pytest.mark.parametrize(
    ("labels", "undefined"),
    [(("negative", "positive"), EVERY), (("contradiction", "entailment", "neutral"), ())],
)
def test_ordinary_verdicts_are_not_cut_at_80(labels, undefined):
    text = shown(verdict(labels=labels, undefined=undefined))
    assert f"{LONGEST} " in text
    assert "0.350 [0.330, 0.370]" in text
    assert "positive" in text or "neutral" in text


@pytest.mark.parametrize("width", [80, 120])
def test_a_missing_measure_has_its_whole_reason(width):
    reason = "No exact adversary for this subject: it has 4 classes; exact only for two."
    one = verdict(labels=(), missing={"adversarial": (MissingMeasure("certified_jsd", reason),)})
    assert reason in flowing(shown(one, width=width))


def test_undefined_values_are_counted_beside_the_estimate():
    text = shown(verdict(undefined=("median_tvd",)), width=120)
    assert "0.350 [0.330, 0.370] (12 undefined) 0.350 0.350" in flowing(text)
    assert text.count("undefined") == 1


def test_more_than_three_classes_are_not_shown_apart_and_long_names_not_whole():
    text = shown(verdict(labels=("a name beyond measure", "exactly12chr")), width=120)
    assert " a name beyo… exactly12chr " in text
    assert flowing(shown(verdict(labels=tuple("abcd")))).count("0.350") == len(EVERY)
    assert flowing(shown(verdict(labels=tuple("abc")))).count("0.350") == 4 * len(EVERY)


def test_a_class_without_values_is_a_dash():
    nothing = Estimate(nan, nan, nan, 0)
    by = (
        EstimateRow("leverage", nothing, predicted="0"),
        EstimateRow("other", TAU, predicted="1"),
    )
    result = CheckResult("supports", "", {"leverage": TAU}, by)
    text = shown(verdict(checks={"permutation": result}))
    assert "leverage 0.350 [0.330, 0.370] – –" in flowing(text)


def test_controls_are_grey_and_measures_are_not():
    lines = shown(verdict(), colour=True).splitlines()
    grey = [name for name in SHOWN for line in lines if f" {name} " in line and "\x1b[2m" in line]
    # two checks may share a control's name
    assert set(grey) == {one.removeprefix("fraction_") for one in CONTROLS}


@pytest.mark.parametrize(
    ("value", "cell", "mark"),
    [
        (0.0, 0, "●"),
        (1.0, WIDTH - 1, "●"),
        (0.5, WIDTH // 2, "●"),
        (-0.7, 0, "◄"),
        (1.9, WIDTH - 1, "►"),
    ],
)
def test_the_degree_stands_at_its_place_on_the_ruler(value, cell, mark):
    text = shown(verdict(degree=Estimate(value, value, value, 9)))
    ruler = text.split("├")[1].split("┤")[0]
    assert len(ruler) == WIDTH
    assert ruler.index(mark) == cell


def test_the_interval_is_drawn_on_the_ruler_and_its_middle_is_marked():
    ruler = shown(verdict(degree=Estimate(0.75, 0.625, 0.875, 9))).split("├")[1].split("┤")[0]
    assert ruler == "─" * 12 + "┼" + "──" + "━" * 3 + "●" + "━" * 3 + "─" * 3


def test_one_instance_has_a_place_but_no_interval():
    text = shown(verdict(degree=Estimate(0.5, nan, nan, 1)))
    assert "━" not in text
    assert "┤ 1 0.500 (n = 1, no interval)" in flowing(text)


def test_a_degree_that_does_not_exist_has_no_place():
    assert "●" not in shown(verdict(degree=Estimate(nan, nan, nan, 0)))


def test_what_was_not_found_is_not_mentioned():
    text = shown(verdict(degree=None, instead=None, checks={}))
    for absent in ("Degree", "certainly better", TITLES["mechanism"], "●"):
        assert absent not in text


def test_what_was_left_out_is_told():
    data = manifest()["data"] | {"bad_rows": "2 bad rows: 2 no text (lines 3, 9)"}
    told = flowing(shown(verdict(), width=120, too_short=25, truncated=4, data=data))
    assert "1700 texts of sample:movies" in told
    assert "25 texts too short · 4 texts cut · 2 bad rows: 2 no text (lines 3, 9)" in told
    assert not {"short", "cut"} & set(flowing(shown(verdict())).split())


MARKUP = "[red]x[/red]"


def test_markup_in_names_is_shown_as_it_is():
    data = manifest()["data"] | {"name": f"{MARKUP}.csv", "bad_rows": f"1 {MARKUP}"}
    one = verdict(labels=("fine", MARKUP), why=f"Why {MARKUP}?", instead=better(f"my{MARKUP}", 0.5))
    told = flowing(shown(one, width=120, data=data, model={"name": f"model{MARKUP}"}))
    for place in (
        f"explain model{MARKUP}?",
        f"Why {MARKUP}?",
        f"my{MARKUP} ranks words better",
        f"] fine {MARKUP} ",
        f"texts of {MARKUP}.csv",
        f"1 {MARKUP}",
    ):
        assert place in told


@pytest.mark.parametrize(
    "changes",
    [
        {"one": {"labels": ("\x1b[2Jx", "y")}},
        {"one": {"why": "see\x1b]0;title\x07"}},
        {"model": {"name": "m\x1b[31m"}},
        {"data": manifest()["data"] | {"name": "d\x9b2J"}},
    ],
)
def test_control_characters_in_names_do_not_reach_the_terminal(changes):
    text = shown(verdict(**changes.pop("one", {})), **changes)
    assert all(sign.isprintable() or sign == "\n" for sign in text)
