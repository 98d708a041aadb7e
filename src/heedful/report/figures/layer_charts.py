"""Layers and heads as Altair charts."""

from typing import Any

from heedful.report.figures.figure_data import format_two_decimals
from heedful.report.figures.theme import INK, QUIET, SERIES, chart_data
from heedful.results.document import FigureData, FigureRow

LINE = 0.06  # height of a line of words, of the whole chart
APART = 0.08  # of several measures of one layer, in layers
MOST_NUMBERS = 16  # heads in a row whose cells still have room for a number
WHITE = "#ffffff"
DEEP = 0.7  # of the strongest colour: from here on white letters are read better


def layers_chart(picture: FigureData) -> Any:
    """Means with intervals from layer to layer, the heads behind them, the audited one marked."""
    import altair as alt

    colour = SERIES[2 if picture.name == "layers_word_mass" else 0]
    numbers = [row["layer"] for row in picture.rows]
    across = alt.Scale(domain=(min(numbers) - 0.5, max(numbers) + 0.5), nice=False)
    ticks = alt.Axis(values=_spread(numbers), format="d", grid=False)
    x = alt.X("layer:Q", title=picture.x, scale=across, axis=ticks)
    scale = alt.Scale(domain=picture.span, nice=False)
    y = alt.Y("value:Q", title=picture.classes[0], scale=scale, axis=alt.Axis(tickCount=5))
    dots = [mark for mark in picture.marks if "layer" in mark]
    faint = alt.Chart(chart_data(dots)).mark_circle(color=colour, opacity=0.28, size=26)
    base = alt.Chart(chart_data(picture.rows), width=400, height=240)
    line = base.mark_line(color=colour, strokeWidth=2).encode(x=x, y=y)
    spread = base.mark_rule(color=colour, strokeWidth=3, opacity=0.75)
    point = base.mark_circle(color=colour, size=70, opacity=1)
    return alt.layer(
        *_audited(picture, x),
        *_rulers(picture),
        faint.encode(x=x, y=y),
        line,
        spread.encode(x=x, y=alt.Y("low:Q", title=picture.classes[0]), y2="high:Q"),
        point.encode(x=x, y=y),
    )


def lines_chart(picture: FigureData) -> Any:
    """A line from layer to layer for each of several measures, side by side in every layer."""
    import altair as alt

    names = picture.classes
    rows = [
        row | {"at": row["layer"] + APART * (names.index(row["class"]) - (len(names) - 1) / 2)}
        for row in picture.rows
    ]
    numbers = sorted({row["layer"] for row in rows})
    across = alt.Scale(domain=(min(numbers) - 0.5, max(numbers) + 0.5), nice=False)
    ticks = alt.Axis(values=_spread(numbers), format="d", grid=False)
    x = alt.X("at:Q", title=picture.x, scale=across, axis=ticks)
    scale = alt.Scale(domain=picture.span, nice=False)
    y = alt.Y("value:Q", title="Kendall's τ", scale=scale, axis=alt.Axis(tickCount=5))
    legend = alt.Legend(title=None, orient="top", offset=6, columns=1, labelLimit=300)
    shades = alt.Scale(domain=list(names), range=list(SERIES[: len(names)]))
    base = alt.Chart(chart_data(rows), width=400, height=240)
    base = base.encode(x=x, color=alt.Color("class:N", scale=shades, legend=legend))
    spread = base.mark_rule(strokeWidth=2, opacity=0.75)
    return alt.layer(
        *_audited(picture, alt.X("layer:Q", title=picture.x, scale=across, axis=ticks)),
        *_rulers(picture),
        base.mark_line(strokeWidth=2).encode(y=y),
        spread.encode(y=alt.Y("low:Q", title="Kendall's τ"), y2="high:Q"),
        base.mark_circle(size=60, opacity=1).encode(y=y),
    )


def _spread(numbers: list[int]) -> list[int]:
    """At most a dozen of the layers, evenly apart, so that their numbers do not run together."""
    return numbers[:: 1 + (len(numbers) - 1) // 12]


def _audited(picture: FigureData, x: Any) -> list[Any]:
    import altair as alt

    chosen = [{"layer": one} for one in sorted({r["layer"] for r in picture.rows if r["audited"]})]
    sides = [{"layer": row["layer"] - 0.5, "to": row["layer"] + 0.5} for row in chosen]
    band = alt.Chart(chart_data(sides)).mark_rect(fill=QUIET, opacity=0.14, stroke=None)
    words = alt.Chart(chart_data(chosen)).mark_text(
        color=INK, fontSize=11, baseline="bottom", dy=-4
    )
    words = words.encode(x=x, y=alt.value(0), text=alt.value("under audit"))
    return [band.encode(x=x, x2="to:Q"), words] if chosen else []


def _rulers(picture: FigureData) -> list[Any]:
    """The line of no agreement, and what else is known of this data, named at the right."""
    import altair as alt

    low, high = picture.span
    rows: list[FigureRow] = []
    for mark in sorted(
        (one for one in picture.marks if "what" in one), key=lambda one: one["value"]
    ):
        above = rows[-1]["words_at"] + LINE * (high - low) if rows else low
        words = {"label": f"{mark['what']} {format_two_decimals(mark['value'])}"}
        rows.append(mark | words | {"words_at": max(mark["value"], above)})
    zero = alt.Chart(chart_data([{"value": 0.0}])).mark_rule(color=QUIET, strokeWidth=1)
    base = alt.Chart(chart_data(rows))
    rule = base.mark_rule(color=QUIET, strokeDash=[5, 4], strokeWidth=1.2).encode(y="value:Q")
    text = base.mark_text(align="left", dx=6, fontSize=11, color=QUIET)
    text = text.encode(x=alt.value("width"), y="words_at:Q", text="label:N")
    return [zero.encode(y="value:Q"), *([rule, text] if rows else [])]


def heads_chart(picture: FigureData) -> Any:
    """Layers by heads, a colour for each mean, blue above 0 and orange below it."""
    import altair as alt

    low, high = picture.span
    ends = [SERIES[1], WHITE, SERIES[0]]
    colours = alt.Scale(domain=[low, 0, high], range=ends, interpolate="rgb")
    legend = alt.Legend(title=picture.classes[0], format="+.2f", values=[low, 0, high])
    fewest = len({row["head"] for row in picture.rows}) <= MOST_NUMBERS
    side = 34 if fewest else 14
    labels = alt.Axis(domain=False, ticks=False, labelAngle=0, labelOverlap=True)
    x = alt.X("head:O", title=picture.x, axis=labels)
    y = alt.Y("layer:O", title="layer", axis=labels)
    base = alt.Chart(chart_data(picture.rows), width=alt.Step(side), height=alt.Step(side * 0.8))
    cells = base.mark_rect(stroke=WHITE, strokeWidth=1)
    cells = cells.encode(x=x, y=y, color=alt.Color("value:Q", scale=colours, legend=legend))
    return alt.layer(cells, *([_numbers(picture, x, y)] if fewest else []), *_row(picture, y))


def _numbers(picture: FigureData, x: Any, y: Any) -> Any:
    import altair as alt

    rows = [
        row | {"label": format_two_decimals(row["value"]), "deep": _deep(picture, row)}
        for row in picture.rows
    ]
    ink = alt.Color("deep:N", scale=alt.Scale(domain=[False, True], range=[INK, WHITE]))
    text = alt.Chart(chart_data(rows)).mark_text(fontSize=10)
    return text.encode(x=x, y=y, text="label:N", color=ink.legend(None))


def _deep(picture: FigureData, row: FigureRow) -> bool:
    return abs(float(row["value"])) > DEEP * picture.span[1]


def _row(picture: FigureData, y: Any) -> list[Any]:
    """A frame around the layer under audit."""
    import altair as alt

    chosen = sorted({row["layer"] for row in picture.rows if row["audited"]})
    frame = alt.Chart(chart_data([{"layer": one} for one in chosen]))
    frame = frame.mark_rect(fill=None, stroke=INK, strokeWidth=1.6)
    return [frame.encode(y=y, x=alt.value(0), x2=alt.value("width"))] if chosen else []
