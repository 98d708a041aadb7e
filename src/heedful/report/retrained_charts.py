"""Scores of models made anew as Altair charts."""

import json
from collections.abc import Iterable
from typing import Any

from heedful.report.look import INK, QUIET, SERIES, data
from heedful.report.pictures import Picture, Row, told
from heedful.report.retrained_pictures import around

WIDTH = 380
ROW = 40  # height of an arm
ROOM = 1.15  # beyond the widest interval
SPREAD = 0.68  # of the seeds of an arm


def scores_chart(picture: Picture) -> Any:
    """Arms as rows with their seeds, means and intervals; differences on a ruler of their own."""
    import altair as alt

    means = [mark for mark in picture.marks if "arm" in mark]
    seeds = [row | {"at": row["arm"] + SPREAD * row["lift"]} for row in picture.rows]
    scale = alt.Scale(domain=picture.span, nice=False, padding=8)
    x = alt.X("value:Q", title=picture.x, scale=scale, axis=alt.Axis(tickCount=5))
    y = _rows("at:Q", picture.classes)
    faint = alt.Chart(data(seeds), width=WIDTH, height=ROW * len(picture.classes))
    faint = faint.mark_circle(size=34, color=SERIES[0], opacity=0.4).encode(x=x, y=y)
    mean = alt.Chart(data(mark | {"at": mark["arm"]} for mark in means))
    spread = mean.mark_rule(color=SERIES[0], strokeWidth=3, opacity=0.75)
    spread = spread.encode(x=alt.X("low:Q", title=picture.x), x2="high:Q", y=y)
    point = mean.mark_circle(color=SERIES[0], size=90, opacity=1).encode(x=x, y=y)
    arms = alt.layer(faint, spread, point, _values(mean, y))
    apart = [mark for mark in picture.marks if "difference" in mark]
    return alt.vconcat(arms, _differences(picture, apart), spacing=14) if apart else arms


def _differences(picture: Picture, apart: list[Row]) -> Any:
    import altair as alt

    margin = next((mark["margin"] for mark in picture.marks if "margin" in mark), 0.0)
    ends = [0.02, 2 * margin, *(abs(mark[end]) for mark in apart for end in ("low", "high"))]
    most = ROOM * max(ends)
    scale = alt.Scale(domain=(-most, most), nice=True)
    title = "difference of accuracy"
    x = alt.X("value:Q", title=title, scale=scale, axis=alt.Axis(tickCount=5))
    rows = [mark | {"at": place} for place, mark in enumerate(apart)]
    y = _rows("at:Q", [mark["difference"] for mark in apart])
    band = alt.Chart(data([{"value": -margin, "to": margin}]))
    band = band.mark_rect(fill=QUIET, opacity=0.18, stroke=None).encode(x=x, x2="to:Q")
    zero = alt.Chart(data([{"value": 0.0}])).mark_rule(color=QUIET, strokeWidth=1).encode(x=x)
    base = alt.Chart(data(rows), width=WIDTH, height=0.8 * ROW * len(rows))
    spread = base.mark_rule(color=INK, strokeWidth=3, opacity=0.75)
    spread = spread.encode(x=alt.X("low:Q", title=title), x2="high:Q", y=y)
    point = base.mark_circle(color=INK, size=80, opacity=1).encode(x=x, y=y)
    return alt.layer(*([band] if margin else []), zero, spread, point, _values(base, y))


def _values(means: Any, y: Any) -> Any:
    """The mean in numbers, at the right."""
    import altair as alt

    text = means.mark_text(align="left", dx=6, fontSize=11, color=INK)
    return text.encode(x=alt.value("width"), y=y, text=alt.Text("value:Q", format=".3f"))


def _rows(field: str, names: Iterable[str]) -> Any:
    """Rows from the top down, each with its name; heights between them are free."""
    import altair as alt

    listed = list(names)
    bare: dict[str, Any] = {"grid": False, "ticks": False, "domain": False}
    words = f"{json.dumps(listed)}[datum.value]"  # names of ours, never a user's
    places = list(range(len(listed)))
    axis = alt.Axis(values=places, labelExpr=words, labelLimit=220, minExtent=165, **bare)
    scale = alt.Scale(domain=(-0.5, len(listed) - 0.5), reverse=True, nice=False)
    return alt.Y(field, title=None, axis=axis, scale=scale)


def dumbbell_chart(picture: Picture) -> Any:
    """Two rulers, the one of attention and the one of accuracy, from before to after."""
    import altair as alt

    panels = [_before_after(picture, of, title) for of, title in HIDDEN.items()]
    return alt.hconcat(*panels, spacing=22)


HIDDEN = {"mass": "share of attention on the hidden words", "score": "accuracy"}


def _before_after(picture: Picture, of: str, title: str) -> Any:
    import altair as alt

    first = of == "mass"
    rows = [row for row in picture.rows if row["of"] == of]
    along = alt.Scale(domain=_span(picture, of), nice=False, zero=False, padding=8)
    x = alt.X("value:Q", title=title, scale=along, axis=alt.Axis(tickCount=5))
    plain = alt.Axis(labels=first, ticks=False, domain=False, grid=False, labelLimit=160)
    y = alt.Y("weight:N", title=None, sort=list(picture.classes), axis=plain)
    base = alt.Chart(data(rows), width=240, height=alt.Step(ROW))
    way = base.mark_rule(color=QUIET, strokeWidth=1.5).encode(x=x, x2="before:Q", y=y)
    spread = base.mark_rule(color=SERIES[0], strokeWidth=4, opacity=0.5)
    spread = spread.encode(x=alt.X("low:Q", title=title), x2="high:Q", y=y)
    scale = alt.Scale(domain=["before", "after"], range=[QUIET, SERIES[0]])
    legend = alt.Legend(title=None, orient="top") if first else None
    colour = alt.Color("when:N", scale=scale, legend=legend)
    dots = alt.Chart(data(row | {"when": "after"} for row in rows))
    dots = dots.mark_circle(size=90, opacity=1).encode(x=x, y=y, color=colour)
    rings = alt.Chart(data(row | {"when": "before"} for row in rows))
    rings = rings.mark_point(shape="circle", size=190, opacity=1, strokeWidth=2.5)
    rings = rings.encode(x=alt.X("before:Q", scale=along, title=title), y=y, color=colour)
    without = _without(picture, alt.X("without:Q", scale=along, title=title)) if not first else []
    return alt.layer(way, *without, rings, spread, dots)


def _span(picture: Picture, of: str) -> tuple[float, float]:
    """All of the way for shares of attention; accuracies lie closer together."""
    if of == "mass":
        return picture.span
    rows = [row for row in picture.rows if row["of"] == of]
    ends = [row[end] for row in rows for end in ("before", "low", "high")]
    return around([*ends, *(mark["without"] for mark in picture.marks)])


def _without(picture: Picture, x: Any) -> list[Any]:
    """What is reached without the words."""
    import altair as alt

    marks = [
        mark | {"told": f"without the words {told(mark['without'])}"} for mark in picture.marks
    ]
    base = alt.Chart(data(marks))
    rule = base.mark_rule(strokeDash=[4, 3], strokeWidth=1.5, color=SERIES[1]).encode(x=x)
    text = base.mark_text(baseline="bottom", dy=-4, fontSize=11, color=SERIES[1])
    return [rule, text.encode(x=x, y=alt.value(0), text="told:N")] if marks else []
