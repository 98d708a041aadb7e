"""Retrained models on the page, in Markdown and in the card."""

import re
from dataclasses import replace
from io import StringIO
from math import isnan, nan

import pytest
from heedful.report.sections.retraining_text import SCALES, SHARED, TWO_QUESTIONS, build_section
from rich.console import Console

from heedful.core.records import CheckResult, Estimate
from heedful.report.pages.run_html import render_html
from heedful.report.pages.run_markdown import render_markdown
from heedful.report.pages.self_contained_html import join_assets
from heedful.report.sections.page import build_page
from heedful.report.sections.retrained_models import describe_models, read_retrained_models
from heedful.report.sections.retraining import CHECKS, read_retrained_checks
from heedful.report.terminal.verdict_card import print_card
from support.html_page import PageReader
from support.records import NASTY, records, transformer
from support.retrained_records import CLAIM_OF, MODELS, N, retrained

pytest.importorskip("altair")
SENTENCE = (
    "3 models retrained, 3–31 epochs each; 1 trained until the dev score no longer rose, 1 stopped "
    "at the limit of epochs, 1 trained on a fixed schedule."
)


def card(one, width=100):
    console = Console(file=StringIO(), width=width)
    print_card(one.verdict, one.manifest, console=console)
    return " ".join(console.file.getvalue().replace("│", " ").split())


def parts(one):
    return {part.name: part for part in build_section(one, read_retrained_checks(one)).parts}


def test_means_by_seed_and_by_weight_are_those_of_the_rows():
    found = read_retrained_checks(retrained())
    assert tuple(found) == CHECKS
    own, uniform = found["necessity"].arms
    assert (own.name, own.seeds, own.estimate.value) == ("own attention", (1.0, 0.5), 0.75)
    assert (uniform.name, uniform.seeds) == ("uniform", (0.5, 0.5))
    assert [arm.seeds for arm in found["guide"].arms] == [(0, 0), (1, 1), (1, 1), (0, 0)]
    assert found["seeds"].arms[0].seeds == pytest.approx((0.1, 0.2))
    tried = found["adversary"].tried
    assert [(one.start, one.weight, one.reported) for one in tried] == [
        ("scratch", "λ 0.001", False),
        ("scratch", "λ 0.01", False),
        ("base", "λ 0.001", True),
    ]
    last = tried[-1].found
    assert [last[name].value for name in ("jsd", "tvd", "score")] == pytest.approx([0.4, 0.01, 1.0])
    assert (last["jsd"].low, last["jsd"].n) == (pytest.approx(0.4), N)
    half = found["deception"].tried[1].found["score_after"]
    assert half.low < half.value == 0.5 < half.high


def test_settings_come_from_the_plan_and_may_be_missing():
    assert read_retrained_checks(retrained())["necessity"].setting("margin") == 0.01
    for plan in (
        "",
        "not [ toml",
        "[settings]\nnecessity = 3",
        '[settings.necessity]\nmargin = "x"',
    ):
        assert read_retrained_checks(retrained(plan=plan))["necessity"].setting("margin") is None
        assert "Retraining</h2>" in render_html(retrained(plan=plan))


def test_both_questions_on_uniform_attention_stand_side_by_side():
    part = parts(retrained())["necessity"]
    (used, swap), (needed, gain) = part.boxes
    assert (used, needed) == ("Used as it is", "Needed when trained")
    assert "by 0.150 [0.130, 0.170] (TVD)" in swap
    assert "gains 0.250 [0.230, 0.270] in accuracy" in gain
    assert gain.endswith("A difference of less than 0.01 counts as none.")
    assert part.notes == (TWO_QUESTIONS,)
    assert "counts as none" not in str(parts(retrained(plan=""))["necessity"].boxes)


def test_adversaries_and_deceivers_have_a_row_each_and_their_scales():
    found = parts(retrained())
    adversary, deception = found["adversary"], found["deception"]
    assert [row.name for row in adversary.rows] == [
        "λ 0.001, from scratch",
        "λ 0.01, from scratch",
        "λ 0.001, from base",
        "the model under audit",
    ]
    assert [row.reported for row in adversary.rows] == [False, False, True, False]
    assert isnan(adversary.rows[-1].cells[0].value)
    assert adversary.notes == (SCALES,)
    assert [row.name for row in deception.rows] == [
        "before",
        "λ 0.001",
        "λ 0.01",
        "without the words",
    ]
    assert [row.cells[1].value for row in deception.rows] == [1.0, 1.0, 0.5, 0.45]
    assert "reaches 0.450 [0.430, 0.470], a loss of 0.550" in deception.notes[0]
    named = "without the words he, seed <b>, seed 0"
    notes = parts(retrained(models=[{"name": named, "epochs": 3}]))["deception"].notes
    assert notes[0] == "Hidden are the words he, seed <b>."
    assert "−0.500 [−0.520, −0.480] over an adversary" in found["guide"].notes[0]
    turned = retrained(plan="[settings.adversary]\nreverse = true\n")
    assert "KL(base ‖ own)" in parts(turned)["adversary"].notes[0]


def test_models_that_share_their_pretraining_are_said_to():
    tuned = {"attention_path": "interface", "attention": "layer 1, mean over heads"}
    assert SHARED in parts(retrained(**tuned))["seeds"].notes
    assert SHARED not in str(parts(retrained()))
    assert SHARED not in str(parts(retrained(("guide",), **tuned)))


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
    assert "<td>limit of epochs</td>" in page
    assert '<td class="right">10.2</td>' in page  # 9.25 and 1
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
    assert join_assets(("retrained",), "css") not in page
    assert build_page(one).retraining is None
    assert build_page(one).retrained_pictures == ()
    for told in (render_markdown(one), card(one)):
        assert "models retrained" not in told


@pytest.mark.parametrize("models", [None, ()])
def test_runs_that_kept_no_models_still_have_a_page(models):
    one = retrained(models=models)
    page = render_html(one)
    assert "Every model<" not in page
    assert 'id="figure-seeds"' in page
    assert "models retrained" not in card(one)


@pytest.mark.parametrize("name", CHECKS)
def test_each_check_alone(name):
    page = render_html(retrained((name,)))
    assert f'id="figure-{name}"' in page
    assert page.count('class="part"') == 1


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_that_could_not_be_made_says_why(name):
    reason = "the data has no training split <b>"
    one = retrained((name,), missing={name: reason}, models=())
    page = render_html(one)
    assert f'id="figure-{name}"' not in page
    assert f"So {name}." in page
    assert "the data has no training split &lt;b&gt;" in page
    assert reason not in page
    part = parts(one)[name]
    assert (part.boxes, part.notes, part.rows) == ((), (), ())


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
    found = parts(retrained(("roar",)))["roar"]
    assert found.columns == ("accuracy", "lost beyond random")
    assert [(row.name, row.cells[0].value) for row in found.rows] == [
        ("whole texts", 1.0),
        ("attention", 0.25),
        ("random", 0.75),
    ]
    assert found.rows[1].cells[1].value == 0.5
    assert not found.rows[2].cells[1].n
    assert "reveal what was removed" in found.notes[0]


def test_a_copy_is_told_with_how_alike_it_is():
    found = parts(retrained(("off_manifold",)))["off_manifold"]
    assert [(row.name, row.cells[0].value) for row in found.rows] == [("attention", 0.15)]
    assert "predicts the same on 0.950 [0.930, 0.970] of them" in found.notes[0]
