"""Figures as Altair charts, as SVG for a page, and as files good enough for a paper."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any
from zlib import crc32

from heedful.core.errors import RunError, file_errors
from heedful.report.figures.theme import chart_theme
from heedful.report.sections.check_sections import list_figures
from heedful.results.document import FigureData, FigureRow
from heedful.results.outputs import PNG_MARK, SVG_MARK, require_output, write_output
from heedful.results.run_records import RunRecords, sanitise_text

PNG_HEAD = 33  # bytes of the signature and of the chunk that must come first
PIXELS_PER_POINT = 3.0  # 300 dpi at the size of a column
LONGEST_NAME = 60  # characters of a name in a figure; very long ones take minutes to draw
NAMES = ("class", "group", "panel", "row", "column")  # keys of rows that hold names


def write_figures(records: RunRecords, folder: Path, *, ours: bool = False) -> list[Path]:
    """Write every figure as SVG and PNG; the paths written, in order.

    `ours` says that whatever has their names in the folder may be written over.
    """
    vl_convert, written = _library("vl_convert"), []
    drawn = {one.name: build_chart(one, title=True) for one in list_figures(records)}
    with file_errors(f"Cannot write to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    for name in drawn:
        require_output(folder / f"{name}.svg", None if ours else SVG_MARK)
        require_output(folder / f"{name}.png", None if ours else PNG_MARK)
    for name, chart in drawn.items():
        spec = chart.to_json()
        png = _mark_png(vl_convert.vegalite_to_png(spec, scale=PIXELS_PER_POINT))
        written.append(
            write_svg(folder / f"{name}.svg", vl_convert.vegalite_to_svg(spec), ours=ours)
        )
        written.append(write_output(folder / f"{name}.png", png, PNG_MARK, ours=ours))
    return written


def write_svg(path: Path, svg: str, *, ours: bool = False) -> Path:
    """Write a figure as a file of its own, with a mark that says whose it is."""
    tag, end, rest = svg.partition(">")
    return write_output(path, f"{tag}{end}{SVG_MARK}{rest}", SVG_MARK, ours=ours)


def _mark_png(png: bytes) -> bytes:
    """The picture with a chunk of text that says whose it is, behind its first chunk."""
    text = b"tEXt" + PNG_MARK.encode()
    chunk = (len(text) - 4).to_bytes(4, "big") + text + crc32(text).to_bytes(4, "big")
    return png[:PNG_HEAD] + chunk + png[PNG_HEAD:]


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
