"""Figures of `erasure`: words to remove until the decision flips, and the top weight alone."""

from typing import TYPE_CHECKING

import numpy as np

from heedful.results.document import FigureData
from heedful.results.figure_data import (
    density_cells,
    drop_empty,
    format_two_decimals,
    median_line,
    percentile_row,
    rounded_span,
)

if TYPE_CHECKING:
    from heedful.results.run_records import RunRecords

NAME = "erasure"
ORDERS = {  # in the order they are shown, with their role
    "attention": ("attention", "method"),
    "gradient": ("gradient", "method"),
    "attention_x_gradient": ("attention × gradient", "method"),
    "random": ("random", "control"),
    "optimal": ("optimal", "reference"),
}
LEAST = 0.05  # of the vertical axis, JSD


def build_figures(records: "RunRecords") -> list[FigureData]:
    """How many words must go in each order, and what the top weight does."""
    return drop_empty([_words_to_flip(records), _top_weight(records)])


def _words_to_flip(records: "RunRecords") -> FigureData:
    columns = {name: records.column(NAME, f"fraction_to_flip_{name}") for name in ORDERS}
    rows = [
        percentile_row(columns[name], group=group, role=role)
        for name, (group, role) in ORDERS.items()
        if not np.isnan(columns[name]).all()
    ]
    can = records.column(NAME, "can_flip")
    return FigureData(
        "fraction_to_flip",
        "intervals",
        "Words to remove until the decision flips",
        f"Share of a text's words, on the {int(np.nansum(can))} of {int((~np.isnan(can)).sum())} "
        "texts that can be flipped; 1 where an order never does. Dots: medians; boxes: middle half "
        "of the texts; lines: 10 to 90 %.",
        x="share of words removed",
        rows=[row | {"label": format_two_decimals(row["value"])} for row in rows],
        marks=[
            {"rule": row["value"], "label": row["group"]}
            for row in rows
            if row["role"] == "reference"
        ],
    )


def _top_weight(records: "RunRecords") -> FigureData:
    gap = records.column(NAME, "attention_gap")
    moved = records.column(NAME, "js_top_minus_random")
    known = ~np.isnan(gap) & ~np.isnan(moved)
    gap, moved = gap[known], moved[known]
    y_span = rounded_span([0.0, LEAST, *moved])
    return FigureData(
        "js_top_minus_random",
        "density",
        "Without the top weight, and without another",
        "Above 0: removing the top weight moves the output farther than removing another word's. "
        f"Line: median in each tenth of the difference. {_describe_flips(records)}",
        x="top weight − weight drawn at random",
        rows=density_cells(gap, moved, (0.0, 1.0), y_span),
        marks=median_line(gap, moved),
        y="JSD without top − JSD without random",
        y_span=y_span,
    )


def _describe_flips(records: "RunRecords") -> str:
    """The published table of two by two, in words."""
    top, other = (records.column(NAME, name) for name in ("flip_top", "flip_random"))
    known = ~np.isnan(top) & ~np.isnan(other)
    one, two = top[known] > 0, other[known] > 0
    shares = {
        "both": one & two,
        "the top one alone": one & ~two,
        "the other alone": ~one & two,
        "neither": ~one & ~two,
    }
    count = max(1, len(one))
    parts = [f"{name} {100 * flips.sum() / count:.1f} %" for name, flips in shares.items()]
    return f"What flips the decision: {', '.join(parts)}."
