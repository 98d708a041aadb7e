"""Distances between the attentions of models made anew as Altair charts."""

import json
from typing import Any

from heedful.report.look import INK, QUIET, SERIES, data
from heedful.report.pictures import Picture, Row
from heedful.report.retrained_pictures import HEIGHTS

WIDTH, NARROW, HEIGHT = 420, 250, 280
TALLEST = 0.4  # of a distribution, on either side of its line; lines are 1 apart
SEEDS = "other seeds"
BELOW = 0.06  # of the height, for the λ of points near 0
FARTHEST = 0.7  # JSD ends a little below


def spread_chart(picture: Picture) -> Any:
    """A panel for each class; in it, from bin to bin, seeds above the line, adversary below."""
    import altair as alt

    panels = [_panel(picture, name, first=place == 0) for place, name in enumerate(picture.classes)]
    return alt.hconcat(*panels, spacing=14)


def _panel(picture: Picture, name: str, *, first: bool) -> Any:
    import altair as alt

    sources = list(dict.fromkeys(mark["source"] for mark in picture.marks if "source" in mark))
    sides = {one: 1 - 2 * place for place, one in enumerate(sources)}
    here = [row for row in picture.rows if row["class"] == name]
    shapes = [_lifted(row, sides) for row in _closed(here, picture.span)]
    marks = [mark for mark in picture.marks if mark["class"] == name]
    middle = [
        mark | {"at": mark["bin"] + 0.5 + 0.14 * sides[mark["source"]]}
        for mark in marks
        if "median" in mark
    ]
    across = alt.Scale(domain=picture.span, nice=False)
    x = alt.X("x:Q", title=picture.x, scale=across, axis=alt.Axis(tickCount=5, grid=False))
    up, title = alt.Scale(domain=(0, len(HEIGHTS)), nice=False), "largest attention weight"
    y = alt.Y("at:Q", title=title if first else None, axis=_bins(shown=first), scale=up)
    legend = alt.Legend(title=None, orient="top", offset=4, labelLimit=220)
    colours = alt.Scale(domain=sources, range=list(SERIES[: len(sources)]))
    colour = alt.Color("source:N", scale=colours, legend=legend if first else None)
    width = NARROW if len(picture.classes) > 1 else WIDTH
    area = alt.Chart(data(shapes), width=width, height=HEIGHT)
    area = area.mark_area(opacity=0.35, interpolate="monotone")
    area = area.encode(x=x, y=y, y2="to:Q", color=colour, detail="bin:O")
    base = alt.Chart(data(middle))
    rule = base.mark_rule(strokeWidth=2.5, opacity=0.9)
    rule = rule.encode(x=alt.X("low:Q", title=picture.x), x2="high:Q", y=y, color=colour)
    dot = base.mark_circle(size=55, opacity=1).encode(x="median:Q", y=y, color=colour)
    layers = alt.layer(area, *_scale(marks), rule, dot, *_counts(middle, sources, y))
    return layers.properties(title=name if len(picture.classes) == 1 else f"predicted {name}")


def _closed(rows: list[Row], span: tuple[float, float]) -> list[Row]:
    """Distributions that reach the ends of the scale, not the middles of their outer cells."""
    if not rows:
        return []
    ends = {
        pick(row["x"] for row in rows): edge for pick, edge in zip((min, max), span, strict=True)
    }
    return [*rows, *(row | {"x": ends[row["x"]]} for row in rows if row["x"] in ends)]


def _lifted(row: Row, sides: dict[str, int]) -> Row:
    line = row["bin"] + 0.5
    return row | {"at": line, "to": line + sides[row["source"]] * TALLEST * row["height"]}


def _bins(*, shown: bool) -> Any:
    import altair as alt

    middles = [place + 0.5 for place in range(len(HEIGHTS))]
    words = f"{json.dumps(HEIGHTS)}[floor(datum.value)]"
    return alt.Axis(values=middles, labelExpr=words, labels=shown, ticks=False, domain=False)


def _scale(marks: list[Row]) -> list[Any]:
    """Where shuffled weights lie."""
    import altair as alt

    rows = [mark for mark in marks if "shuffled" in mark]
    rule = alt.Chart(data(rows)).mark_rule(strokeDash=[4, 3], strokeWidth=1.2, color=INK)
    return [rule.encode(x=alt.X("shuffled:Q"))] if rows else []


def _counts(middle: list[Row], sources: list[str], y: Any) -> list[Any]:
    """How many texts each bin holds, at the right."""
    import altair as alt

    rows = [
        mark | {"at": mark["bin"] + 0.5, "told": f"n = {mark['n']}"}
        for mark in middle
        if mark["source"] == sources[0]
    ]
    text = alt.Chart(data(rows)).mark_text(align="left", dx=5, fontSize=10, color=QUIET)
    return [text.encode(x=alt.value("width"), y=y, text="told:N")] if rows else []


def plane_chart(picture: Picture) -> Any:
    """Adversaries by start, joined along λ, each with its λ; seeds and ε for comparison."""
    import altair as alt

    few: dict[str, Any] = {"tickCount": 6, "format": "~g"}
    across, up = (
        alt.Scale(domain=(0, FARTHEST), nice=False),
        alt.Scale(domain=(-BELOW * picture.span[1], picture.span[1]), nice=False),
    )
    x = alt.X("jsd_value:Q", title=picture.x, scale=across, axis=alt.Axis(**few))
    y = alt.Y("tvd_value:Q", title="distance of output (TVD)", scale=up, axis=alt.Axis(**few))
    cloud = [mark for mark in picture.marks if "jsd" in mark]
    names = [*picture.classes, *([SEEDS] if cloud else [])]
    legend = alt.Legend(title=None, orient="top", labelLimit=220)
    scale = alt.Scale(domain=names, range=list(SERIES[: len(names)]))
    colour = alt.Color("start:N", scale=scale, legend=legend)
    base = alt.Chart(data(picture.rows), width=WIDTH, height=HEIGHT)
    line = base.mark_line(strokeWidth=1.5, opacity=0.7)
    line = line.encode(x=x, y=y, color=colour, order="order:Q")
    rule = base.mark_rule(strokeWidth=2, opacity=0.6)
    wide = rule.encode(x=alt.X("jsd_low:Q", title=picture.x), x2="jsd_high:Q", y=y, color=colour)
    tall = rule.encode(x=x, y="tvd_low:Q", y2="tvd_high:Q", color=colour)
    dot = base.mark_circle(size=80, opacity=1).encode(x=x, y=y, color=colour)
    seeds = alt.Chart(data(mark | {"start": SEEDS} for mark in cloud))
    seeds = seeds.mark_point(size=60, shape="diamond", filled=True, opacity=0.8)
    seeds = seeds.encode(x="jsd:Q", y="tvd:Q", color=colour)
    points = [seeds, dot] if cloud else [dot]
    return alt.layer(*_same(picture), line, wide, tall, *points, *_weights(picture, x, y))


def _weights(picture: Picture, x: Any, y: Any) -> list[Any]:
    """The λ of each point: above it on the first line and below on the others, to keep apart."""
    import altair as alt

    drawn = []
    for place, start in enumerate(picture.classes):
        rows = [row for row in picture.rows if row["start"] == start]
        text = alt.Chart(data(rows)).mark_text(dy=16 if place else -13, fontSize=11, color=INK)
        drawn.append(text.encode(x=x, y=y, text="weight:N"))
    return drawn


def _same(picture: Picture) -> list[Any]:
    """Below this line an output counts as the same."""
    import altair as alt

    rows = [
        {"tvd": mark["epsilon"], "told": f"ε {mark['epsilon']:g}"}
        for mark in picture.marks
        if "epsilon" in mark and mark["epsilon"] <= picture.span[1]
    ]
    base = alt.Chart(data(rows))
    rule = base.mark_rule(strokeDash=[5, 4], strokeWidth=1.2, color=QUIET).encode(y="tvd:Q")
    text = base.mark_text(align="left", dx=6, fontSize=11, color=QUIET)
    text = text.encode(x=alt.value("width"), y="tvd:Q", text="told:N")
    return [rule, text] if rows else []
