"""The figures of erasure: boxes of each order, and the top weight beside another."""

import re
from dataclasses import replace
from math import nan
from statistics import median

import pyarrow as pa
import pytest
from heedful.report.figures.erasure import ORDERS, build_erasure_figures

from heedful.report.figures.draw import build_chart, render_svg
from heedful.report.figures.theme import GRID, INK, QUIET, SERIES
from heedful.results.tables import PartitionedTable
from support.records import records, tidy

pytest.importorskip("altair")


def holding(columns):
    """Records of one check with these values per text."""
    parts = [tidy("erasure", measure, values) for measure, values in columns.items()]
    usual = records(3, checks=("erasure",), kept=False)
    return replace(usual, measurements=PartitionedTable.of(pa.concat_tables(parts)))


SINGLE = {
    "flip_top": [1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, nan],
    "flip_random": [1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, nan],
    "js_top_minus_random": [0.1, 0.2, -0.12, 0.0, 0.02, 0.3, 0.01, 0.0, nan],
    "attention_gap": [0.5, 0.52, 0.55, 0.58, 0.51, 0.91, 0.0, 1.0, nan],
}


def test_boxes_are_percentiles_of_the_texts_that_can_flip():
    values = [i / 100 for i in range(101)]
    columns = {f"fraction_to_flip_{name}": [*values, nan] for name in ORDERS if name != "optimal"}
    (picture,) = build_erasure_figures(holding({"can_flip": [1.0] * 101 + [0.0], **columns}))
    assert [row["name"] for row in picture.rows] == list(ORDERS)[:-1]  # not known: not drawn
    for row in picture.rows:
        assert [row[end] for end in ("low", "from", "middle", "to", "high")] == pytest.approx(
            [0.1, 0.25, 0.5, 0.75, 0.9]
        )
    assert "on the 101 of 102 texts that can be flipped" in picture.caption
    assert build_chart(picture).to_dict()


def test_the_table_of_flips_is_told_and_medians_rest_on_five_texts():
    (picture,) = build_erasure_figures(holding(SINGLE))
    told = "both 12.5 %, the top one alone 25.0 %, the other alone 12.5 %, neither 50.0 %."
    assert told in picture.caption
    assert sum(row["texts"] for row in picture.rows) == 8
    assert picture.marks == ({"x": 0.55, "y": median([0.1, 0.2, -0.12, 0.0, 0.02])},)
    assert picture.span == (-0.15, 0.3)
    for row in picture.rows:
        assert 0 <= row["x"] < row["x2"] <= 1
        assert -0.15 <= row["y"] < row["y2"] <= 0.3
    assert build_chart(picture).to_dict()


def test_a_model_that_nothing_moves_is_drawn_all_the_same():
    flat = {name: [0.0] * 6 for name in SINGLE}
    (picture,) = build_erasure_figures(holding(flat | {"can_flip": [0.0] * 6}))
    assert picture.span == (0.0, 0.05)
    assert "neither 100.0 %" in picture.caption
    assert "NaN" not in render_svg(picture)


def test_without_the_check_there_are_no_figures_of_it():
    assert build_erasure_figures(records(checks=("agreement",))) == ()
    undefined = {name: [nan] * 4 for name in (*SINGLE, "can_flip", "fraction_to_flip_attention")}
    assert build_erasure_figures(holding(undefined)) == ()


def test_the_colours_are_those_the_dark_page_knows():
    for picture in build_erasure_figures(records(300)):
        used = set(re.findall(r'(?:fill|stroke)="(#[0-9a-f]+)"', render_svg(picture)))
        assert used <= {*SERIES, INK, QUIET, GRID}
