"""The verdict in words: what leads, what is said of old runs, and no text that is not text."""

import doctest
from dataclasses import replace
from math import nan

import pytest

from heedful.core.records import ANSWERS, BetterMethod, ClaimResult, Estimate, Flips, TextCounts
from heedful.report.sections import verdict_summary
from heedful.report.sections.verdict_summary import HEADLINES, NO_BETTER, build_verdict_card
from support.influence_records import FLIPS, REASON, SCORE, influenced, near
from support.records import NASTY, records


def card(one=None, **changes):
    made = one or influenced(**changes)
    return build_verdict_card(made.verdict, made.manifest)


def test_every_answer_has_a_headline():
    assert tuple(HEADLINES) == ANSWERS
    assert [card(answer=one).headline for one in ANSWERS] == list(HEADLINES.values())


def test_a_model_at_chance_is_said_first():
    assert card().chance == ""
    found = card(score=replace(SCORE, accuracy=Estimate(0.52, 0.48, 0.56, 200)))
    assert "at chance" in found.chance
    assert "0.520 [0.480, 0.560]" in found.chance
    assert "0.510" in found.chance
    assert card(score=None).chance == card(score=None).score == ""


def test_places_are_those_of_the_verdict_and_the_reliability_stands_beside_them():
    found = card()
    assert [(one.name, one.estimate.value) for one in found.places] == [
        ("order of all words", 0.64),
        ("top words together", 1.15),
        ("top word", 0.67),
    ]
    assert "0.840" in found.scale
    assert found.degree is None


def test_flips_are_shares_in_percent_with_the_paired_difference():
    assert card().flips == (
        "Without the 20 % of the words that attention names, the prediction changes in 33 % of "
        "the texts; best method 36 % (integrated_gradients), best set found 79 %, as many at "
        "random 11 % (paired difference 22 % [19, 26])."
    )
    assert "best method" not in card(flips=replace(FLIPS, best_method=None)).flips
    less = replace(FLIPS, difference=Estimate(-0.05, -0.1, 0.0, 200))
    assert "\N{MINUS SIGN}5 % [\N{MINUS SIGN}10, 0]" in card(flips=less).flips
    nothing = Estimate(nan, nan, nan, 0)
    assert card(flips=Flips(nothing, nothing, nothing)).flips == ""
    assert card(flips=None).flips == ""


def test_the_reason_of_an_undecided_answer_is_said_once():
    both = {name: ClaimResult("undecided", REASON, ("influence",)) for name in ("ranks", "used")}
    assert card(claims=both).why == REASON


@pytest.mark.parametrize(
    ("ranks", "used", "words"),
    [
        ("refuted", "supported", ["does not rank words"]),
        ("supported", "refuted", ["hardly depends on it"]),
        ("refuted", "refuted", ["does not rank words", "hardly depends on it"]),
    ],
)
def test_an_unfaithful_answer_names_the_claims_that_fail(ranks, used, words):
    claims = {"ranks": ClaimResult(ranks, "R"), "used": ClaimResult(used, "U")}
    why = card(answer="unfaithful", claims=claims).why
    assert [part in why for part in ("does not rank words", "hardly depends on it")] == [
        part in words for part in ("does not rank words", "hardly depends on it")
    ]


def test_what_is_answered_stands_with_exclusive_and_the_published_statistics():
    scope = card().scope
    assert "which words matter when removed, not which side they take" in scope
    assert "exclusive refuted" in scope
    assert "published τ 0.410 with leave-one-out, 0.410 with the gradient" in scope
    assert "Jain" not in scope


def test_the_better_method_comes_with_its_command():
    found = card()
    assert "integrated_gradients ranks words better" in found.instead
    assert found.command == ('heedful explain runs/demo/model "…" --methods integrated_gradients')
    none = card(instead=None)
    assert (none.instead, none.command) == (NO_BETTER, "")


def test_a_name_in_the_command_cannot_run_anything():
    found = card(
        instead=BetterMethod("a; rm b", near(0.9)),
        manifest_changes={"model": {"name": "my model; $(x)"}},
    )
    assert "'my model; $(x)'" in found.command
    assert "'a; rm b'" in found.command


def test_accuracy_majority_and_classes():
    assert card().score == (
        "Accuracy 0.760 [0.740, 0.780], most frequent class 0.510, n = 98 neg, 102 pos."
    )
    many = replace(SCORE, n_by_class={f"class{i}": i for i in range(10)})
    assert "and 4 more classes" in card(score=many).score


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        (TextCounts(400, 400, 359), "359 of these 400 texts were used in training."),
        (TextCounts(400, 400, 0), "None of them was used in training."),
        (
            TextCounts(400, 400),
            "400 texts of sample:movies (test), all distinct, 5 too short, 2 cut.",
        ),
        (
            TextCounts(400, 390),
            "400 texts of sample:movies (test), 390 of them distinct, 5 too short, 2 cut.",
        ),
        (None, "100 texts of sample:movies (test), 5 too short, 2 cut."),
    ],
)
def test_texts_are_counted(counts, words):
    assert card(texts=counts).texts.endswith(words)
    assert ("training" in card(texts=counts).texts) == ("training" in words)


def test_runs_without_places_keep_their_degree_and_their_reason():
    found = card(records())
    assert found.places == ()
    assert found.degree == Estimate(0.41, 0.36, 0.47, 90)
    assert found.why == "Attention ranks words nearer to chance."
    assert (found.flips, found.scope, found.score, found.chance) == ("", "", "", "")
    assert "one_hot_gradient" in found.instead


@pytest.mark.parametrize("text", NASTY)
def test_names_from_outside_are_fit_for_a_page(text):
    changes = {"model": {"name": text}}
    score = replace(SCORE, n_by_class={text: 3})
    best = replace(FLIPS, best_method=replace(FLIPS.best_method, method=text))
    found = card(manifest_changes=changes, score=score, flips=best, why=text)
    for shown in (found.model, found.flips, found.score, found.command, found.why):
        assert not {"\x00", "\x1b", "\u202e", "\u2028"} & set(shown)


def test_examples_in_documentation():
    assert not doctest.testmod(verdict_summary).failed
