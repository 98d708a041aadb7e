"""Erasure as Altair charts."""

from typing import Any

from heedful.report.look import INK, QUIET, SERIES, data
from heedful.report.pictures import Picture, told

THICK = 18  # of a box
COLOURS = {"attention": SERIES[0], "random": QUIET, "optimal": SERIES[1]}


def boxes_chart(picture: Picture) -> Any:
    """One box for each order, and the median of the smallest sets across all of them."""
    import altair as alt

    shown = [row | {"told": told(row["middle"])} for row in picture.rows]
    names = list(picture.classes)
    colours = [COLOURS.get(row["name"], SERIES[2]) for row in picture.rows]
    colour = alt.Color("order:N", scale=alt.Scale(domain=names, range=colours), legend=None)
    bare = alt.Axis(domain=False, ticks=False, labelPadding=8, labelColor=INK, labelLimit=200)
    y = alt.Y("order:N", sort=names, title=None, axis=bare)
    scale = alt.Scale(domain=picture.span, nice=False)
    axis = alt.Axis(format="~g", tickCount=5)

    def x(name: str) -> Any:
        return alt.X(f"{name}:Q", title=picture.x, scale=scale, axis=axis)

    base = alt.Chart(data(shown), width=330, height=alt.Step(38)).encode(y=y, color=colour)
    line = base.mark_rule(strokeWidth=2).encode(x=x("low"), x2="high:Q")
    box = base.mark_bar(size=THICK, opacity=0.35).encode(x=x("from"), x2="to:Q")
    middle = base.mark_tick(thickness=3, size=THICK + 4).encode(x=x("middle"))
    words = base.mark_text(align="left", dx=8, fontSize=12)
    words = words.encode(x=alt.value("width"), text="told:N", color=alt.value(INK))
    return alt.layer(*_least(picture), line, box, middle, words)


def _least(picture: Picture) -> list[Any]:
    import altair as alt

    found = [row for row in picture.rows if row["name"] == "optimal"]
    rule = alt.Chart(data(found)).mark_rule(color=QUIET, strokeDash=[4, 3], strokeWidth=1.2)
    return [rule.encode(x=alt.X("middle:Q", title=picture.x))] if found else []


def gap_chart(picture: Picture) -> Any:
    """Texts by the difference of two weights and by what their removal does, with medians."""
    import altair as alt

    across = alt.Scale(domain=(0, 1), nice=False)
    x = alt.X("x:Q", title=picture.x, scale=across, axis=alt.Axis(tickCount=5, format="~g"))
    scale = alt.Scale(domain=picture.span, nice=False)
    y = alt.Y("y:Q", title=picture.classes[0], scale=scale, axis=alt.Axis(tickCount=5))
    strength = alt.FillOpacity(
        "strength:Q", scale=alt.Scale(domain=(0, 1), range=(0.08, 1)), legend=None
    )
    cells = alt.Chart(data(picture.rows), width=400, height=240)
    cells = cells.mark_rect(fill=SERIES[0], stroke=None).encode(
        x=x, x2="x2:Q", y=y, y2="y2:Q", fillOpacity=strength
    )
    zero = alt.Chart(data([{"y": 0.0}])).mark_rule(color=QUIET, strokeWidth=1).encode(y=y)
    median = alt.Chart(data(picture.marks)).mark_line(
        color=INK, strokeWidth=1.5, point={"color": INK, "size": 22, "filled": True}
    )
    return alt.layer(cells, zero, *([median.encode(x=x, y=y)] if picture.marks else []))
