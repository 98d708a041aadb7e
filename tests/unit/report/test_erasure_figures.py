"""Figures of erasure: percentiles of each order, and the top weight beside another."""

from dataclasses import replace
from math import nan
from statistics import median

import pyarrow as pa
import pytest

from heedful.checks.attention.erasure.spec import ORDERS, build_figures
from heedful.results.tables import PartitionedTable
from support.figures import draw
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
    (figure,) = build_figures(holding({"can_flip": [1.0] * 101 + [0.0], **columns}))
    assert [(row["group"], row["role"]) for row in figure.rows] == [
        one for name, one in ORDERS.items() if name != "optimal"
    ]
    for row in figure.rows:
        assert [row[end] for end in ("low", "start", "value", "end", "high")] == pytest.approx(
            [0.1, 0.25, 0.5, 0.75, 0.9]
        )
    assert not figure.marks
    assert "101 of 102 texts" in figure.caption
    draw(figure)


def test_the_smallest_sets_have_a_reference_line():
    (figure,) = build_figures(holding({"fraction_to_flip_optimal": [0.1, 0.2, 0.6]}))
    assert [mark["rule"] for mark in figure.marks] == [0.2]


def test_shares_of_flips_and_medians_of_at_least_five_texts():
    (figure,) = build_figures(holding(SINGLE))
    for share in ("both 12.5 %", "top one alone 25.0 %", "other alone 12.5 %", "neither 50.0 %"):
        assert share in figure.caption
    assert sum(row["texts"] for row in figure.rows) == 8
    assert figure.marks == [{"x": 0.55, "y": median([0.1, 0.2, -0.12, 0.0, 0.02])}]
    assert figure.y_span == (-0.15, 0.3)
    for row in figure.rows:
        assert 0 <= row["x"] < row["x2"] <= 1
        assert -0.15 <= row["y"] < row["y2"] <= 0.3
    draw(figure)


def test_a_model_that_nothing_moves_is_drawn():
    flat = {name: [0.0] * 6 for name in SINGLE}
    (figure,) = build_figures(holding(flat | {"can_flip": [0.0] * 6}))
    assert figure.y_span == (0.0, 0.05)
    assert "neither 100.0 %" in figure.caption
    draw(figure)


def test_without_values_there_are_no_figures():
    undefined = {name: [nan] * 4 for name in (*SINGLE, "can_flip", "fraction_to_flip_attention")}
    assert build_figures(holding(undefined)) == []
