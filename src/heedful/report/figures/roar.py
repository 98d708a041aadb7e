"""Training without words as an Altair chart."""

from typing import Any

from heedful.report.figures.theme import INK, QUIET, SERIES, chart_data
from heedful.results.document import FigureData

WIDTH, HEIGHT = 380, 260
APART = 0.012  # of methods at the same share, so that their intervals do not overlap


def curves_chart(picture: FigureData) -> Any:
    """A line for each method from share to share, with its intervals; the control is grey."""
    import altair as alt

    names = [*(name for name in picture.classes if name != "random"), "random"]
    colours = [*(SERIES[place % len(SERIES)] for place in range(len(names) - 1)), QUIET]
    middle = (len(names) - 1) / 2
    rows = [
        row | {"at": row["share"] + APART * (names.index(row["method"]) - middle)}
        for row in picture.rows
    ]
    most = max(row["share"] for row in picture.rows)
    x = alt.X(
        "at:Q",
        title=picture.x,
        scale=alt.Scale(domain=(0, min(1.0, most + 0.1)), nice=False),
        axis=alt.Axis(format=".0%", values=sorted({row["share"] for row in picture.rows})),
    )
    scale = alt.Scale(domain=picture.span, nice=False)
    y = alt.Y("value:Q", title="accuracy", scale=scale, axis=alt.Axis(tickCount=5))
    legend = alt.Legend(title=None, orient="top", offset=6, columns=3)
    colour = alt.Color("method:N", scale=alt.Scale(domain=names, range=colours), legend=legend)
    base = alt.Chart(chart_data(rows), width=WIDTH, height=HEIGHT).encode(x=x, color=colour)
    line = base.mark_line(strokeWidth=2).encode(y=y)
    spread = base.mark_rule(strokeWidth=2, opacity=0.75).encode(
        y=alt.Y("low:Q", title="accuracy"), y2="high:Q"
    )
    point = base.mark_circle(size=60, opacity=1).encode(y=y)
    whole = alt.Chart(chart_data({"value": mark["whole"]} for mark in picture.marks))
    rule = whole.mark_rule(color=INK, strokeDash=[4, 3], strokeWidth=1.2).encode(y=y)
    return alt.layer(rule, line, spread, point)
