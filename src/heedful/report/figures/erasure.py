"""What the figures of erasure show."""

from math import ceil, floor
from typing import Any

import numpy as np
from jaxtyping import Float64
from numpy.typing import NDArray

from heedful.report.figures.figure_data import CELLS, format_two_decimals
from heedful.report.figures.theme import INK, QUIET, SERIES, chart_data
from heedful.results.document import FigureData, FigureRow
from heedful.results.run_records import RunRecords

ORDERS = {  # as they are shown, from top to bottom
    "attention": "attention",
    "gradient": "gradient",
    "attention_x_gradient": "attention × gradient",
    "random": "random (control)",
    "optimal": "optimal (reference)",
}
ENDS = {"low": 10, "from": 25, "middle": 50, "to": 75, "high": 90}  # percentiles of a box
FEWEST = 5  # texts whose median is worth a point
STEP = 0.05  # of the ends of an axis, JSD


def build_erasure_figures(records: RunRecords) -> tuple[FigureData, ...]:
    """How many words must go in each order, and what the top weight does; none without erasure."""
    made = (_sets(records), _single(records))
    return tuple(one for one in made if one is not None)


def _sets(records: RunRecords) -> FigureData | None:
    rows = []
    for name, words in ORDERS.items():
        values = _defined(records, f"fraction_to_flip_{name}")
        if len(values):
            ends = np.percentile(values, list(ENDS.values())).round(4).tolist()
            rows.append({"order": words, "name": name, **dict(zip(ENDS, ends, strict=True))})
    if not rows:
        return None
    can = _defined(records, "can_flip")
    return FigureData(
        name="fraction_to_flip",
        kind="boxes",
        title="Words to remove until the decision flips",
        caption=f"Share of a text's words, on the {int(can.sum())} of {len(can)} texts that can be "
        "flipped; 1 where an order never does. Boxes: middle half of the texts and median; lines: "
        "10 to 90 %.",
        x="share of words removed",
        span=(0.0, 1.0),
        classes=tuple(row["order"] for row in rows),
        rows=tuple(rows),
    )


def _single(records: RunRecords) -> FigureData | None:
    gap = records.column("erasure", "attention_gap")
    moved = records.column("erasure", "js_top_minus_random")
    both = ~np.isnan(gap) & ~np.isnan(moved)
    if not both.any():
        return None
    gap, moved = gap[both], moved[both]
    low, high = floor(moved.min() / STEP) * STEP, max(STEP, ceil(moved.max() / STEP) * STEP)
    span = (round(min(low, 0.0), 2), round(high, 2))
    return FigureData(
        name="js_top_minus_random",
        kind="gap",
        title="Without the top weight, and without another",
        caption="Above 0: removing the top weight moves the output farther than removing another "
        f"word's. Line: median in each tenth of the difference. {_flips(records)}",
        x="top weight − weight drawn at random",
        span=span,
        classes=("JSD without top − JSD without random",),
        rows=_cells(gap, moved, span),
        marks=_medians(gap, moved),
    )


def _flips(records: RunRecords) -> str:
    """The published table of two by two, in words."""
    top, other = (records.column("erasure", name) for name in ("flip_top", "flip_random"))
    known = ~np.isnan(top) & ~np.isnan(other)
    one, two = top[known] > 0, other[known] > 0
    shares = {
        "both": one & two,
        "the top one alone": one & ~two,
        "the other alone": ~one & two,
        "neither": ~one & ~two,
    }
    parts = [f"{name} {100 * flips.mean():.1f} %" for name, flips in shares.items()]
    return f"What flips the decision: {', '.join(parts)}."


def _cells(
    x: Float64[np.ndarray, "n"], y: Float64[np.ndarray, "n"], span: tuple[float, float]
) -> tuple[FigureRow, ...]:
    counts, across, up = np.histogram2d(
        np.clip(x, 0, 1), np.clip(y, *span), bins=CELLS, range=((0, 1), span)
    )
    shares = np.sqrt(counts / counts.max())
    return tuple(
        {
            "x": round(float(across[i]), 4),
            "x2": round(float(across[i + 1]), 4),
            "y": round(float(up[j]), 4),
            "y2": round(float(up[j + 1]), 4),
            "texts": int(counts[i, j]),
            "strength": round(float(shares[i, j]), 3),
        }
        for i, j in zip(*np.nonzero(counts), strict=True)
    )


def _medians(x: Float64[np.ndarray, "n"], y: Float64[np.ndarray, "n"]) -> tuple[FigureRow, ...]:
    tenth = np.clip((x * 10).astype(int), 0, 9)
    return tuple(
        {"x": (int(one) + 0.5) / 10, "y": round(float(np.median(y[tenth == one])), 4)}
        for one in np.unique(tenth)
        if (tenth == one).sum() >= FEWEST
    )


def _defined(records: RunRecords, measure: str) -> Float64[np.ndarray, "n"]:
    values = records.column("erasure", measure)
    defined: NDArray[np.float64] = values[~np.isnan(values)]
    return defined


THICK = 18  # of a box
COLOURS = {"attention": SERIES[0], "random": QUIET, "optimal": SERIES[1]}


def boxes_chart(picture: FigureData) -> Any:
    """One box for each order, and the median of the smallest sets across all of them."""
    import altair as alt

    shown = [row | {"label": format_two_decimals(row["middle"])} for row in picture.rows]
    names = list(picture.classes)
    colours = [COLOURS.get(row["name"], SERIES[2]) for row in picture.rows]
    colour = alt.Color("order:N", scale=alt.Scale(domain=names, range=colours), legend=None)
    bare = alt.Axis(domain=False, ticks=False, labelPadding=8, labelColor=INK, labelLimit=200)
    y = alt.Y("order:N", sort=names, title=None, axis=bare)
    scale = alt.Scale(domain=picture.span, nice=False)
    axis = alt.Axis(format="~g", tickCount=5)

    def x(name: str) -> Any:
        return alt.X(f"{name}:Q", title=picture.x, scale=scale, axis=axis)

    base = alt.Chart(chart_data(shown), width=330, height=alt.Step(38)).encode(y=y, color=colour)
    line = base.mark_rule(strokeWidth=2).encode(x=x("low"), x2="high:Q")
    box = base.mark_bar(size=THICK, opacity=0.35).encode(x=x("from"), x2="to:Q")
    middle = base.mark_tick(thickness=3, size=THICK + 4).encode(x=x("middle"))
    words = base.mark_text(align="left", dx=8, fontSize=12)
    words = words.encode(x=alt.value("width"), text="label:N", color=alt.value(INK))
    return alt.layer(*_least(picture), line, box, middle, words)


def _least(picture: FigureData) -> list[Any]:
    import altair as alt

    found = [row for row in picture.rows if row["name"] == "optimal"]
    rule = alt.Chart(chart_data(found)).mark_rule(color=QUIET, strokeDash=[4, 3], strokeWidth=1.2)
    return [rule.encode(x=alt.X("middle:Q", title=picture.x))] if found else []


def gap_chart(picture: FigureData) -> Any:
    """Texts by the difference of two weights and by what their removal does, with medians."""
    import altair as alt

    across = alt.Scale(domain=(0, 1), nice=False)
    x = alt.X("x:Q", title=picture.x, scale=across, axis=alt.Axis(tickCount=5, format="~g"))
    scale = alt.Scale(domain=picture.span, nice=False)
    y = alt.Y("y:Q", title=picture.classes[0], scale=scale, axis=alt.Axis(tickCount=5))
    strength = alt.FillOpacity(
        "strength:Q", scale=alt.Scale(domain=(0, 1), range=(0.08, 1)), legend=None
    )
    cells = alt.Chart(chart_data(picture.rows), width=400, height=240)
    cells = cells.mark_rect(fill=SERIES[0], stroke=None).encode(
        x=x, x2="x2:Q", y=y, y2="y2:Q", fillOpacity=strength
    )
    zero = alt.Chart(chart_data([{"y": 0.0}])).mark_rule(color=QUIET, strokeWidth=1).encode(y=y)
    median = alt.Chart(chart_data(picture.marks)).mark_line(
        color=INK, strokeWidth=1.5, point={"color": INK, "size": 22, "filled": True}
    )
    return alt.layer(cells, zero, *([median.encode(x=x, y=y)] if picture.marks else []))
