"""What a page of a study is made of: sections, tables, numbers as they are told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan

from heedful.core.records import Estimate
from heedful.results.document import FigureData
from heedful.studies.results.cell_results import CellResults
from heedful.studies.results.claims import ClaimFinding
from heedful.studies.results.comparison_table import ReplicatedNumber
from heedful.studies.study import ModelSpec, Study

MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class PageTable:
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
    tables: tuple[PageTable, ...] = ()
    figures: tuple[FigureData, ...] = ()
    folded: tuple[tuple[str, PageTable], ...] = ()


@dataclass(frozen=True)
class StudyOutcome:
    """All that a page is made from."""

    study: Study
    made: Mapping[tuple[str, ModelSpec], CellResults]
    rows: Sequence[ReplicatedNumber]
    claims: Sequence[ClaimFinding]
    figures: Sequence[FigureData]
    absent: Mapping[str, str]
    failed: Mapping[str, str] = field(default_factory=dict)
    quick: bool = False
    missing: Sequence[str] = ()  # cells without numbers, by name


def format_estimate(estimate: Estimate | None) -> str:
    """A number with its interval, with a true minus; a dash where there is none."""
    if estimate is None or isnan(estimate.value):
        return "–"
    if isnan(estimate.low):
        return f"{estimate.value:z.3f}".replace("-", MINUS)
    ends = f"{estimate.value:z.3f} [{estimate.low:z.3f}, {estimate.high:z.3f}]"
    return ends.replace("-", MINUS)


def format_sample_size(estimate: Estimate | None, over: str) -> str:
    """What a number's interval is over, and how many of them: "3 seeds", "1 725 texts".

    >>> counted(Estimate(0.3, 0.2, 0.4, 1725), "texts")
    '1 725 texts'
    """
    if estimate is None or not estimate.n:
        return "–"
    return pluralise(estimate.n, over)


def pluralise(count: int, what: str) -> str:
    """A number of things, in words that fit one of them too.

    >>> several(1, "cells"), several(9824, "texts")
    ('1 cell', '9 824 texts')
    """
    many = f"{count:,}".replace(",", " ")
    return f"{many} {what if count != 1 else what.removesuffix('s')}"


def three_decimals(value: float | None, sign: str = "") -> str:
    """Three decimals, or a dash."""
    if value is None or isnan(value):
        return "–"
    return f"{value:{sign}z.3f}".replace("-", MINUS)
