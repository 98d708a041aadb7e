"""Points with their intervals along a number, joined into lines.

Rows: `x`, `value`, `low`, `high`, `class` where there are several; `x_low` and `x_high` where x has
an interval too, `label` beside the point. Marks: faint points (`x`, `value`, `class`), horizontal
reference lines (`rule`, `label`), shaded bands (`from`, `to`, `label`).
"""

from typing import Any

import altair as alt

from heedful.report.figures.theme import INK, QUIET, chart_data, class_colour, spread_labels
from heedful.results.document import FigureData, FigureRow

WIDTH, HEIGHT = 400, 250
APART = 6  # pixels between the points of several classes, so that their intervals do not overlap
LINE = 0.06  # height of a line of words, as a share of the chart
MOST_TICKS = 12  # evenly apart, so that their numbers do not run together


def line_chart(figure: FigureData) -> Any:
    """A line for each class, over bands, reference lines and faint points."""
    both = any("x_low" in row for row in figure.rows)
    rows = _dodged(figure, 0.0 if both else APART / WIDTH * (figure.span[1] - figure.span[0]))
    distinct = sorted({float(row["x"]) for row in figure.rows})
    apart = 1 + (len(distinct) - 1) // MOST_TICKS
    ticks: dict[str, Any] = {"tickCount": 6} if both else {"values": distinct[::apart]}
    across, up = (alt.Scale(domain=one, nice=False) for one in (figure.span, figure.y_span))

    def x(name: str) -> Any:
        axis = alt.Axis(format="~g", grid=both, **ticks)
        return alt.X(f"{name}:Q", title=figure.x, scale=across, axis=axis)

    def y(name: str) -> Any:
        axis = alt.Axis(tickCount=5, format="~g")
        return alt.Y(f"{name}:Q", title=figure.y, scale=up, axis=axis)

    colour = class_colour(figure.classes)
    base = alt.Chart(chart_data(rows), width=WIDTH, height=HEIGHT).encode(color=colour)
    spread = base.mark_rule(strokeWidth=2.5, opacity=0.7)
    faint = alt.Chart(chart_data(figure.marks, "value")).mark_circle(opacity=0.35, size=30)
    line = base.mark_line(strokeWidth=2, opacity=0.8)
    wide = [spread.encode(x=x("x_low"), x2="x_high:Q", y=y("value"))] if both else []
    return alt.layer(
        *_bands(figure, x),
        *_rules(figure, y),
        faint.encode(x=x("x"), y=y("value"), color=colour),
        line.encode(x=x("at"), y=y("value"), order="order:Q"),
        spread.encode(x=x("at"), y=y("low"), y2="high:Q"),
        *wide,
        base.mark_circle(size=65, opacity=1).encode(x=x("at"), y=y("value")),
        *_labels(figure, x("x"), y("value")),
    )


def _dodged(figure: FigureData, step: float) -> list[FigureRow]:
    """Rows with their place along the axis: classes side by side, in the order of their lines."""
    middle = (len(figure.classes) - 1) / 2
    places = {name: step * (n - middle) for n, name in enumerate(figure.classes)}
    return [
        row | {"at": row["x"] + places.get(row.get("class", ""), 0.0), "order": order}
        for order, row in enumerate(figure.rows)
    ]


def _bands(figure: FigureData, x: Any) -> list[Any]:
    bands = [mark for mark in figure.marks if "from" in mark]
    base = alt.Chart(chart_data(one | {"at": (one["from"] + one["to"]) / 2} for one in bands))
    band = base.mark_rect(fill=QUIET, opacity=0.14, stroke=None).encode(x=x("from"), x2="to:Q")
    words = base.mark_text(color=INK, fontSize=11, baseline="bottom", dy=-4)
    return [band, words.encode(x=x("at"), y=alt.value(0), text="label:N")]


def _rules(figure: FigureData, y: Any) -> list[Any]:
    """The zero line, and reference lines with their names and numbers at the right."""
    low, high = figure.y_span
    zero = alt.Chart(chart_data([{"rule": 0.0}] if low <= 0 <= high else []))
    base = alt.Chart(chart_data(spread_labels(figure.marks, LINE * (high - low))))
    rule = base.mark_rule(color=QUIET, strokeDash=[5, 4], strokeWidth=1.2)
    text = base.mark_text(align="left", dx=6, fontSize=11, color=QUIET)
    return [
        zero.mark_rule(color=QUIET, strokeWidth=1).encode(y=y("rule")),
        rule.encode(y=y("rule")),
        text.encode(x=alt.value("width"), y=y("words_at"), text="label:N"),
    ]


def _labels(figure: FigureData, x: Any, y: Any) -> list[Any]:
    """Labels above the points of the first class and below those of others, to keep them apart."""
    first = figure.classes[:1]
    drawn = []
    for above in (True, False):
        rows = [row for row in figure.rows if (row.get("class") in first) == above]
        text = alt.Chart(chart_data(rows, "label"))
        text = text.mark_text(dy=-13 if above else 16, fontSize=11, color=INK)
        drawn.append(text.encode(x=x, y=y, text="label:N"))
    return drawn
