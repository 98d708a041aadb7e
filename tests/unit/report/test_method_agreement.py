"""Methods against each other on the page, in figures, in Markdown and in the card."""

import re
from io import StringIO
from itertools import combinations
from math import isnan

import numpy as np
import pytest
from rich.console import Console

from heedful.checks import checks
from heedful.checks.attention.agreement.sections import compare_references
from heedful.report.figures.draw import write_figures
from heedful.report.figures.theme import SERIES
from heedful.report.pages.run_html import render_html
from heedful.report.pages.run_markdown import render_markdown
from heedful.report.terminal.verdict_card import print_card
from support.figures import draw, figures_of
from support.html_page import PageReader
from support.method_records import KINDS, with_methods
from support.records import NASTY, records
from support.sections import names_of, page_figures, sections_of

pytest.importorskip("altair")
PLAN = "[settings.agreement]\ntop = 4\n"


def mean(one, measure, method, setting):
    rows = one.measurements.whole().to_pylist()
    keys, wanted = ("measure", "method", "setting"), (measure, method, setting)
    found = [r["value"] for r in rows if tuple(r[key] for key in keys) == wanted]
    return np.mean([value for value in found if value is not None])


def card(one):
    console = Console(file=StringIO(), width=100)
    print_card(one.verdict, one.manifest, details=True, console=console)
    return " ".join(console.file.getvalue().replace("│", " ").split())


def table_of(one):
    (table,) = sections_of(one)["methods-pairs"].tables
    return table


def told(one):
    """What the page says of the methods."""
    return " ".join(sections_of(one)["methods"].words)


def test_every_pair_has_its_means_with_intervals():
    one = with_methods()
    pairs = list(combinations(KINDS, 2))
    assert names_of(table_of(one)) == [f"{first} and {second}" for first, second in pairs]
    for pair, (_, *cells, texts) in zip(pairs, table_of(one).rows, strict=True):
        assert texts == ("5" if "shapley" in pair else "30")
        for cell, measure in zip(cells, ("tau_pair", "overlap_pair"), strict=True):
            estimate = cell.estimate
            assert estimate.value == pytest.approx(mean(one, measure, *pair))
            assert isnan(estimate.low) or estimate.low < estimate.value < estimate.high


def test_methods_that_ranked_few_texts_or_none_are_named():
    one = with_methods(refused=("gradient",))
    assert "No ranking from gradient." in told(one)
    assert not any("gradient" in name.split() for name in names_of(table_of(one)))
    assert "Ranked fewer texts: shapley 5 (those of at most 12 tokens)." in told(one)
    assert "Ranked fewer" not in told(with_methods(short=30))


def test_who_ranked_only_some_texts_is_not_called_nearest():
    words = sections_of(with_methods(among=0.6))["methods"].words[1]
    assert re.match(r"Nearest to leave-one-out, τ: \w+ 0\.\d+ \[0\.\d+, 0\.\d+\], ", words)
    assert "shapley" not in words
    assert "−0." not in words  # random is farthest, and not among the first three


def references(one):
    return compare_references(one.verdict.checks["agreement"])


@pytest.mark.parametrize(
    ("among", "attention", "words"),
    [
        (0.6, 0.2, "They are nearer to each other than attention is to them, by 0.3"),
        (0.2, 0.2, "They are no nearer to each other than attention is to them (difference "),
        (0.2, 0.5, "(difference −0."),
        (0.2, 0.2, "low agreement with attention proves little"),
        (0.0, 0.3, "do not agree with each other beyond chance"),
    ],
)
def test_one_sentence_says_whether_the_references_can_judge(among, attention, words):
    sentence = references(with_methods(among=among, attention=attention))
    assert words in sentence
    assert sentence.startswith("Methods that erase words and methods that follow gradients agree ")
    assert "-0." not in sentence


def test_too_few_texts_say_no_more_than_they_can():
    assert references(with_methods(1)).endswith("Too few texts to say more.")


def test_the_section_stands_on_the_page_with_two_figures_and_a_table():
    page = render_html(with_methods(plan=PLAN))
    read = PageReader(page)
    assert ("id", "methods") in read.attributes
    assert ("href", "#methods") in read.attributes
    assert "Do the methods agree with each other?" in page
    assert page.count('id="figure-methods_') == 2
    assert "Mean share of the top 4 words" in page
    assert not re.search(r"\bnan\b", page, re.IGNORECASE)


def test_a_run_without_further_methods_has_a_page_as_before():
    plain = render_html(records())
    for absent in ('id="methods"', '"#methods"', "Do the methods agree"):
        assert absent not in plain
    assert "heatmap" not in {figure.kind for figure in page_figures(records())}
    assert "Do the methods" not in render_markdown(records())
    assert "every pair of methods" not in card(records())


def test_hostile_names_are_only_text():
    names = ("attention", "leave_one_out", "one_hot_gradient", *NASTY)
    usual = ("attention", "leave_one_out", "one_hot_gradient", *map(str, range(len(NASTY))))
    page = render_html(with_methods(names=names))
    found, want = PageReader(page), PageReader(render_html(with_methods(names=usual)))
    for tag in ("script", "img", "svg", "table", "tr", "td", "figure"):
        assert found.elements[tag] == want.elements[tag]
    assert {name for name, _ in found.attributes} == {name for name, _ in want.attributes}
    assert any(NASTY[0] in text for text in found.texts)
    assert not set(page) & set("\x00\x1b\u202e\u2028")
    made, plain = (render_markdown(with_methods(names=some)) for some in (names, usual))
    assert len(made.splitlines()) == len(plain.splitlines())
    assert "<script" not in made.replace("\\<", "")


def matrices(one):
    return [figures_of(one)[name] for name in ("methods_tau", "methods_overlap")]


def test_charts_show_every_pair_twice_and_only_colours_that_dark_repaints():
    tau, overlap = matrices(with_methods())
    assert len(tau.rows) == len(overlap.rows) == len(KINDS) * (len(KINDS) - 1)
    assert "shapley, n = 5" in tau.classes
    assert {row["value"] > 0 for row in tau.rows} == {True, False}
    assert {mark["label"] for mark in tau.marks} == set(KINDS.values())
    for picture in (tau, overlap):
        svg = draw(picture)
        assert set(re.findall(r'fill="([^"]+)"', svg)) & set(SERIES) <= set(SERIES[:2])
        assert svg.count(">leave_one_out<") == 2  # a row and a column
        depths = [float(one) for one in re.findall(r'fill-opacity="([\d.]+)"', svg)]
        assert depths
        assert max(depths) <= 0.5  # ink stays readable on it


def test_a_number_without_an_interval_has_no_colour():
    tau, _ = matrices(with_methods(short=1))
    for row in tau.rows:
        few = "shapley, n = 1" in (row["row"], row["column"])
        assert row["certain"] == (not few)


def test_the_figures_are_written_too(tmp_path):
    names = [path.name for path in write_figures(with_methods(), tmp_path)]
    assert {"methods_tau.svg", "methods_tau.png", "methods_overlap.svg"} <= set(names)


def test_markdown_has_the_sentence_and_every_pair():
    text = render_markdown(with_methods(refused=("gradient",)))
    assert "### Do the methods agree with each other?" in text
    assert "\nNo ranking from gradient.\n" in text
    estimate = r"0\.\d+ \\\[.*\\\]"
    pair = rf"^\| attention and one\\_hot\\_gradient \| {estimate} \| {estimate} \| 30 \|$"
    assert re.search(pair, text, re.MULTILINE)


def test_the_card_has_one_line_and_no_row_per_method():
    text = card(with_methods())
    assert re.search(r"agree at τ 0\.[56]\d+ \[.*\], attention with both at τ 0\.[12]", text)
    assert "lime" not in text
    assert "tau_references" not in text
    assert "tau_leave_one_out" in text


def test_measures_of_methods_are_told_in_words():
    agreement = checks.spec("agreement")
    assert "lime" in agreement.measure("tau_pair", "lime").label
    assert agreement.measure("tau_references").role == "reference"
    (table,) = sections_of(with_methods())["check-agreement"].tables
    rows = {row[0].note: row[0].text for row in table.rows}
    assert rows["tau_leave_one_out (lime)"].startswith("lime and leave-one-out, τ")
    assert rows["tau_leave_one_out"].startswith("attention and leave-one-out, τ")
