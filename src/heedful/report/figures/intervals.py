"""Estimates with their intervals, a line for each group: means, differences, medians.

Rows: `group` (the line), `value`, `low`, `high`. They may have a `class` (colour), a `role`
(shape), a `panel` (the title of one of the figure's panels), `start` and `end` (a box), `before` (a
line from there to the value), a `label` at the right, and `certain` (hollow where it is False).
Marks, in a `panel` where there are several: faint points (`group`, `value`, `lift` from -0.5 to
0.5), vertical reference lines (`rule`, `label`), shaded bands (`from`, `to`).
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

from heedful.report.figures.theme import INK, QUIET, SERIES, chart_data, class_legend, palette
from heedful.results.document import FigureData, FigurePanel, FigureRow

WIDTHS = {1: 340, 2: 250}  # by the number of panels side by side
NARROW = 210
LINE, PADDING = 15, 13  # height of a class within a group, and between groups
SPREAD = 0.68  # of the classes or the faint points of a group, as a share of its height
BOX = 14
SHAPES = ("circle", "diamond", "triangle-left", "square")
ROLE_COLOURS = (SERIES[0], QUIET, QUIET, QUIET)
SHORTEST_LABELS = 165  # of groups, where panels stand below each other
Field = Callable[[str], Any]


def interval_chart(figure: FigureData) -> Any:
    """Panels with the same groups stand side by side, others below each other."""
    import altair as alt

    panels = figure.panels or (FigurePanel(figure.x, figure.span),)
    groups = [_groups(_of_panel(figure.rows, panel)) for panel in panels]
    whole = _groups(figure.rows)
    stacked = len(panels) > 1 and all(set(one).isdisjoint(groups[0]) for one in groups[1:])
    width = WIDTHS.get(len(panels), NARROW) if not stacked else WIDTHS[1]
    drawn = [
        _panel(figure, panel, one if stacked else whole, width, named=stacked or not place)
        for place, (panel, one) in enumerate(zip(panels, groups, strict=True))
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
    import altair as alt

    roles = list(dict.fromkeys(row.get("role", "") for row in figure.rows))
    rows = [
        row
        | {
            "at": groups.index(row["group"]) + _offset(figure.classes, row),
            "role": row.get("role", ""),
            "filled": float(row.get("role", "") == roles[0] and row.get("certain", True)),
        }
        for row in _of_panel(figure.rows, panel)
    ]
    scale = alt.Scale(domain=panel.span, nice=False, padding=6)

    def x(name: str) -> Any:
        axis = alt.Axis(tickCount=5 if width > NARROW else 4, format="~g")
        return alt.X(f"{name}:Q", title=panel.x, scale=scale, axis=axis)

    y = _rows(groups, named=named, shortest=SHORTEST_LABELS if figure.panels else 0)
    colour, points = _channels(figure.classes, roles)
    height = (LINE * max(1, len(figure.classes)) + PADDING) * len(groups)
    base = alt.Chart(chart_data(rows), width=width, height=height).encode(y=y)
    marks = _of_panel(figure.marks, panel)
    return alt.layer(
        *_references(marks, panel, x),
        *_faint_points(marks, groups, x, y),
        *_connections(base, rows, x, colour),
        base.mark_rule(strokeWidth=2.5, opacity=0.75).encode(x=x("low"), x2="high:Q", color=colour),
        base.mark_point(size=60, strokeWidth=1.8, opacity=1).encode(x=x("value"), **points),
        *_labels(base, rows),
    )


def _offset(classes: Sequence[str], row: FigureRow) -> float:
    if len(classes) < 2:
        return 0.0
    place: float = classes.index(row["class"]) - (len(classes) - 1) / 2
    return SPREAD * place / len(classes)


def _rows(groups: list[str], *, named: bool, shortest: int) -> Any:
    """Groups from the top down; heights between them are free."""
    import altair as alt

    words = f"{json.dumps(groups)}[datum.value]"
    axis = alt.Axis(
        values=list(range(len(groups))),
        labelExpr=words,
        labels=named,
        labelLimit=260,
        labelPadding=8,
        ticks=False,
        domain=False,
        **({"minExtent": shortest} if named and shortest else {}),
    )
    scale = alt.Scale(domain=(-0.5, len(groups) - 0.5), reverse=True, nice=False)
    return alt.Y("at:Q", title=None, axis=axis, scale=scale)


def _channels(classes: Sequence[str], roles: list[str]) -> tuple[Any, dict[str, Any]]:
    """The colour of lines, and colour and shape of points.

    Colours are those of classes. Without classes the first role is in colour, others are grey. The
    first role is filled, others are hollow.
    """
    import altair as alt

    several = len(classes) > 1
    names, colours = (classes, palette(classes)) if several else (roles, ROLE_COLOURS[: len(roles)])
    grey = {"symbolStrokeColor": QUIET, "symbolFillColor": QUIET} if several else {}
    of_roles = alt.Legend(title=None, orient="top", offset=6, **grey) if len(roles) > 1 else None
    field, legend = ("class:N", class_legend(classes)) if several else ("role:N", of_roles)
    scale = alt.Scale(domain=list(names), range=list(colours))
    shapes = alt.Scale(domain=roles, range=list(SHAPES[: len(roles)]))
    return alt.Color(field, scale=scale, legend=legend), {
        "stroke": alt.Stroke(field, scale=scale, legend=legend),
        "fill": alt.Fill(field, scale=scale, legend=legend),
        "fillOpacity": alt.FillOpacity("filled:Q", scale=None),
        "shape": alt.Shape("role:N", scale=shapes, legend=of_roles),
    }


def _references(marks: list[FigureRow], panel: FigurePanel, x: Field) -> list[Any]:
    """Bands, the zero line where the panel has one, and reference lines with their labels."""
    import altair as alt

    bands = alt.Chart(chart_data(mark for mark in marks if "from" in mark))
    bands = bands.mark_rect(fill=QUIET, opacity=0.18, stroke=None).encode(x=x("from"), x2="to:Q")
    zero = alt.Chart(chart_data([{"rule": 0.0}])).mark_rule(color=QUIET, strokeWidth=1)
    rules = [mark for mark in marks if "rule" in mark]
    base = alt.Chart(chart_data(rules)).encode(x=x("rule"))
    rule = base.mark_rule(color=SERIES[1], strokeDash=[4, 3], strokeWidth=1.4)
    text = base.mark_text(baseline="bottom", dy=-4, fontSize=11, color=SERIES[1])
    named = any("label" in mark for mark in rules)
    return [
        *([bands] if any("from" in mark for mark in marks) else []),
        *([zero.encode(x=x("rule"))] if panel.span[0] <= 0 <= panel.span[1] else []),
        *([rule] if rules else []),
        *([text.encode(y=alt.value(0), text="label:N")] if named else []),
    ]


def _faint_points(marks: list[FigureRow], groups: list[str], x: Field, y: Any) -> list[Any]:
    import altair as alt

    rows = [
        mark | {"at": groups.index(mark["group"]) + SPREAD * mark.get("lift", 0.0)}
        for mark in marks
        if "group" in mark
    ]
    dots = alt.Chart(chart_data(rows)).mark_circle(size=30, color=SERIES[0], opacity=0.4)
    return [dots.encode(x=x("value"), y=y)] if rows else []


def _connections(base: Any, rows: list[FigureRow], x: Field, colour: Any) -> list[Any]:
    """Boxes from start to end, and lines from what was before."""
    line = base.mark_rule(color=QUIET, strokeWidth=1.5).encode(x=x("before"), x2="value:Q")
    box = base.mark_bar(size=BOX, opacity=0.3).encode(x=x("start"), x2="end:Q", color=colour)
    boxed, joined = (any(key in row for row in rows) for key in ("start", "before"))
    return [*([line] if joined else []), *([box] if boxed else [])]


def _labels(base: Any, rows: list[FigureRow]) -> list[Any]:
    import altair as alt

    text = base.mark_text(align="left", dx=8, fontSize=11, color=INK)
    labelled = any("label" in row for row in rows)
    return [text.encode(x=alt.value("width"), text="label:N")] if labelled else []
