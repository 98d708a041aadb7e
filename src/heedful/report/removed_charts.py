"""Faithfulness as an Altair chart."""

from typing import Any

from heedful.report.look import INK, QUIET, SERIES, data
from heedful.report.pictures import Picture
from heedful.report.removed_pictures import KINDS

WIDTH, HIGH = 210, 15  # of a panel; of a way within a method's row
SHAPES = ("circle", "diamond", "triangle-left")


def whiskers_chart(picture: Picture) -> Any:
    """A panel for each figure: dots with their intervals, methods as rows, ways as colours."""
    import altair as alt

    panels = list(dict.fromkeys(row["panel"] for row in picture.rows))
    drawn = [_panel(picture, panel, named=not place) for place, panel in enumerate(panels)]
    return alt.hconcat(*drawn, spacing=22)


def _panel(picture: Picture, panel: str, *, named: bool) -> Any:
    import altair as alt

    rows = [row for row in picture.rows if row["panel"] == panel]
    ways, names = [mark["way"] for mark in picture.marks], list(picture.classes)
    bare: dict[str, Any] = {"domain": False, "ticks": False, "labelLimit": 200, "labelColor": INK}
    axis = alt.Axis(**bare, labelPadding=8, grid=True) if named else alt.Axis(labels=False, **bare)
    places = alt.Scale(domain=names, paddingInner=0.25)
    y = alt.Y("method:N", sort=names, title=None, axis=axis, scale=places)
    beside = alt.YOffset("way:N", sort=ways, scale=alt.Scale(domain=ways, paddingOuter=0.3))
    x = alt.X(
        "value:Q",
        title=panel,
        scale=alt.Scale(domain=picture.span, nice=False),
        axis=alt.Axis(tickCount=4, format="~g"),
    )
    base = alt.Chart(data(rows), width=WIDTH, height=HIGH * len(names) * (len(ways) + 1))
    base = base.encode(y=y, yOffset=beside)
    zero = alt.Chart(data([{"value": 0.0}])).mark_rule(color=QUIET, strokeWidth=1).encode(x=x)
    spread = base.mark_rule(strokeWidth=2, opacity=0.75)
    spread = spread.encode(
        x=alt.X("low:Q", title=panel), x2="high:Q", stroke=alt.Stroke("way:N", **_colours(ways))
    )
    point = base.mark_point(size=50, strokeWidth=1.6).encode(x=x, **_marks(ways))
    return alt.layer(zero, spread, point)


def _colours(ways: list[str]) -> dict[str, Any]:
    import altair as alt

    scale = alt.Scale(domain=ways, range=list(SERIES[: len(ways)]))
    return {"scale": scale, "legend": alt.Legend(title=None, orient="top", offset=6)}


def _marks(ways: list[str]) -> dict[str, Any]:
    """Methods are filled dots, controls hollow ones."""
    import altair as alt

    shape = alt.Scale(domain=list(KINDS), range=list(SHAPES))
    filled = alt.Scale(domain=list(KINDS), range=[1, 0, 0])
    legend = alt.Legend(
        title=None, orient="top", offset=6, symbolStrokeColor=QUIET, symbolFillColor=QUIET
    )
    return {
        "stroke": alt.Stroke("way:N", **_colours(ways)),
        "fill": alt.Fill("way:N", **_colours(ways) | {"legend": None}),
        "shape": alt.Shape("what:N", scale=shape, legend=legend),
        "fillOpacity": alt.FillOpacity("what:N", scale=filled, legend=legend),
    }
