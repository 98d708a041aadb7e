"""Figures of `erasure`: words to remove until the decision flips, and the top weight alone."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from heedful.results.document import FigureData
from heedful.results.figure_data import (
    density_cells,
    format_two_decimals,
    median_line,
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
PERCENTILES = {"low": 10, "start": 25, "value": 50, "end": 75, "high": 90}
LEAST = 0.05  # of the vertical axis, JSD


def build_figures(records: "RunRecords") -> Sequence[FigureData]:
    """How many words must go in each order, and what the top weight does."""
    return (*_words_to_flip(records), *_top_weight(records))


def _words_to_flip(records: "RunRecords") -> Sequence[FigureData]:
    rows = []
    for name, (group, role) in ORDERS.items():
        values = records.column(NAME, f"fraction_to_flip_{name}")
        if not np.isnan(values).all():
            found = np.nanpercentile(values, list(PERCENTILES.values())).round(4).tolist()
            row = {"group": group, "role": role, **dict(zip(PERCENTILES, found, strict=True))}
            rows.append(row | {"label": format_two_decimals(row["value"])})
    if not rows:
        return ()
    can = records.column(NAME, "can_flip")
    best = [row["value"] for row in rows if row["role"] == "reference"]
    figure = FigureData(
        name="fraction_to_flip",
        kind="intervals",
        title="Words to remove until the decision flips",
        caption=f"Share of a text's words, on the {int(np.nansum(can))} of "
        f"{int((~np.isnan(can)).sum())} texts that can be flipped; 1 where an order never does. "
        "Dots: medians; boxes: middle half of the texts; lines: 10 to 90 %.",
        x="share of words removed",
        span=(0.0, 1.0),
        classes=(),
        rows=tuple(rows),
        marks=tuple({"rule": value} for value in best),
    )
    return (figure,)


def _top_weight(records: "RunRecords") -> Sequence[FigureData]:
    gap = records.column(NAME, "attention_gap")
    moved = records.column(NAME, "js_top_minus_random")
    known = ~np.isnan(gap) & ~np.isnan(moved)
    if not known.any():
        return ()
    gap, moved = gap[known], moved[known]
    y_span = rounded_span([0.0, LEAST, moved.min(), moved.max()])
    figure = FigureData(
        name="js_top_minus_random",
        kind="density",
        title="Without the top weight, and without another",
        caption="Above 0: removing the top weight moves the output farther than removing another "
        f"word's. Line: median in each tenth of the difference. {_describe_flips(records)}",
        x="top weight − weight drawn at random",
        span=(0.0, 1.0),
        classes=(),
        rows=tuple(density_cells(gap, moved, (0.0, 1.0), y_span)),
        marks=tuple(median_line(gap, moved)),
        y="JSD without top − JSD without random",
        y_span=y_span,
    )
    return (figure,)


def _describe_flips(records: "RunRecords") -> str:
    """The published table of two by two, in words."""
    top, other = (records.column(NAME, name) for name in ("flip_top", "flip_random"))
    known = ~np.isnan(top) & ~np.isnan(other)
    if not known.any():
        return ""
    one, two = top[known] > 0, other[known] > 0
    shares = {
        "both": one & two,
        "the top one alone": one & ~two,
        "the other alone": ~one & two,
        "neither": ~one & ~two,
    }
    parts = [f"{name} {100 * flips.mean():.1f} %" for name, flips in shares.items()]
    return f"What flips the decision: {', '.join(parts)}."
