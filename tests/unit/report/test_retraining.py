"""Retrained models on the page, in Markdown and in the card."""

import re
from dataclasses import replace
from io import StringIO
from math import isnan, nan

import pytest
from rich.console import Console

from heedful.checks.retraining.adversary.spec import SCALES
from heedful.checks.retraining.necessity.spec import TWO_QUESTIONS
from heedful.checks.retraining.seeds.spec import SHARED
from heedful.core.records import CheckResult, Estimate
from heedful.report.pages.run_html import render_html
from heedful.report.pages.run_markdown import render_markdown
from heedful.report.sections.retrained_models import describe_models, read_retrained_models
from heedful.report.terminal.verdict_card import print_card
from support.html_page import PageReader
from support.records import NASTY, records, transformer
from support.retrained_records import CLAIM_OF, MODELS, retrained
from support.sections import names_of, page_figures, sections_of, values_of

pytest.importorskip("altair")
CHECKS = ("necessity", "seeds", "adversary", "guide", "deception", "roar", "off_manifold")
SENTENCE = (
    "3 models retrained, 3–31 epochs each; 1 trained until the dev score no longer rose, 1 stopped "
    "at the limit of epochs, 1 trained on a fixed schedule."
)


def card(one, width=100):
    console = Console(file=StringIO(), width=width)
    print_card(one.verdict, one.manifest, details=True, console=console)
    return " ".join(console.file.getvalue().replace("│", " ").split())


def part(one, name):
    return sections_of(one)[f"retraining-{name}"]


def test_settings_come_from_the_plan_and_may_be_missing():
    counts = "A difference of less than 0.01 counts as none."
    assert counts in str(part(retrained(), "necessity").words)
    for plan in (
        "",
        "not [ toml",
        "[settings]\nnecessity = 3",
        '[settings.necessity]\nmargin = "x"',
    ):
        assert counts not in str(part(retrained(plan=plan), "necessity").words)


def test_both_questions_on_uniform_attention_are_answered():
    found = part(retrained(), "necessity")
    _, used, needed, two = found.words
    assert "by 0.150 [0.130, 0.170] (TVD)" in used
    assert "gains 0.250 [0.230, 0.270] in accuracy" in needed
    assert needed.endswith("A difference of less than 0.01 counts as none.")
    assert two == TWO_QUESTIONS
    assert "counts as none" not in str(part(retrained(plan=""), "necessity").words)


def test_adversaries_have_a_row_each_and_their_scales():
    found = part(retrained(), "adversary")
    (table,) = found.tables
    assert names_of(table) == [
        "λ 0.001, from scratch",
        "λ 0.01, from scratch",
        "λ 0.001, from base",
        "the model under audit",
    ]
    reported = [getattr(row[0], "answer", "") for row in table.rows]
    assert reported == ["", "", "reported above", ""]
    assert values_of(table, 1)[-1] is None
    assert found.words[-1] == SCALES
    turned = retrained(plan="[settings.adversary]\nreverse = true\n")
    assert "KL(base ‖ own)" in part(turned, "adversary").words[-1]


def test_deceivers_have_a_row_each_beside_the_control():
    found = part(retrained(), "deception")
    (table,) = found.tables
    assert names_of(table) == ["before", "λ 0.001", "λ 0.01", "without the words"]
    assert values_of(table, 2) == [1.0, 1.0, 0.5, 0.45]
    assert "reaches 0.450 [0.430, 0.470], a loss of 0.550" in found.words[-1]
    named = "without the words he, seed <b>, seed 0"
    words = part(retrained(models=[{"name": named, "epochs": 3}]), "deception").words
    assert "Hidden are the words he, seed <b>." in words


def test_guided_models_are_compared():
    assert "−0.500 [−0.520, −0.480] over an adversary" in part(retrained(), "guide").words[-1]


def test_models_that_share_their_pretraining_are_said_to():
    tuned = {"attention_path": "interface", "attention": "layer 1, mean over heads"}
    assert SHARED in part(retrained(**tuned), "seeds").words
    assert SHARED not in str(sections_of(retrained()))
    assert SHARED not in str(sections_of(retrained(("guide",), **tuned)))


def test_every_model_is_told_with_how_its_training_ended():
    first, second, third = read_retrained_models({"retrained": MODELS})
    assert (first.epochs, first.best, first.score, first.accuracy, first.cpu) == (
        5,
        2,
        0.9,
        0.85,
        9.25,
    )
    assert [one.ended for one in (first, second, third)] == [
        "dev score no longer rose",
        "limit of epochs",
        "fixed schedule",
    ]
    assert second.best is None
    assert isnan(second.score)
    assert isnan(third.cpu)
    page = render_html(retrained())
    assert page.count(SENTENCE) == 1
    (table,) = sections_of(retrained())["retrained-models-table"].tables
    assert [row[3] for row in table.rows] == [one.ended for one in (first, second, third)] + [""]
    assert table.rows[-1][-1] == "10.2"  # 9.25 and 1
    assert SENTENCE in render_markdown(retrained())
    for width in (60, 100):
        assert SENTENCE in card(retrained(), width)


@pytest.mark.parametrize(
    ("epochs", "words"),
    [
        ((7,), "1 model retrained, 7 epochs; 1 trained"),
        ((7, 7), "2 models retrained, 7 epochs each"),
    ],
)
def test_few_models_are_counted_as_one_would(epochs, words):
    told = describe_models({"retrained": [{"epochs": one, "plateau": True} for one in epochs]})
    assert told.startswith(words)


def test_the_section_stands_on_the_page():
    page = render_html(retrained())
    read = PageReader(page)
    for place in ("retraining", *(f"retraining-{name}" for name in CHECKS)):
        assert ("id", place) in read.attributes
    assert ("href", "#retraining") in read.attributes
    for name in CHECKS:
        assert ("id", f"figure-{name}") in read.attributes
    assert page.count("reported above") == 2
    assert not re.search(r"\bnan\b", page, re.IGNORECASE)


@pytest.mark.parametrize("one", [records(), transformer()])
def test_runs_without_such_checks_have_no_such_section(one):
    page = render_html(one)
    assert "#retraining" not in page
    assert 'id="retraining"' not in page
    assert not set(CHECKS) & {figure.name for figure in page_figures(one)}
    for told in (render_markdown(one), card(one)):
        assert "models retrained" not in told


@pytest.mark.parametrize("models", [None, ()])
def test_runs_that_kept_no_models_still_have_a_page(models):
    one = retrained(models=models)
    found = sections_of(one)
    assert "retrained-models" not in found
    assert [figure.name for figure in found["retraining-seeds"].figures] == ["seeds"]
    assert "models retrained" not in card(one)


@pytest.mark.parametrize("name", CHECKS)
def test_each_check_alone(name):
    found = sections_of(retrained((name,)))
    assert [figure.name for figure in found[f"retraining-{name}"].figures] == [name]
    parts = [one.name for one in found["retraining"].parts]
    assert parts == [f"retraining-{name}", "retrained-models"]


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_that_could_not_be_made_says_why(name):
    reason = "the data has no training split <b>"
    one = retrained((name,), missing={name: reason}, models=())
    page = render_html(one)
    assert f'id="figure-{name}"' not in page
    assert f"So {name}." in page
    assert "the data has no training split &lt;b&gt;" in page
    assert reason not in page
    found = part(one, name)
    assert (found.tables, found.figures, len(found.words)) == ((), (), 1)


def test_values_that_do_not_exist_leave_their_figures_out():
    nothing = Estimate(nan, nan, nan, 0)
    one = retrained()
    checks = {
        name: CheckResult(
            "undecided",
            "",
            dict.fromkeys(found.estimates, nothing),
            tuple(replace(row, estimate=nothing) for row in found.by),
        )
        for name, found in one.verdict.checks.items()
    }
    page = render_html(replace(one, verdict=replace(one.verdict, checks=checks)))
    assert not re.search(r"\bnan\b", page, re.IGNORECASE)


def test_hostile_names_are_only_text():
    models = [model | {"name": text} for model, text in zip(MODELS, NASTY, strict=False)]
    page = render_html(retrained(classes=NASTY[:2], weights=NASTY[1:3], models=models))
    found, want = PageReader(page), PageReader(render_html(retrained()))
    for tag in ("script", "img", "svg", "table", "tr", "td", "figure", "iframe", "section"):
        assert found.elements[tag] == want.elements[tag]
    assert {name for name, _ in found.attributes} == {name for name, _ in want.attributes}
    assert any(NASTY[0] in text for text in found.texts)
    assert any(NASTY[2] in text for text in found.texts)
    assert not set(page) & set("\x00\x1b\u202e\u2028")
    made = render_markdown(retrained(weights=NASTY[1:3], models=models))
    assert "<script" not in made.replace("\\<", "")


def test_every_check_has_its_claim():
    assert set(CLAIM_OF) == set(CHECKS)


def test_training_without_words_is_a_table_of_methods_with_the_control():
    found = part(retrained(("roar",)), "roar")
    (table,) = found.tables
    assert table.head == ("words removed by", "accuracy", "lost beyond random")
    assert names_of(table) == ["none: whole texts", "attention", "random"]
    assert values_of(table, 1) == [1.0, 0.25, 0.75]
    assert values_of(table, 2) == [None, 0.5, None]
    assert "reveal what was removed" in found.words[-1]


def test_a_copy_is_described_with_how_alike_it_is():
    found = part(retrained(("off_manifold",)), "off_manifold")
    (table,) = found.tables
    assert (names_of(table), values_of(table, 1)) == (["attention"], [0.15])
    assert "predicts the same on 0.950 [0.930, 0.970] of them" in found.words[-1]
