"""The parts of a study's page: sections, tables and the format of numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan

from heedful.core.records import Estimate
from heedful.results.document import FigureData
from heedful.studies.results.cell_results import StudyResults
from heedful.studies.results.claims import ClaimFinding
from heedful.studies.results.comparison_table import ReplicatedNumber
from heedful.studies.study import Study

MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class PageTable:
    """Rows of cells under a head; the first column holds the names of the rows."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


@dataclass(frozen=True)
class Section:
    """A part of the page; `folded` tables are shown on request, under a summary."""

    name: str
    title: str
    words: tuple[str, ...] = ()
    tables: tuple[PageTable, ...] = ()
    figures: tuple[FigureData, ...] = ()
    folded: tuple[tuple[str, PageTable], ...] = ()


@dataclass(frozen=True)
class StudyOutcome:
    """Everything that the page shows."""

    study: Study
    results: StudyResults
    rows: Sequence[ReplicatedNumber]
    claims: Sequence[ClaimFinding]
    figures: Sequence[FigureData]
    absent: Mapping[str, str]
    failed: Mapping[str, str] = field(default_factory=dict)
    quick: bool = False
    missing: Sequence[str] = ()  # names of cells without results


def format_estimate(estimate: Estimate | None) -> str:
    """A number with its interval; a dash if it is missing."""
    if estimate is None:
        return three_decimals(None)
    if isnan(estimate.low):
        return three_decimals(estimate.value)
    low, high = three_decimals(estimate.low), three_decimals(estimate.high)
    return f"{three_decimals(estimate.value)} [{low}, {high}]"


def format_sample_size(estimate: Estimate | None, over: str) -> str:
    """The sample that an interval is over, such as "3 seeds".

    >>> format_sample_size(Estimate(0.3, 0.2, 0.4, 1725), "texts")
    '1 725 texts'
    """
    if estimate is None or not estimate.n:
        return "–"
    return pluralise(estimate.n, over)


def pluralise(count: int, what: str) -> str:
    """A count with its noun, singular for 1.

    >>> pluralise(1, "cells"), pluralise(9824, "texts")
    ('1 cell', '9 824 texts')
    """
    many = f"{count:,}".replace(",", " ")
    return f"{many} {what if count != 1 else what.removesuffix('s')}"


def three_decimals(value: float | None, sign: str = "") -> str:
    """Three decimals; a dash if it is missing."""
    if value is None or isnan(value):
        return "–"
    return f"{value:{sign}z.3f}".replace("-", MINUS)
