"""Estimates with their intervals, a line for each group: means, differences, medians.

Rows: `group` (the line), `value`, `low`, `high`. They may have a `class` (colour), a `role`
(shape), a `panel` (the title of one of the figure's panels), `start` and `end` (a box), `before` (a
line from there to the value), a `label` at the right, and `certain` (hollow where it is False).
Marks, in a `panel` where there are several: faint points (`group`, `value`, `lift` from -0.5 to
0.5), vertical reference lines (`rule`, `label`), shaded bands (`from`, `to`).
"""

import json
from collections.abc import Sequence
from typing import Any

import altair as alt

from heedful.report.figures.theme import INK, QUIET, SERIES, chart_data, class_colour, spread_labels
from heedful.results.document import FigureData, FigurePanel, FigureRow

WIDTHS = {1: 340, 2: 250}  # by the number of panels side by side
NARROW = 210
LINE, PADDING = 15, 13  # height of a class within a group, and between groups
SPREAD = 0.68  # of the classes or the faint points of a group, as a share of its height
BOX = 12
SHAPES = ("circle", "diamond", "triangle-left", "square")
SHORTEST_LABELS = 165  # of groups, where panels stand below each other


def interval_chart(figure: FigureData) -> Any:
    """Panels with the same groups stand side by side, others below each other."""
    panels = figure.panels or (FigurePanel(figure.x, figure.span),)
    whole, parts = _groups(figure.rows), [_groups(_of_panel(figure.rows, one)) for one in panels]
    stacked = not set(parts[0]).intersection(*parts[1:])
    width = WIDTHS[2] if stacked else WIDTHS.get(len(panels), NARROW)
    drawn = [
        _panel(figure, panel, part if stacked else whole, width, named=stacked or not place)
        for place, (panel, part) in enumerate(zip(panels, parts, strict=True))
    ]
    if len(drawn) == 1:
        return drawn[0]
    return alt.vconcat(*drawn, spacing=14) if stacked else alt.hconcat(*drawn, spacing=22)


def _of_panel(rows: Sequence[FigureRow], panel: FigurePanel) -> list[FigureRow]:
    return [row for row in rows if row.get("panel", panel.x) == panel.x]


def _groups(rows: Sequence[FigureRow]) -> list[str]:
    return list(dict.fromkeys(row["group"] for row in rows))


def _panel(
    figure: FigureData, panel: FigurePanel, groups: list[str], width: int, *, named: bool
) -> Any:
    roles = list(dict.fromkeys(row.get("role", "") for row in figure.rows))
    rows = [_placed(row, groups, figure.classes, roles[0]) for row in _of_panel(figure.rows, panel)]
    marks = _of_panel(figure.marks, panel)
    scale = alt.Scale(domain=panel.span, nice=False, padding=6)
    axis = alt.Axis(tickCount=5 if width > NARROW else 4, format="~g", titleLimit=width + 40)

    def x(name: str) -> Any:
        return alt.X(f"{name}:Q", title=panel.x, scale=scale, axis=axis)

    y = _rows(groups, named=named, shortest=SHORTEST_LABELS if figure.panels else 0)
    colour, points = _channels(figure.classes, roles)
    height = (LINE * max(1, len(figure.classes)) + PADDING) * len(groups)
    base = alt.Chart(chart_data(rows), width=width, height=height).encode(y=y)
    box, line = (alt.Chart(chart_data(rows, key)).encode(y=y) for key in ("start", "before"))
    dots = [_placed(mark, groups, (), "") for mark in marks if "group" in mark]
    faint = alt.Chart(chart_data(dots)).mark_circle(size=30, color=SERIES[0], opacity=0.4)
    labels = alt.Chart(chart_data(rows, "label")).mark_text(
        align="left", dx=8, fontSize=11, color=INK
    )
    return alt.layer(
        *_references(marks, panel, x),
        faint.encode(x=x("value"), y=y),
        line.mark_rule(color=QUIET, strokeWidth=1.5).encode(x=x("before"), x2="value:Q"),
        box.mark_bar(size=BOX, opacity=0.3).encode(x=x("start"), x2="end:Q", color=colour),
        base.mark_rule(strokeWidth=2.5, opacity=0.75).encode(x=x("low"), x2="high:Q", color=colour),
        base.mark_point(size=60, strokeWidth=1.8, opacity=1).encode(x=x("value"), **points),
        labels.encode(x=alt.value("width"), y=y, text="label:N"),
    )


def _placed(row: FigureRow, groups: list[str], classes: Sequence[str], first: str) -> FigureRow:
    """The row with its height, its role, and whether its point is filled."""
    lift, role = row.get("lift", 0.0), row.get("role", "")
    if len(classes) > 1:
        lift = (classes.index(row["class"]) + 0.5) / len(classes) - 0.5
    filled = float(role == first and row.get("certain", True))
    return row | {"at": groups.index(row["group"]) + SPREAD * lift, "role": role, "filled": filled}


def _rows(groups: list[str], *, named: bool, shortest: int) -> Any:
    """Groups from the top down; heights between them are free."""
    names, extent = f"{json.dumps(groups)}[datum.value]", shortest if named else 0
    labels: dict[str, Any] = {"labels": named, "labelExpr": names, "minExtent": extent}
    labels |= {"labelLimit": 260, "labelPadding": 8}
    axis = alt.Axis(values=list(range(len(groups))), ticks=False, domain=False, **labels)
    scale = alt.Scale(domain=(-0.5, len(groups) - 0.5), reverse=True, nice=False)
    return alt.Y("at:Q", title=None, axis=axis, scale=scale)


def _channels(classes: Sequence[str], roles: list[str]) -> tuple[Any, dict[str, Any]]:
    """The colour of lines, and colour and shape of points.

    Colours are those of classes. Without classes the first role is in colour, others are grey. The
    first role is filled, others are hollow.
    """
    legend: Any = None
    if len(roles) > 1:
        grey = {"symbolStrokeColor": QUIET, "symbolFillColor": QUIET} if len(classes) > 1 else {}
        above = {"title": None, "orient": "top", "symbolOpacity": 0.9}
        legend = alt.Legend.from_dict(above | grey)
    shapes = alt.Scale(domain=roles, range=list(SHAPES[: len(roles)]))
    greys = alt.Scale(domain=roles, range=[SERIES[0], *[QUIET] * (len(roles) - 1)])

    def colour(channel: Any) -> Any:
        if len(classes) > 1:
            return class_colour(classes, channel)
        return channel("role:N", scale=greys, legend=legend)

    return colour(alt.Color), {
        "stroke": colour(alt.Stroke),
        "fill": colour(alt.Fill),
        "fillOpacity": alt.FillOpacity("filled:Q", scale=None),
        "shape": alt.Shape("role:N", scale=shapes, legend=legend),
    }


def _references(marks: list[FigureRow], panel: FigurePanel, x: Any) -> list[Any]:
    """Bands, the zero line where the panel has one, and reference lines with their labels."""
    band = alt.Chart(chart_data(marks, "from")).mark_rect(fill=QUIET, opacity=0.18, stroke=None)
    zero = alt.Chart(chart_data([{"rule": 0.0}] if panel.span[0] <= 0 <= panel.span[1] else []))
    base = alt.Chart(chart_data(spread_labels(marks, 0.0))).encode(x=x("rule"))
    text = base.mark_text(baseline="bottom", dy=-4, fontSize=11, color=SERIES[1])
    return [
        band.encode(x=x("from"), x2="to:Q"),
        zero.mark_rule(color=QUIET, strokeWidth=1).encode(x=x("rule")),
        base.mark_rule(color=SERIES[1], strokeDash=[4, 3], strokeWidth=1.4),
        text.encode(y=alt.value(0), text="label:N"),
    ]
