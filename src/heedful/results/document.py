"""A neutral document: sections of words, tables and figures, rendered to HTML and Markdown.

Run, comparison, explanation, review and study pages are made of `Section`s. A section holds no
markup: text in it may come from users, and the renderer escapes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Literal

from heedful.core.records import Estimate

FigureRow = dict[str, Any]
FigureKind = Literal["histogram", "density", "flow", "heatmap", "intervals", "lines"]
Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class FigurePanel:
    """A panel of a chart of intervals: the title of its axis, which rows name, and its ends."""

    x: str
    span: Span


def format_estimate(estimate: Estimate) -> str:
    """An estimate in a sentence, with true minus signs; a dash where it has no value.

    >>> format_estimate(Estimate(-0.25, -0.5, 0.0, 9))
    '−0.250 [−0.500, 0.000]'
    """
    return "–" if isnan(estimate.value) else str(estimate).replace("-", "\N{MINUS SIGN}")


def note_texts(estimate: Estimate, n: int) -> str:
    """The number of texts of an estimate, where it is not the `n` of its row or column.

    >>> note_texts(Estimate(0.5, 0.4, 0.6, 3), 13), note_texts(Estimate(0.5, 0.4, 0.6, 13), 13)
    ('n = 3', '')
    """
    return "" if estimate.n in (0, n) else f"n = {estimate.n}"


@dataclass(frozen=True, slots=True)
class FigureData:
    """One figure before it is drawn; its chart in `report/figures/` says what rows and marks hold.

    Axes have a title (`x`, `y`) and two ends (`span`, `y_span`).
    """

    name: str  # of its file and anchor
    kind: FigureKind
    title: str  # what it shows, in a few words
    caption: str  # how to read it
    x: str = ""
    span: Span = (0.0, 1.0)
    classes: tuple[str, ...] = ()  # with a colour or a panel of their own; else those of the rows
    rows: Sequence[FigureRow] = ()  # bins, cells or points
    marks: Sequence[FigureRow] = ()  # drawn over them: lines, bands, medians, faint points
    y: str = ""
    y_span: Span = (0.0, 1.0)
    panels: Sequence[FigurePanel] = ()  # of a chart of intervals that has several


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table: text, or an estimate on a scale from `span[0]` to `span[1]`.

    `note` is small print below it, `answer` a badge beside it, `link` an anchor of the same page.
    `strong` marks what a reader should see first, `muted` controls and references. `heat`, from -1
    to 1, is the depth and the sign of its colour.
    """

    text: str = ""
    estimate: Estimate | None = None
    span: tuple[float, float] | None = None
    muted: bool = False
    strong: bool = False
    heat: float | None = None
    answer: str = ""
    link: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under a head. A plain string is a text cell.

    The first column names the row. Where it is an empty string, the row belongs to the name above.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str | Cell, ...], ...]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Widget:
    """An interactive part of a section: `name` has a template and a script, `data` becomes JSON."""

    name: Literal["texts", "maps"]
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page.

    `figure_names` are figures that the description of the check makes and that belong here; those
    that no section names stand under "Figures".
    """

    name: str  # its anchor, unique in a page
    title: str
    words: tuple[str, ...] = ()  # its paragraphs
    tables: tuple[Table, ...] = ()
    figures: tuple[FigureData, ...] = ()
    folded: "tuple[Section, ...]" = ()  # parts that start closed
    parts: "tuple[Section, ...]" = ()  # parts that are open, under smaller titles
    short: str = ""  # its name in the navigation, where it is listed only with one
    widget: Widget | None = None
    answer: str = ""  # a badge beside the title
    points: tuple[str, ...] = ()  # a list, below the paragraphs
    code: str = ""  # a text that is shown as it is, line by line
    figure_names: tuple[str, ...] = ()
