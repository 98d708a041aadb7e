"""Distributions of two sources, above and below the line of each group.

Rows: `class` (a panel), `at` (the place of the group), `source`, `x`, `height` (from 0 to 1).
Marks: the same keys and `group` (its name), `low`, `value`, `high` (quartiles), `n`; or `class` and
`rule` (a reference line).
"""

import json
from typing import Any

from heedful.report.figures.theme import INK, QUIET, chart_data, class_legend, palette
from heedful.results.document import FigureData, FigureRow

WIDTH, NARROW, ROW = 420, 250, 70
TALLEST = 0.4  # of a distribution, on either side of its line; lines are 1 apart
BESIDE = 0.14  # of the quartiles, from the line


def violin_chart(figure: FigureData) -> Any:
    """A panel for each class; in it the first source above each line, the second below."""
    import altair as alt

    panels = [_panel(figure, name, first=not place) for place, name in enumerate(figure.classes)]
    return alt.hconcat(*panels, spacing=14)


def _panel(figure: FigureData, name: str, *, first: bool) -> Any:
    import altair as alt

    every = [mark for mark in figure.marks if "group" in mark]
    sources = list(dict.fromkeys(mark["source"] for mark in every))
    sides = {one: 1 - 2 * place for place, one in enumerate(sources)}
    rows = [row for row in figure.rows if row["class"] == name]
    middle = [
        mark | {"line": mark["at"] + BESIDE * sides[mark["source"]]}
        for mark in every
        if mark["class"] == name
    ]
    scale = alt.Scale(domain=figure.span, nice=False)

    def x(field: str) -> Any:
        axis = alt.Axis(tickCount=5, format="~g", grid=False)
        return alt.X(f"{field}:Q", title=figure.x, axis=axis, scale=scale)

    y = _rows(figure, {mark["at"]: mark["group"] for mark in every}, named=first)
    colour = alt.Color(
        "source:N",
        scale=alt.Scale(domain=sources, range=palette(sources)),
        legend=class_legend(sources) if first else None,
    )
    several = len(figure.classes) > 1
    shapes = [_lifted(row, sides) for row in _closed(rows, figure.span)]
    count = figure.y_span[1] - figure.y_span[0]
    area = alt.Chart(
        chart_data(shapes), width=NARROW if several else WIDTH, height=ROW * count
    ).mark_area(opacity=0.35, interpolate="monotone")
    area = area.encode(x=x("x"), y=y, y2="to:Q", color=colour, detail="at:O")
    base = alt.Chart(chart_data(middle)).encode(y=y, color=colour)
    spread = base.mark_rule(strokeWidth=2.5, opacity=0.9).encode(x=x("low"), x2="high:Q")
    dot = base.mark_circle(size=55, opacity=1).encode(x=x("value"))
    layers = alt.layer(
        area, *_rules(figure, name, x("rule")), spread, dot, *_counts(middle, sources[0], y)
    )
    return layers.properties(title=f"predicted {name}" if several else name)


def _rows(figure: FigureData, groups: dict[int, str], *, named: bool) -> Any:
    """A line for each group, with its name in the first panel."""
    import altair as alt

    words = f"{json.dumps({str(place): name for place, name in groups.items()})}[datum.value]"
    axis = alt.Axis(values=sorted(groups), labelExpr=words, labels=named, ticks=False, domain=False)
    scale = alt.Scale(domain=figure.y_span, nice=False)
    return alt.Y("line:Q", title=figure.y if named else None, axis=axis, scale=scale)


def _closed(rows: list[FigureRow], span: tuple[float, float]) -> list[FigureRow]:
    """Distributions that reach the ends of the scale, not the middles of their outer cells."""
    if not rows:
        return []
    ends = {
        pick(row["x"] for row in rows): edge for pick, edge in zip((min, max), span, strict=True)
    }
    return [*rows, *(row | {"x": ends[row["x"]]} for row in rows if row["x"] in ends)]


def _lifted(row: FigureRow, sides: dict[str, int]) -> FigureRow:
    height = sides[row["source"]] * TALLEST * row["height"]
    return row | {"line": row["at"], "to": row["at"] + height}


def _rules(figure: FigureData, name: str, x: Any) -> list[Any]:
    import altair as alt

    rows = [mark for mark in figure.marks if "rule" in mark and mark["class"] == name]
    rule = alt.Chart(chart_data(rows)).mark_rule(strokeDash=[4, 3], strokeWidth=1.2, color=INK)
    return [rule.encode(x=x)] if rows else []


def _counts(middle: list[FigureRow], source: str, y: Any) -> list[Any]:
    """How many texts each group holds, at the right."""
    import altair as alt

    rows = [
        mark | {"line": mark["at"], "label": f"n = {mark['n']}"}
        for mark in middle
        if mark["source"] == source
    ]
    text = alt.Chart(chart_data(rows)).mark_text(align="left", dx=5, fontSize=10, color=QUIET)
    return [text.encode(x=alt.value("width"), y=y, text="label:N")] if rows else []
