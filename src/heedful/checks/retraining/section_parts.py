"""What the sections of checks that retrain share: estimates by λ, and the frame of a section."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isclose, isnan

from heedful.core.records import NO_ESTIMATE, CheckResult, Estimate
from heedful.results.document import Cell, Section, Table
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


@dataclass(frozen=True, slots=True)
class WeightResult:
    """One λ, of one start where there are several; `reported` is the one the check reports."""

    weight: str
    start: str
    found: Mapping[str, Estimate]
    reported: bool


def read_weights(result: CheckResult, measures: Iterable[str]) -> tuple[WeightResult, ...]:
    """Every λ from the smallest up, start by start."""
    measures = tuple(measures)
    settings = dict.fromkeys(
        row.setting for name in measures for row in result.rows(name) if row.setting
    )
    every = [_weight_result(result, measures, str(setting)) for setting in settings]
    return tuple(
        sorted(every, key=lambda one: (one.start != "scratch", one.start, weight_order(one)))
    )


def _weight_result(result: CheckResult, measures: Sequence[str], setting: str) -> WeightResult:
    here = {name: result.of(name, setting=setting) for name in measures}
    weight, _, start = setting.partition(", ")
    same = all(isclose(result.of(name).value, one.value) for name, one in here.items())
    return WeightResult(sanitise_text(weight), sanitise_text(start), here, same)


def weight_order(one: WeightResult) -> float:
    """The number of a λ; infinite where it is not a number."""
    try:
        value = float(one.weight.removeprefix("λ "))
    except ValueError:
        return inf
    return inf if isnan(value) else value


def weight_rows(result: CheckResult, measures: Sequence[str]) -> Iterator[Row]:
    """A row for every λ."""
    for one in read_weights(result, measures):
        start = f", from {one.start}" if one.start else ""
        name = Cell(f"{one.weight}{start}", answer="reported above" if one.reported else "")
        yield estimate_row(name, *one.found.values())
