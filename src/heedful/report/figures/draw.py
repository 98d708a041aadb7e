"""Figures as Altair charts, as SVG for a page, and as files good enough for a paper."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from heedful.core.errors import RunError, file_errors
from heedful.report.figures.theme import chart_theme
from heedful.report.sections.check_sections import list_figures
from heedful.results.document import FigureData, FigureRow
from heedful.results.run_records import RunRecords, sanitise_text

PIXELS_PER_POINT = 3.0  # 300 dpi at the size of a column
LONGEST_NAME = 60  # characters of a name in a figure; very long ones take minutes to draw
NAMES = ("class", "group", "panel", "row", "column")  # keys of rows that hold names


def write_figures(records: RunRecords, folder: Path) -> list[Path]:
    """Write every figure as SVG and PNG; the paths written, in order."""
    vl_convert, written = _library("vl_convert"), []
    drawn = {one.name: build_chart(one, title=True) for one in list_figures(records)}
    with file_errors(f"Cannot write to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, chart in drawn.items():
            spec = chart.to_json()
            svg, png = folder / f"{name}.svg", folder / f"{name}.png"
            svg.write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")
            png.write_bytes(vl_convert.vegalite_to_png(spec, scale=PIXELS_PER_POINT))
            written += [svg, png]
    return written


def render_svg(figure: FigureData) -> str:
    """The figure as text to stand in a page, without ground or title of its own."""
    vl_convert = _library("vl_convert")
    chart = build_chart(figure).configure(**chart_theme(background="transparent"))
    svg: str = vl_convert.vegalite_to_svg(chart.to_json())
    return svg


def build_chart(figure: FigureData, *, title: bool = False) -> Any:
    """The figure as an Altair chart."""
    from heedful.report.figures.charts import CHART_BUILDERS

    chart = CHART_BUILDERS[figure.kind](clean_names(figure))
    if title:
        words = {"text": sanitise_text(figure.title), "limit": 0}
        chart = chart.properties(title=words).configure(**chart_theme(background="white"))
    return chart


def clean_names(figure: FigureData) -> FigureData:
    """The same figure with names that can be drawn: no control characters, none too long."""
    rows = (*figure.rows, *figure.marks)
    classes = figure.classes or tuple(dict.fromkeys(row["class"] for row in rows if "class" in row))
    names = dict.fromkeys([*classes, *(row[key] for row in rows for key in NAMES if key in row)])
    shown = {name: sanitise_text(name) for name in names}
    for place, (name, text) in enumerate(shown.items(), 1):
        if len(text) > LONGEST_NAME:  # the place keeps long names apart
            shown[name] = f"{text[:LONGEST_NAME]}… ({place})"

    def rename(row: FigureRow) -> FigureRow:
        texts = {key: sanitise_text(one) for key, one in row.items() if isinstance(one, str)}
        return {**row, **texts, **{key: shown[row[key]] for key in NAMES if key in row}}

    return replace(
        figure,
        classes=tuple(shown[name] for name in classes),
        rows=[rename(row) for row in figure.rows],
        marks=[rename(row) for row in figure.marks],
        panels=[replace(one, x=shown.get(one.x, one.x)) for one in figure.panels],
    )


def _library(name: str) -> Any:
    """A library of the extra `report`, or a line that says how to get it."""
    try:
        import_module("altair")
        return import_module(name)
    except ImportError as error:
        why = f"Reports and figures need {error.name}: pip install 'heedful[report]'."
        raise RunError(why) from None
