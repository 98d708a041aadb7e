"""Histograms by class, one over the other.

Rows: `class`, `x` and `x2` (a bin), `share`. Marks: `x` (a mean over all classes).
"""

from typing import Any

import altair as alt

from heedful.report.figures.theme import INK, chart_data, class_colour
from heedful.results.document import FigureData


def histogram_chart(figure: FigureData) -> Any:
    """Bars and outline of each class, and the mean as a dashed line."""
    colour = class_colour(figure.classes, title="predicted")
    base = alt.Chart(chart_data(figure.rows), width=300, height=190)
    ticks = alt.Axis(tickCount=5, format="~g")
    x = alt.X("x:Q", title=figure.x, scale=alt.Scale(domain=figure.span), axis=ticks)
    title = figure.y or "share of texts"
    y = alt.Y("share:Q", title=title, axis=alt.Axis(format="%", tickCount=4), stack=None)
    bars = base.mark_rect(opacity=0.3, stroke=None).encode(
        x=x, x2="x2:Q", y=y, y2=alt.datum(0.0), color=colour
    )
    outline = base.mark_line(interpolate="step-after", strokeWidth=1.6)
    mean = alt.Chart(chart_data(figure.marks))
    rule = mean.mark_rule(strokeDash=[4, 3], strokeWidth=1.2, color=INK).encode(x="x:Q")
    return alt.layer(bars, outline.encode(x=x, y=y, color=colour), rule)
