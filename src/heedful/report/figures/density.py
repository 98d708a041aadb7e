"""Two measures against each other: how many texts each cell holds, and a line of medians.

Rows: `class` where there are several, `x`, `x2`, `y`, `y2` (a cell), `strength` (from 0 to 1).
Marks: `class`, `x`, `y` (medians, in the order of the line).
"""

from typing import Any

import altair as alt

from heedful.report.figures.theme import INK, QUIET, SERIES, chart_data
from heedful.results.document import FigureData

WIDTHS = {1: 300, 2: 215}  # by the number of panels
NARROW = 190
WHOLE = (400, 240)  # of a figure without classes


def density_chart(figure: FigureData) -> Any:
    """A panel for each class, in its colour; one for all texts where the figure has no classes."""
    if not figure.classes:
        return _panel(figure, None, WHOLE)
    width = WIDTHS.get(len(figure.classes), NARROW)
    panels = [
        _panel(figure, name, (width, width)).properties(title=f"predicted {name}")
        for name in figure.classes
    ]
    return alt.concat(*panels, columns=4 if len(panels) == 4 else 3, spacing=18)


def _panel(figure: FigureData, name: str | None, size: tuple[int, int]) -> Any:
    rows, marks = (
        [row for row in some if row.get("class") == name] for some in (figure.rows, figure.marks)
    )
    place = figure.classes.index(name) if name is not None else 0
    across, up = (alt.Scale(domain=one, nice=False) for one in (figure.span, figure.y_span))
    ticks = alt.Axis(tickCount=4, format="~g")
    x = alt.X("x:Q", title=figure.x, scale=across, axis=ticks)
    y = alt.Y("y:Q", title=None if place else figure.y, scale=up, axis=alt.Axis(tickCount=5))
    shades = alt.Scale(domain=(0, 1), range=(0.08, 1))
    depth = alt.FillOpacity("strength:Q", scale=shades, legend=None)
    cells = alt.Chart(chart_data(rows), width=size[0], height=size[1])
    cells = cells.mark_rect(fill=SERIES[place % len(SERIES)], stroke=None)
    cells = cells.encode(x=x, x2="x2:Q", y=y, y2="y2:Q", fillOpacity=depth)
    zero = alt.Chart(chart_data([{"y": 0.0}])).mark_rule(color=QUIET, strokeWidth=1).encode(y=y)
    line = alt.Chart(chart_data(mark | {"order": n} for n, mark in enumerate(marks)))
    line = line.mark_line(
        color=INK, strokeWidth=1.5, point={"color": INK, "size": 22, "filled": True}
    ).encode(x=x, y=y, order="order:Q")
    crossed = [zero] if figure.y_span[0] < 0 < figure.y_span[1] else []
    return alt.layer(cells, *crossed, line)
