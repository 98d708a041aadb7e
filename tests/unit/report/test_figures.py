"""Figures as charts and as files."""

import json
import re
import sys
from dataclasses import replace
from math import nan

import pytest

from heedful.core.errors import RunError
from heedful.core.records import Estimate
from heedful.report.figures.charts import CHART_BUILDERS
from heedful.report.figures.draw import (
    LONGEST_NAME,
    build_chart,
    clean_names,
    write_figures,
)
from heedful.report.figures.theme import INK, QUIET, SERIES
from heedful.report.pages.self_contained_html import TEMPLATES
from heedful.results.figure_data import MOST_CLASSES
from support.figures import draw, figures_of
from support.method_records import with_methods
from support.records import NASTY, records, transformer
from support.retrained_records import retrained

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
    for picture in figures_of(records(classes=tuple(f"class {i}" for i in range(count)))).values():
        assert build_chart(picture).to_dict()  # altair checks it against the schema


def test_every_colour_of_a_chart_is_known_to_the_dark_page():
    css = (TEMPLATES / "page.css").read_text()
    assert len(SERIES) == MOST_CLASSES
    for colour in (*SERIES, INK, QUIET):
        assert f'[fill="{colour}"]' in css
    many = records(300, classes=tuple(f"class {i}" for i in range(9)))
    for figure in figures_of(many).values():
        draw(figure)


def test_charts_do_not_grow_with_the_number_of_texts():
    small, large = (
        sum(
            len(json.dumps(build_chart(one).to_dict()))
            for one in figures_of(records(n, kept=False)).values()
        )
        for n in (2_000, 20_000)
    )
    assert large < 2 * small


def test_an_estimate_without_interval_is_drawn():
    figure = figures_of(records(estimate=Estimate(-0.3, nan, nan, 1)))["mechanism"]
    assert figure.kind == "flow"
    assert figure.y_span[0] == pytest.approx(-0.3)
    draw(figure)


def test_names_too_long_to_draw_are_cut_and_stay_apart():
    picture = figures_of(records())["tau_gradient"]
    long = tuple(2 * LONGEST_NAME * "x" + end for end in "ab")
    rows = tuple(row | {"class": long[picture.classes.index(row["class"])]} for row in picture.rows)
    cut = clean_names(replace(picture, classes=long, rows=rows))
    assert len(set(cut.classes)) == 2
    assert all(len(name) < LONGEST_NAME + 10 for name in cut.classes)
    assert {row["class"] for row in cut.rows} == set(cut.classes)


def every_figure(names, weights):
    """Figures of all checks, for classes, methods and λ of these names."""
    runs = (
        records(classes=names),
        with_methods(names=("attention", "leave_one_out", *names)),
        retrained(classes=names[:2], weights=weights),
        transformer(checks=("agreement", "mechanism")),
    )
    return [figure for one in runs for figure in figures_of(one).values()]


def test_every_kind_is_drawn_with_any_names():
    figures = every_figure(NASTY, NASTY[1:3])
    assert {one.kind for one in figures} == set(CHART_BUILDERS)
    for figure in figures:
        svg = draw(figure)
        assert "<script" not in svg
        assert not set(svg) & set("\x00\x1b\u202e\u2028")


def test_every_kind_keeps_its_size_whatever_the_length_of_names():
    long = tuple(f"{number} {'very ' * 40} long" for number in range(4))
    for figure in every_figure(long, ("λ 0.1", "λ 0.2")):
        width = float(re.search(r'<svg[^>]* width="([\d.]+)', draw(figure))[1])
        assert width < 1300
