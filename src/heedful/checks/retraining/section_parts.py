"""What the sections of checks that retrain share: estimates by λ, and the frame of a section."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import isclose, isnan

from heedful.core.records import NO_ESTIMATE, CheckResult, Estimate
from heedful.results.document import Cell, Section, Table
from heedful.results.figure_data import weight_order
from heedful.results.run_records import RunRecords, sanitise_text

Content = tuple[Sequence[str], Sequence[Table]]  # paragraphs and tables
Row = tuple[str | Cell, ...]


def frame_section(
    name: str, describe: Callable[[RunRecords, CheckResult], Content]
) -> Callable[[RunRecords], tuple[Section, ...]]:
    """The `sections` of a check that retrains: its figure, and what `describe` adds.

    A check without any value has no paragraphs and no tables.
    """

    def build_sections(records: RunRecords) -> tuple[Section, ...]:
        result = records.verdict.checks[name]
        section = Section(f"retraining-{name}", name, figure_names=(name,))
        if not any(map(is_known, result.estimates.values())):
            return (section,)
        words, tables = describe(records, result)
        return (replace(section, words=tuple(filter(None, words)), tables=tuple(tables)),)

    return build_sections


def is_known(estimate: Estimate) -> bool:
    """Whether there is a value."""
    return not isnan(estimate.value)


def estimate_row(name: str | Cell, *estimates: Estimate) -> Row:
    """A row of a table; values that do not exist are left blank."""
    return (name, *(Cell(estimate=one) if one.n else "" for one in estimates))


def method_rows(result: CheckResult, *measures: str) -> Iterator[Row]:
    """A row for each method with a value of the first measure; controls and all."""
    columns = [result.by_method(measure) for measure in measures]
    for method, first in columns[0].items():
        if is_known(first):
            found = (column.get(method, NO_ESTIMATE) for column in columns)
            yield estimate_row(sanitise_text(method), *found)


def weight_settings(result: CheckResult, *measures: str) -> list[tuple[str, str, str]]:
    """Every setting, its λ and its start: λ from the smallest up, start by start, scratch first."""
    rows = (row for name in measures for row in result.rows(name) if row.setting)
    parts = dict.fromkeys(str(row.setting).partition(", ") for row in rows)
    order = sorted(parts, key=lambda one: (one[2] != "scratch", one[2], weight_order(one[0])))
    return [("".join(one), one[0], one[2]) for one in order]


def weight_rows(result: CheckResult, *measures: str) -> Iterator[Row]:
    """A row for every λ of `weight_settings`; the one reported has a badge."""
    for setting, weight, start in weight_settings(result, *measures):
        found = {name: result.of(name, setting=setting) for name in measures}
        reported = all(isclose(result.of(name).value, one.value) for name, one in found.items())
        name = sanitise_text(f"{weight}, from {start}" if start else weight)
        yield estimate_row(Cell(name, answer="reported above" if reported else ""), *found.values())
