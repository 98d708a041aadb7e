"""What a page of a study is made of: sections, tables, numbers as they are told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan

from heedful.core.records import Estimate
from heedful.report.figures.figure_data import Picture
from heedful.studies.results.cell_results import Made
from heedful.studies.results.claims import Judged
from heedful.studies.results.comparison_table import Row
from heedful.studies.study import Model, Study

MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Table:
    """Rows of cells under a head; the first column names the row."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    name: str
    title: str
    words: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Picture, ...] = ()
    folded: tuple[tuple[str, Table], ...] = ()


@dataclass(frozen=True)
class Outcome:
    """All that a page is made from."""

    study: Study
    made: Mapping[tuple[str, Model], Made]
    rows: Sequence[Row]
    claims: Sequence[Judged]
    figures: Sequence[Picture]
    absent: Mapping[str, str]
    failed: Mapping[str, str] = field(default_factory=dict)
    quick: bool = False
    missing: Sequence[str] = ()  # cells without numbers, by name


def told(estimate: Estimate | None) -> str:
    """A number with its interval, with a true minus; a dash where there is none."""
    if estimate is None or isnan(estimate.value):
        return "–"
    if isnan(estimate.low):
        return f"{estimate.value:z.3f}".replace("-", MINUS)
    ends = f"{estimate.value:z.3f} [{estimate.low:z.3f}, {estimate.high:z.3f}]"
    return ends.replace("-", MINUS)


def counted(estimate: Estimate | None, over: str) -> str:
    """What a number's interval is over, and how many of them: "3 seeds", "1 725 texts".

    >>> counted(Estimate(0.3, 0.2, 0.4, 1725), "texts")
    '1 725 texts'
    """
    if estimate is None or not estimate.n:
        return "–"
    return several(estimate.n, over)


def several(count: int, what: str) -> str:
    """A number of things, in words that fit one of them too.

    >>> several(1, "cells"), several(9824, "texts")
    ('1 cell', '9 824 texts')
    """
    many = f"{count:,}".replace(",", " ")
    return f"{many} {what if count != 1 else what.removesuffix('s')}"


def number(value: float | None, sign: str = "") -> str:
    """Three decimals, or a dash."""
    if value is None or isnan(value):
        return "–"
    return f"{value:{sign}z.3f}".replace("-", MINUS)
