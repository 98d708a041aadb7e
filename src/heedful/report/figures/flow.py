"""What is left of a τ from station to station.

Rows: `station` (0, 1, 2), `name`, `value`, `low`, `high`, and `loss` (what is lost on the way to
it). Marks: `rule` with a `label` (other values, at the right).
"""

from typing import Any

import altair as alt

from heedful.report.figures.theme import INK, QUIET, SERIES, chart_data, spread_labels
from heedful.results.document import FigureData
from heedful.results.figure_data import format_two_decimals

HALF = 0.11  # the width of a station
LINE = 0.075  # height of a line of words, in units of τ


def flow_chart(figure: FigureData) -> Any:
    """Posts at the stations, what is kept and lost between them, and rulers at the right."""
    across = alt.Scale(domain=(-0.2, 3.05), nice=False)
    x = alt.X("station:Q", scale=across, axis=None)
    y = alt.Y("value:Q", title=figure.y, scale=alt.Scale(domain=figure.y_span))
    # level at each station: only there was anything measured, the slopes just join them
    level = [
        row | {"station": row["station"] + side} for row in figure.rows for side in (-HALF, HALF)
    ]
    base = alt.Chart(chart_data(level), width=520, height=250)
    lost = base.mark_area(color=SERIES[1], opacity=0.25).encode(x=x, y=y, y2=alt.datum(1.0))
    kept = base.mark_area(color=SERIES[0], opacity=0.25).encode(x=x, y=y, y2=alt.datum(0.0))
    post_rows = (
        row | {"station": row["station"] - HALF, "to": row["station"] + HALF} for row in figure.rows
    )
    posts = alt.Chart(chart_data(post_rows))
    posts = posts.mark_rect(color=SERIES[0], opacity=0.85)
    posts = posts.encode(x=x, x2="to:Q", y=y, y2=alt.datum(0.0))
    spread = alt.Chart(chart_data(figure.rows[1:])).mark_rule(color=INK, strokeWidth=2)
    spread = spread.encode(x=x, y=alt.Y("low:Q"), y2="high:Q")
    words = (*_names(figure, x), _losses(figure, x), *_rulers(figure, across))
    return alt.layer(lost, kept, posts, spread, *words)


def _names(figure: FigureData, x: Any) -> list[Any]:
    rows = [row | {"label": f"τ {format_two_decimals(row['value'])}"} for row in figure.rows]
    name = alt.Chart(chart_data(rows)).mark_text(
        baseline="top", dy=7, fontWeight=600, fontSize=12, color=INK
    )
    value = alt.Chart(chart_data(rows[1:])).mark_text(
        baseline="bottom", dy=-7, fontWeight=600, fontSize=13, color=INK
    )
    at_foot = alt.datum(figure.y_span[0])
    return [
        name.encode(x=x, y=at_foot, text="name:N"),
        value.encode(x=x, y="high:Q", text="label:N"),  # above the interval, not across it
    ]


def _losses(figure: FigureData, x: Any) -> Any:
    """How much goes missing between one station and the next, named."""
    rows = [
        {
            "station": (before["station"] + after["station"]) / 2,
            "label": [after["loss"], format_two_decimals(after["value"] - before["value"], "+")],
        }
        for before, after in zip(figure.rows[:-1], figure.rows[1:], strict=True)
    ]
    text = alt.Chart(chart_data(rows)).mark_text(
        baseline="bottom", dy=-20, fontSize=12, color=SERIES[1], lineHeight=15
    )
    return text.encode(x=x, y=alt.datum(1.0), text="label:N")


def _rulers(figure: FigureData, across: Any) -> list[Any]:
    rows = [
        mark | {"from": 2.2, "to": 2.28, "station": 2.33}
        for mark in spread_labels(figure.marks, LINE)
    ]
    base = alt.Chart(chart_data(rows))
    start, end = (alt.X(f"{name}:Q", scale=across, axis=None) for name in ("from", "station"))
    tick = base.mark_rule(strokeWidth=2.5, color=QUIET).encode(x=start, x2="to:Q", y="rule:Q")
    text = base.mark_text(align="left", fontSize=12, color=QUIET)
    return [tick, text.encode(x=end, y="words_at:Q", text="label:N")]
