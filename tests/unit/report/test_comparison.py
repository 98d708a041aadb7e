"""A comparison in the terminal, as Markdown, CSV and a page: names in it stay names."""

import csv
from collections import Counter
from dataclasses import replace
from io import StringIO
from math import nan

import numpy as np
import pytest
from rich.console import Console

import heedful
from heedful.core.records import KEY_COLUMNS, MeasureKey
from heedful.report.pages.comparison import (
    COMPARISON_COLUMNS,
    MOST_ROWS,
    build_forest_figures,
    render_comparison_html,
    render_comparison_markdown,
    render_csv,
)
from heedful.report.terminal.comparison import print_comparison
from support.html_page import LOADING, PageReader
from support.records import NASTY
from support.run_folders import taus, write_run

pytest.importorskip("altair")
NAMED = [COMPARISON_COLUMNS.index(name) for name in ("first", "second", "method", "setting")]


def measures(seed, n=40):
    random = np.random.default_rng(seed)
    found = taus(n, seed=seed)
    found["permutation", "median_tvd"] = random.normal(0.3 * seed, 0.1, n)
    found["permutation", "leverage"] = np.where(np.arange(n) < 5, nan, random.random(n))
    for layer in range(30):
        key = MeasureKey("agreement", "tau_leave_one_out", layer=layer)
        found[key] = random.normal(seed, 0.1, n)
    return found


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    one, two = (write_run(folder / name, measures(i)) for i, name in enumerate(("one", "two")))
    return heedful.compare(one, two).require("degree>=-1", "same-answer")


def hostile(compared, text):
    """The same with this text wherever a name from outside can stand."""
    sides = tuple(
        replace(one, name=text + one.name, model=text, attention=text, data=text, folder=text)
        for one in compared.sides
    )
    (pair,) = compared.pairs
    rows = tuple(
        one if one.key.plain else replace(one, key=one.key._replace(method=text, setting=text))
        for one in pair.differences
    )
    first, second = sides[0].name, sides[1].name
    pair = replace(pair, first=first, second=second, differences=rows, notes=(text,))
    return replace(compared, sides=sides, pairs=(replace(pair, only_one={text: text}),))


def printed(compared, required=(), width=100):
    out = StringIO()
    print_comparison(compared, required, console=Console(file=out, width=width))
    return out.getvalue()


def test_the_terminal_shows_answers_differences_and_how(plain):
    text = printed(plain.record, plain.required)
    for part in (
        "two against one: paired over 40 texts",
        "● median_tvd",
        "leverage (5, 5 undefined)",
        "agreement: 30 more by setting (layers, heads, pairs), 30 of them certain.",
        "p-values by Holm's correction over each family of tests: 6 (measures), 30",
        "met: required same-answer; found one: unfaithful, two: unfaithful.",
    ):
        assert part in " ".join(text.split())
    assert all(len(line) <= 80 for line in printed(plain.record, width=80).splitlines())


def test_markdown_has_every_row_that_is_shown(plain):
    text = render_comparison_markdown(plain.record, plain.required)
    assert "| answer | unfaithful | unfaithful |" in text
    assert r"| median change of output when weights are shuffled ↑: median\_tvd | ● |" in text
    assert "(5, 5 undefined)" in text
    assert r"| degree\>=-1 | met | two − one" in text
    assert "<details><summary>agreement: 30 more by setting" in text


def test_csv_can_be_read_back_in_full(plain):
    rows = list(csv.DictReader(StringIO(render_csv(plain.record))))
    assert tuple(rows[0]) == COMPARISON_COLUMNS
    assert len(rows) == 36
    for row, (_, one) in zip(rows, plain.record.rows, strict=True):
        assert float(row["difference_value"]) == one.difference.value
        keys = [getattr(one.key, name) for name in KEY_COLUMNS]
        assert [row[name] for name in KEY_COLUMNS] == [
            "" if key is None else str(key) for key in keys
        ]


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-x", "@y"])
def test_a_spreadsheet_runs_no_name(plain, text):
    rows = list(csv.reader(StringIO(render_csv(hostile(plain.record, text)))))
    assert all(not row[column].startswith(text[0]) for row in rows for column in NAMED)


def test_the_page_is_whole_and_asks_nothing_of_anyone(plain):
    page = render_comparison_html(plain.record, plain.required)
    found = PageReader(page)
    for section in ("sides", "required", "figures", "differences", "how"):
        assert f'id="{section}"' in page
    assert page.count("<figure ") == 3
    assert "30 more by setting" in page
    loading = [value for name, value in found.attributes if name in LOADING and value]
    assert all(value.startswith("#") for value in loading if "://" in value or "/" in value)
    assert len(page) < 300_000


@pytest.mark.parametrize("text", [*NASTY, "{{ 7 * 7 }}<b>|*_`"])
def test_names_from_outside_stay_text(plain, text):
    bad = hostile(plain.record, text)
    drawn = {"path", "g", "rect", "line", "text", "bdi", "span"}

    def shape(page):
        elements = PageReader(page).elements
        return Counter({tag: n for tag, n in elements.items() if tag not in drawn})

    assert shape(render_comparison_html(bad)) == shape(
        render_comparison_html(hostile(plain.record, "x"))
    )
    made = render_comparison_markdown(bad)
    assert len(made.splitlines()) == len(
        render_comparison_markdown(hostile(plain.record, "x")).splitlines()
    )
    assert "<script" not in made.replace("\\<", "")
    assert "\x1b" not in made + printed(bad) + render_csv(bad)
    assert "\x00" not in made + printed(bad) + render_csv(bad)


def test_figures_hold_what_can_be_read(plain):
    degree, agreement, permutation = build_forest_figures(plain.record)
    assert (degree.title, len(degree.rows)) == ("Degree", 1)
    assert [row["group"] for row in permutation.rows] == ["median_tvd", "leverage"]
    assert len(agreement.rows) == 3  # layers are in the table
    low, high = permutation.span
    assert low == -high
    assert high > max(row["high"] for row in permutation.rows)
    (pair,) = plain.record.pairs
    row = pair.differences[1]
    many = tuple(replace(row, key=MeasureKey("c", f"m{i}")) for i in range(MOST_ROWS + 5))
    big = replace(plain.record, pairs=(replace(pair, differences=many),))
    assert len(build_forest_figures(big)[0].rows) == MOST_ROWS
    assert (
        f"The first {MOST_ROWS} of {MOST_ROWS + 5} are drawn."
        in build_forest_figures(big)[0].caption
    )
