"""Figures as charts and as files."""

import json
import re
import sys
from dataclasses import replace
from math import nan

import pytest
from heedful.report.figures.figure_data import MOST_CLASSES, build_figures

from heedful.core.errors import RunError
from heedful.core.records import Estimate
from heedful.report.figures.draw import build_chart, render_svg, write_figures
from heedful.report.figures.theme import GRID, INK, QUIET, SERIES
from heedful.report.pages.self_contained_html import TEMPLATES
from heedful.results.document import LONGEST_CLASS_NAME, shorten_class_names
from support.records import records

pytest.importorskip("altair")
NAMES = [
    "tau_leave_one_out",
    "tau_gradient",
    "tau_gradient_leave_one_out",
    "median_tvd",
    "epsilon_max_jsd",
    "certified_jsd",
    "mechanism",
    "fraction_to_flip",
    "js_top_minus_random",
]


def test_every_figure_is_written_as_svg_and_png(tmp_path):
    written = write_figures(records(), tmp_path / "new" / "figures")
    assert [path.name for path in written] == [
        f"{name}.{ending}" for name in NAMES for ending in ("svg", "png")
    ]
    for path in written:
        start = path.read_bytes()[:8]
        assert start.startswith(b"<svg" if path.suffix == ".svg" else b"\x89PNG")


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RunError, match="Cannot write to"):
        write_figures(records(), tmp_path / "file")


def test_a_missing_library_is_named_with_its_cure(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(RunError, match=r"altair: pip install 'heedful\[report\]'"):
        write_figures(records(), tmp_path)


@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_charts_are_valid_for_any_number_of_classes(count):
    for picture in build_figures(records(classes=tuple(f"class {i}" for i in range(count)))):
        assert build_chart(picture).to_dict()  # altair checks it against the schema


def test_every_colour_of_a_chart_is_known_to_the_dark_page():
    css = (TEMPLATES / "page.css").read_text()
    assert len(SERIES) == MOST_CLASSES
    for colour in (*SERIES, INK, QUIET):
        assert f'[fill="{colour}"]' in css
    many = records(300, classes=tuple(f"class {i}" for i in range(9)))
    for picture in build_figures(many):
        used = set(re.findall(r'(?:fill|stroke)="(#[0-9a-f]+)"', render_svg(picture)))
        assert used <= {*SERIES, INK, QUIET, GRID}


def test_charts_do_not_grow_with_the_number_of_texts():
    small, large = (
        sum(
            len(json.dumps(build_chart(one).to_dict()))
            for one in build_figures(records(n, kept=False))
        )
        for n in (2_000, 20_000)
    )
    assert large < 2 * small


def test_an_estimate_without_interval_is_drawn():
    picture = build_figures(records(estimate=Estimate(-0.3, nan, nan, 1)))[-1]
    assert picture.kind == "flow"
    assert picture.span[0] == pytest.approx(-0.3)
    assert "NaN" not in render_svg(picture)


def test_names_too_long_to_draw_are_cut_and_stay_apart():
    (picture,) = [one for one in build_figures(records()) if one.name == "tau_gradient"]
    long = tuple(2 * LONGEST_CLASS_NAME * "x" + end for end in "ab")
    rows = tuple(row | {"class": long[picture.classes.index(row["class"])]} for row in picture.rows)
    cut = shorten_class_names(replace(picture, classes=long, rows=rows))
    assert len(set(cut.classes)) == 2
    assert all(len(name) < LONGEST_CLASS_NAME + 10 for name in cut.classes)
    assert {row["class"] for row in cut.rows} == set(cut.classes)
    assert shorten_class_names(picture) is picture
