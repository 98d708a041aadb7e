"""Pictures as Altair charts, and as files good enough for a paper."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.checks.attention.agreement.compared_methods import build_method_agreement
from heedful.checks.attention.agreement.layers import build_layers
from heedful.checks.attention.identifiability.sections import build_identifiability
from heedful.core.errors import RunError
from heedful.report.figures.comparison import forest_chart
from heedful.report.figures.erasure import boxes_chart, build_erasure_figures, gap_chart
from heedful.report.figures.faithfulness import build_removal_figures, whiskers_chart
from heedful.report.figures.figure_data import build_figures, format_two_decimals
from heedful.report.figures.identifiability import build_identifiability_figures
from heedful.report.figures.layer_charts import heads_chart, layers_chart, lines_chart
from heedful.report.figures.layers import build_layer_figures
from heedful.report.figures.method_agreement import build_method_figures, matrix_chart
from heedful.report.figures.retraining import (
    build_retraining_figures,
    dumbbell_chart,
    plane_chart,
    scores_chart,
    spread_chart,
)
from heedful.report.figures.roar import curves_chart
from heedful.report.figures.theme import INK, QUIET, SERIES, chart_data, chart_theme
from heedful.report.sections.check_sections import list_figures
from heedful.report.sections.retraining import read_retrained_checks
from heedful.results.document import FigureData, FigureRow, shorten_class_names
from heedful.results.run_records import RunRecords

if TYPE_CHECKING:
    import altair as alt

HALF = 0.11  # the width of a station
PIXELS_PER_POINT = 3.0  # 300 dpi at the size of a column


def write_figures(records: RunRecords, folder: Path) -> list[Path]:
    """Write every figure as SVG and PNG; the paths written, in order."""
    vl_convert, written = _library("vl_convert"), []
    pictures = (
        *list_figures(records),
        *build_figures(records),
        *build_erasure_figures(records),
        *build_removal_figures(records),
        *build_method_figures(build_method_agreement(records)),
        *build_layer_figures(records, build_layers(records)),
        *build_identifiability_figures(records, build_identifiability(records)),
        *build_retraining_figures(records, read_retrained_checks(records)),
    )
    drawn = {one.name: build_chart(one, title=True) for one in pictures}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, chart in drawn.items():
            spec = chart.to_json()
            svg, png = folder / f"{name}.svg", folder / f"{name}.png"
            svg.write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")
            png.write_bytes(vl_convert.vegalite_to_png(spec, scale=PIXELS_PER_POINT))
            written += [svg, png]
    except OSError as error:
        raise RunError(f"Cannot write to {folder}: {error.strerror or error}.") from error
    return written


def render_svg(picture: FigureData) -> str:
    """The figure as text to stand in a page, without ground or title of its own."""
    vl_convert = _library("vl_convert")
    chart = build_chart(picture).configure(**chart_theme(background="transparent"))
    svg: str = vl_convert.vegalite_to_svg(chart.to_json())
    return svg


def build_chart(picture: FigureData, *, title: bool = False) -> Any:
    """The picture as an Altair chart."""
    chart = CHART_BUILDERS[picture.kind](shorten_class_names(picture))
    if title:
        chart = chart.properties(title=picture.title).configure(**chart_theme(background="white"))
    return chart


def _histogram(picture: FigureData) -> Any:
    import altair as alt

    colour = _colour(picture, legend=alt.Legend(title="predicted", orient="top", offset=4))
    base = alt.Chart(chart_data(picture.rows), width=300, height=190)
    halves = alt.Axis(values=[-1, -0.5, 0, 0.5, 1], format="~g")
    x = alt.X("x:Q", title=picture.x, scale=alt.Scale(domain=picture.span), axis=halves)
    y = alt.Y("share:Q", title="share of texts", axis=alt.Axis(format="%", tickCount=4), stack=None)
    bars = base.mark_rect(opacity=0.3, stroke=None).encode(
        x=x, x2="x2:Q", y=y, y2=alt.datum(0.0), color=colour
    )
    outline = base.mark_line(interpolate="step-after", strokeWidth=1.6).encode(
        x=x, y=y, color=colour
    )
    mean = alt.Chart(chart_data(picture.marks))
    rule = mean.mark_rule(strokeDash=[4, 3], strokeWidth=1.2, color=INK).encode(x="x:Q")
    return bars + outline + rule


def _density(picture: FigureData) -> Any:
    import altair as alt

    width = {1: 300, 2: 215}.get(len(picture.classes), 190)
    scale = alt.Scale(domain=picture.span, nice=False)
    x = alt.X("x:Q", title=picture.x, scale=scale, axis=alt.Axis(tickCount=4, format="~g"))
    y = alt.Y("y:Q", title="largest attention weight", scale=alt.Scale(domain=(0, 1)))
    panels = []
    for name in picture.classes:
        rows = [row for row in picture.rows if row["class"] == name]
        line = [row for row in picture.marks if row["class"] == name]
        cells = alt.Chart(chart_data(rows), width=width, height=width)
        strength = alt.FillOpacity(
            "strength:Q", scale=alt.Scale(domain=(0, 1), range=(0.08, 1)), legend=None
        )
        colour = SERIES[picture.classes.index(name)]
        cells = cells.mark_rect(fill=colour, stroke=None).encode(
            x=x, x2="x2:Q", y=y, y2="y2:Q", fillOpacity=strength
        )
        median = alt.Chart(chart_data(line)).mark_line(
            color=INK, strokeWidth=1.5, point={"color": INK, "size": 22, "filled": True}
        )
        median = median.encode(x=x, y=y, order="y:Q")
        panels.append((cells + median).properties(title=f"predicted {name}"))
        y = alt.Y("y:Q", title=None, scale=alt.Scale(domain=(0, 1)))
    return alt.concat(*panels, columns=4 if len(panels) == 4 else 3, spacing=18)


def _flow(picture: FigureData) -> Any:
    import altair as alt

    across = alt.Scale(domain=(-0.2, 3.05), nice=False)
    x = alt.X("station:Q", scale=across, axis=None)
    y = alt.Y("tau:Q", title="Kendall's τ", scale=alt.Scale(domain=picture.span))
    # level at each station: only there was anything measured, the slopes just join them
    level = [
        row | {"station": row["station"] + side} for row in picture.rows for side in (-HALF, HALF)
    ]
    base = alt.Chart(chart_data(level), width=520, height=250)
    lost = base.mark_area(color=SERIES[1], opacity=0.25).encode(x=x, y=y, y2=alt.datum(1.0))
    kept = base.mark_area(color=SERIES[0], opacity=0.25).encode(x=x, y=y, y2=alt.datum(0.0))
    posts = alt.Chart(chart_data([_post(row) for row in picture.rows]))
    posts = posts.mark_rect(color=SERIES[0], opacity=0.85)
    posts = posts.encode(x=x, x2="to:Q", y=y, y2=alt.datum(0.0))
    spread = alt.Chart(chart_data(picture.rows[1:])).mark_rule(color=INK, strokeWidth=2)
    spread = spread.encode(x=x, y=alt.Y("low:Q"), y2="high:Q")
    words = (*_stations(picture, x), *_losses(picture, x), *_rulers(picture, across))
    return alt.layer(lost, kept, posts, spread, *words)


def _post(row: FigureRow) -> FigureRow:
    return row | {"station": row["station"] - HALF, "to": row["station"] + HALF}


def _stations(picture: FigureData, x: "alt.X") -> list["alt.Chart"]:
    import altair as alt

    names = ("attention", "contributions", "leave-one-out")
    rows = [
        row | {"name": name, "label": f"τ {format_two_decimals(row['tau'])}"}
        for row, name in zip(picture.rows, names, strict=True)
    ]
    name = alt.Chart(chart_data(rows)).mark_text(
        baseline="top", dy=7, fontWeight=600, fontSize=12, color=INK
    )
    value = alt.Chart(chart_data(rows[1:])).mark_text(
        baseline="bottom", dy=-7, fontWeight=600, fontSize=13, color=INK
    )
    at_foot = alt.datum(picture.span[0])
    return [
        name.encode(x=x, y=at_foot, text="name:N"),
        value.encode(x=x, y="high:Q", text="label:N"),  # above the interval, not across it
    ]


def _losses(picture: FigureData, x: "alt.X") -> list["alt.Chart"]:
    """How much goes missing between one station and the next, named."""
    import altair as alt

    taus = [row["tau"] for row in picture.rows]
    rows = [
        {"station": place, "label": [name, format_two_decimals(after - before, "+")]}
        for place, name, before, after in zip(
            (0.5, 1.5), ("weighting", "mixing"), taus[:-1], taus[1:], strict=True
        )
    ]
    text = alt.Chart(chart_data(rows)).mark_text(
        baseline="bottom", dy=-20, fontSize=12, color=SERIES[1], lineHeight=15
    )
    return [text.encode(x=x, y=alt.datum(1.0), text="label:N")]


def _rulers(picture: FigureData, across: "alt.Scale") -> list["alt.Chart"]:
    import altair as alt

    rows = [mark | {"from": 2.2, "to": 2.28, "station": 2.33} for mark in picture.marks]
    base = alt.Chart(chart_data(rows))
    start, end = (alt.X(f"{name}:Q", scale=across, axis=None) for name in ("from", "station"))
    tick = base.mark_rule(strokeWidth=2.5, color=QUIET).encode(x=start, x2="to:Q", y="tau:Q")
    text = base.mark_text(align="left", fontSize=12, color=QUIET)
    return [tick, text.encode(x=end, y="words_at:Q", text="what:N")]


def _colour(picture: FigureData, legend: Any) -> "alt.Color":
    import altair as alt

    colours = list(SERIES[: len(picture.classes)])
    scale = alt.Scale(domain=list(picture.classes), range=colours)
    return alt.Color("class:N", scale=scale, legend=legend)


CHART_BUILDERS: dict[str, Callable[[FigureData], Any]] = {
    "histogram": _histogram,
    "density": _density,
    "flow": _flow,
    "layers": layers_chart,
    "lines": lines_chart,
    "heads": heads_chart,
    "matrix": matrix_chart,
    "boxes": boxes_chart,
    "gap": gap_chart,
    "whiskers": whiskers_chart,
    "scores": scores_chart,
    "spread": spread_chart,
    "plane": plane_chart,
    "dumbbell": dumbbell_chart,
    "forest": forest_chart,
    "curves": curves_chart,
}


def _library(name: str) -> Any:
    """A library of the extra `report`, or a line that says how to get it."""
    from importlib import import_module

    try:
        import_module("altair")
        return import_module(name)
    except ImportError as error:
        raise RunError(
            f"Reports and figures need {error.name}: pip install 'heedful[report]'."
        ) from None
