"""Differences with their intervals as a forest plot."""

from typing import Any

from heedful.report.figures.theme import QUIET, SERIES, chart_data
from heedful.results.document import FigureData

STEP, WIDTH = 24, 330


def forest_chart(picture: FigureData) -> Any:
    """A row for each measure, a mark for each pair; zero is drawn through all."""
    import altair as alt

    scale = alt.Scale(domain=picture.span, nice=False)
    axis = alt.Axis(tickCount=5, format="+~g")
    x = alt.X("value:Q", title=picture.x, scale=scale, axis=axis)
    names = list(dict.fromkeys(row["measure"] for row in picture.rows))
    bare = alt.Axis(labelLimit=260, ticks=False, domain=False, grid=True, minExtent=200)
    y = alt.Y("measure:N", title=None, sort=names, axis=bare)
    beside = alt.YOffset("class:N", sort=list(picture.classes))
    scale = alt.Scale(domain=list(picture.classes), range=list(SERIES[: len(picture.classes)]))
    several = len(picture.classes) > 1
    legend = alt.Legend(title=None, orient="top") if several else None
    colour = alt.Color("class:N", scale=scale, legend=legend)
    high = STEP * (1 if not several else max(1.0, 0.6 * len(picture.classes)))
    base = alt.Chart(chart_data(picture.rows), width=WIDTH, height=max(1, len(names)) * high)
    base = base.encode(y=y, yOffset=beside, color=colour)
    bars = base.mark_rule(strokeWidth=2.5, opacity=0.8)
    bars = bars.encode(x=alt.X("low:Q", title=picture.x, axis=axis), x2="high:Q")
    filled = alt.condition("datum.certain", alt.value(1.0), alt.value(0.0))
    dots = base.mark_point(size=62, strokeWidth=2, filled=False, opacity=1)
    dots = dots.encode(x=x, fill=colour, fillOpacity=filled)
    zero = alt.Chart(chart_data([{"value": 0.0}])).mark_rule(color=QUIET, strokeWidth=1.2)
    return alt.layer(zero.encode(x=x), bars, dots)
