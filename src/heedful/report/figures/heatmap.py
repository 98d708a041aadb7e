"""A matrix of numbers: blue above 0, orange below it.

Rows: `row`, `column`, `value`, and `certain`, without which a cell has no colour. Marks: `row` with
a `label` at its right, and `line` for one above it and before its column.
"""

from typing import Any

import altair as alt

from heedful.report.figures.theme import INK, QUIET, SERIES, chart_data
from heedful.results.document import FigureData, FigureRow
from heedful.results.figure_data import format_two_decimals

WIDE, HIGH, SMALL = 38, 25, 14  # of a cell; of one without a number
MOST_NUMBERS = 16  # columns whose cells still have room for a number
DEEPEST = 0.5  # opacity: ink is read on the whole scale, in light and in dark
SHORT = 4  # characters of a name that need not be turned


def heatmap_chart(figure: FigureData) -> Any:
    """Cells with their numbers, or with a legend where there are too many for numbers."""
    names = [list(dict.fromkeys(row[key] for row in figure.rows)) for key in ("row", "column")]
    rows, columns = (list(figure.classes) or one for one in names)
    numbers = len(columns) <= MOST_NUMBERS
    bare: dict[str, Any] = {"domain": False, "ticks": False, "labelLimit": 220}
    turned: dict[str, Any] = {"orient": "top", "labelAngle": -40, "labelAlign": "left"}
    if max(map(len, columns)) <= SHORT:
        turned = {"orient": "top", "labelAngle": 0, "labelOverlap": True}
    across, up = (alt.Scale(domain=one, paddingInner=0.03) for one in (columns, rows))
    axis = alt.Axis(labelPadding=4, **turned, **bare)
    x = alt.X("column:N", sort=columns, title=figure.x or None, axis=axis, scale=across)
    y = alt.Y("row:N", sort=rows, title=figure.y or None, axis=alt.Axis(**bare), scale=up)
    width, height = map(alt.Step, (WIDE, HIGH) if numbers else (SMALL, SMALL))
    cell_rows = chart_data(_cell(row, figure.span[1]) for row in figure.rows)
    base = alt.Chart(cell_rows, width=width, height=height).encode(x=x, y=y)
    text = base.mark_text(fontSize=11, color=INK).encode(text="label:N")
    cells = base.mark_rect(stroke=None).encode(**_colours(figure, legend=not numbers))
    return alt.layer(cells, *([text] if numbers else []), *_labels(figure, rows, x, y))


def _cell(row: FigureRow, most: float) -> FigureRow:
    return row | {
        "label": format_two_decimals(row["value"]),
        "sign": "below 0" if row["value"] < 0 else "above 0",
        "size": min(most, abs(row["value"])) if row.get("certain", True) else 0.0,
    }


def _colours(figure: FigureData, *, legend: bool) -> dict[str, Any]:
    most = figure.span[1]
    signs = alt.Scale(domain=["above 0", "below 0"], range=list(SERIES[:2]))
    depth = alt.Scale(domain=(0, most), range=(0.03, DEEPEST))
    of_sign = alt.Legend(title=None) if legend else None
    sizes = [most / 4, most / 2, most]
    of_depth = alt.Legend(title="size", format=".2f", values=sizes) if legend else None
    return {
        "fill": alt.Fill("sign:N", scale=signs, legend=of_sign),
        "fillOpacity": alt.FillOpacity("size:Q", scale=depth, legend=of_depth),
    }


def _labels(figure: FigureData, rows: list[str], x: Any, y: Any) -> list[Any]:
    """Labels at the right of their rows, and lines between groups."""
    marks = sorted(figure.marks, key=lambda mark: rows.index(mark["row"]))
    words = alt.Chart(chart_data(marks)).mark_text(align="left", dx=8, fontSize=11, color=QUIET)
    words = words.encode(x=alt.value("width"), y=y, text="label:N")
    starts = [mark | {"column": mark["row"]} for mark in marks if mark.get("line")]
    line = alt.Chart(chart_data(starts)).mark_rule(color=QUIET, strokeWidth=1, opacity=0.6)
    left, top = x.copy(), y.copy()
    left.bandPosition = top.bandPosition = 0
    across = line.encode(y=top, x=alt.value(0), x2=alt.value("width"))
    down = line.encode(x=left, y=alt.value(0), y2=alt.value("height"))
    return [words, across, down]
