"""Methods against methods as an Altair chart."""

from typing import Any

from heedful.report.look import INK, QUIET, SERIES, data
from heedful.report.pictures import Picture

WIDE, HIGH = 38, 25  # of a cell
DEEPEST = 0.5  # opacity: ink is read on the whole scale, in light and in dark


def matrix_chart(picture: Picture) -> Any:
    """A cell for every two methods, blue above 0 and orange below it, its number inside."""
    import altair as alt

    names = list(picture.classes)
    bare: dict[str, Any] = {"domain": False, "ticks": False, "title": None, "labelLimit": 220}
    top = alt.Axis(orient="top", labelAngle=-40, labelAlign="left", labelPadding=4, **bare)
    places = alt.Scale(domain=names, paddingInner=0.03)
    x = alt.X("other:N", sort=names, axis=top, scale=places)
    y = alt.Y("one:N", sort=names, axis=alt.Axis(**bare), scale=places)
    base = alt.Chart(data(picture.rows), width=alt.Step(WIDE), height=alt.Step(HIGH))
    base = base.encode(x=x, y=y)
    signs = alt.Scale(domain=["plus", "minus"], range=list(SERIES[:2]))
    depth = alt.Scale(domain=(0, 1), range=(0.03, DEEPEST))
    cells = base.mark_rect(stroke=None).encode(
        fill=alt.Fill("sign:N", scale=signs, legend=None),
        fillOpacity=alt.FillOpacity("strength:Q", scale=depth, legend=None),
    )
    numbers = base.mark_text(fontSize=11, color=INK).encode(text="told:N")
    return alt.layer(cells, numbers, *_kinds(picture, x, y))


def _kinds(picture: Picture, x: Any, y: Any) -> list[Any]:
    """The kind at the right of its first method, and a line before each kind but the first."""
    import altair as alt

    starts = sorted(picture.marks, key=lambda mark: picture.classes.index(mark["one"]))
    words = alt.Chart(data(starts)).mark_text(align="left", dx=8, fontSize=11, color=QUIET)
    words = words.encode(x=alt.value("width"), y=y, text="kind:N")
    later = alt.Chart(data({**mark, "other": mark["one"]} for mark in starts[1:]))
    line = later.mark_rule(color=QUIET, strokeWidth=1, opacity=0.6)
    across = line.encode(y=_at_edge(y), x=alt.value(0), x2=alt.value("width"))
    down = line.encode(x=_at_edge(x), y=alt.value(0), y2=alt.value("height"))
    return [words, *([across, down] if starts[1:] else [])]


def _at_edge(channel: Any) -> Any:
    edge = channel.copy()
    edge.bandPosition = 0
    return edge
