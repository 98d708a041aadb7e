"""The page of one explanation: whole, offline, and nothing in it from the text but text."""

import re
import sys

import pytest

from heedful.core.errors import RunError
from heedful.report.pages.explanation import (
    MOST_WORDS,
    build_method_view,
    group_by_kind,
    render_explanation_fragment,
    render_explanation_html,
)
from heedful.report.pages.section_render import STEPS
from heedful.report.pages.self_contained_html import TEMPLATES, join_assets
from heedful.results.explanation import MethodScores, TextExplanation
from support.html_page import LOADING, PageReader
from support.records import NASTY

pytest.importorskip("jinja2")
RENDERERS = pytest.mark.parametrize(
    "render", [render_explanation_html, render_explanation_fragment]
)


def scores_of(tokens, *, signed, **more):
    values = tuple((-1 if signed and n % 2 else 1) * (n + 1) / 10 for n in range(len(tokens)))
    kind = "saliency" if signed else "attention"
    return MethodScores(kind, signed, values, **more)


def explained(tokens=("a", "fine", "film"), *, target="positive", **more):
    methods = {
        "leave_one_out": scores_of(tokens, signed=True, of="log_odds", settings={"samples": 8}),
        "attention": scores_of(tokens, signed=False),
    }
    rest = {"methods": methods, "predicted": target, "probability": 0.875}
    rest |= {"refused": {"flow": "flow is for models of layers."}} | more
    return TextExplanation(" ".join(tokens), target, "word", tuple(tokens), **rest)


def words_of(page):
    return re.findall(r'<span class="heat (\S+) s(\d+)" data-at="(\d+)" title="([^"]*)">', page)


@RENDERERS
def test_everything_is_stated(render):
    page = render(explained(), model="runs/demo/model")
    text = " ".join("".join(PageReader(page).texts).split())
    for said in (
        "positive", "probability 0.875, predicted", "Where the model looks", "leave_one_out",
        "of log_odds", "samples = 8", "signed", "flow is for models of layers.",
        "strongest: “film” +0.3", "−0.200", "0.100",
    ):  # fmt: skip
        assert said in text


def test_the_page_says_which_model_and_text():
    text = "".join(PageReader(render_explanation_html(explained(), model="runs/demo/model")).texts)
    assert "runs/demo/model" in text
    assert "a fine film" in text
    assert "What this does not show" in text


@RENDERERS
def test_every_word_has_its_colour_and_its_score_in_words(render):
    words = words_of(render(explained()))
    assert [(kind, int(at)) for kind, _, at, _ in words] == [
        ("plus", 0), ("plus", 1), ("plus", 2), ("plus", 0), ("minus", 1), ("plus", 2)
    ]  # fmt: skip
    assert [int(step) for _, step, _, _ in words[:3]] == [
        round(STEPS / 3),
        round(2 * STEPS / 3),
        20,
    ]
    assert words[4][3] == "fine: −0.2, 67% of the strongest"


@RENDERERS
def test_no_element_and_no_attribute_comes_from_the_text(render):
    tokens = [*NASTY, "w" * 5000]
    plain = PageReader(render(explained(["word"] * len(tokens))))
    refused = {"<b>flow</b>": "".join(NASTY)}
    given = explained(tokens, target="".join(NASTY), predicted=NASTY[2], refused=refused)
    page = render(given, model=NASTY[1])
    found = PageReader(page)
    told = PageReader(render(explained(["word"] * len(tokens), predicted="other"), model="x"))
    assert found.elements == told.elements
    assert {name for name, _ in found.attributes} == {name for name, _ in plain.attributes}
    assert found.scripts == plain.scripts
    assert not set(page) & set("\x00\x1b\u202e\u2028")
    assert "<script>alert(1)</script>" in "".join(found.texts)
    assert "👩\u200d👧 naïve" in "".join(found.texts)


@RENDERERS
def test_nothing_is_requested_and_no_style_stands_in_an_attribute(render):
    for name, value in PageReader(render(explained(NASTY))).attributes:
        assert name not in LOADING or (name == "href" and value.startswith("#"))
        assert not name.startswith("on")


def test_the_policy_lets_only_our_own_style_and_script_work():
    from base64 import b64encode
    from hashlib import sha256

    page = render_explanation_html(explained(NASTY))
    (policy,) = (v for name, v in PageReader(page).attributes if name == "content" and "src" in v)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        inside = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[1]
        assert b64encode(sha256(inside.encode()).digest()).decode() in policy


def test_a_fragment_brings_no_script_and_styles_only_itself():
    fragment = render_explanation_fragment(explained())
    found = PageReader(fragment)
    assert not found.scripts
    assert not found.elements.keys() & {"html", "head", "body", "meta", "script", "link"}
    css = re.sub(r"/\*.*?\*/", "", join_assets(("notebook", "explained"), "css"), flags=re.DOTALL)
    for rule in re.findall(r"([^{}]+)\{", css):
        for selector in rule.split(","):
            assert "@media" in selector or ".explained" in selector, selector
    assert f"<style>{join_assets(('notebook', 'explained'), 'css')}</style>" in fragment


def test_every_step_of_colour_has_its_class():
    css = (TEMPLATES / "explained.css").read_text()
    for step in range(STEPS + 1):
        (found,) = re.findall(rf"\.explained \.s{step} {{ --s: ([\d.]+); }}", css)
        assert float(found) == pytest.approx(step / STEPS)


def test_the_fragment_has_the_colours_of_the_page():
    named = re.compile(r"--[\w-]+: [^;]+;")
    page, notebook = ((TEMPLATES / name).read_text() for name in ("page.css", "notebook.css"))
    assert set(named.findall(notebook)) <= set(named.findall(page))


@RENDERERS
def test_a_page_without_any_method_says_who_refused(render):
    page = render(explained(methods={}))
    assert "flow is for models of layers." in page
    assert "<table" not in page
    assert "Refused" not in render(explained(refused={}))


def test_a_very_long_text_is_cut_on_the_page_and_told():
    tokens = ["word"] * (MOST_WORDS + 7)
    page = render_explanation_html(explained(tokens))
    assert len(words_of(page)) == 2 * MOST_WORDS
    assert "7 more are in the JSON" in page
    assert len(page) < 500_000


def test_a_text_the_model_cut_is_told():
    page = render_explanation_html(explained(truncated=True))
    assert "longer than the model reads: only these 3 words were" in page


def test_kinds_come_in_their_order_and_unknown_ones_last():
    kinds = ("new", "control", "saliency", "attention", "sensitivity")
    methods = {kind: MethodScores(kind, False, (1.0,)) for kind in kinds}
    groups = group_by_kind(explained(("x",), methods=methods))
    found = [one.kind for one in groups]
    assert found == ["attention", "sensitivity", "saliency", "control", "new"]
    assert all(one.meaning for one in groups[:-1])
    page = render_explanation_html(explained(("x",), methods=methods))
    assert page.index('"control, control"') < page.index('"new, new"')


@pytest.mark.parametrize(
    ("largest", "unit", "told"),
    [
        (0.5, "", "0.500"),
        (0.01, "", "0.010"),
        (0.00999, "×10⁻³", "9.990"),
        (999.0, "", "999.000"),
        (25_000.0, "×10⁴", "2.500"),
        (3e-12, "×10⁻¹²", "3.000"),
        (5e-324, "×10⁻³⁰⁰", "0.000"),
        (0.0, "", "0.000"),
    ],
)
def test_numbers_are_shown_in_a_power_of_ten_that_shows_them(largest, unit, told):
    shown = build_method_view("x", MethodScores("attention", False, (largest, 0.0)))
    assert shown.unit == unit
    assert shown.number(largest) == told
    assert shown.number(0.0) == "0.000"


def test_a_missing_library_is_named_with_its_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(RunError, match=r"jinja2: pip install 'heedful\[report\]'"):
        render_explanation_html(explained())
