"""Checks without a claim, each a table of methods and measures."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from heedful.checks.spec import CONTROL_METHODS, CheckSpec, ValueRange, group_missing
from heedful.core.records import CheckResult, Estimate, EstimateRow
from heedful.report.check_specs import find_spec
from heedful.results.run_records import RunRecords, sanitise_text


@dataclass(frozen=True, slots=True)
class MethodRow:
    """One method, or a control, and its estimate in each column; None where it has none."""

    name: str
    control: bool
    estimates: tuple[Estimate | None, ...]
    texts: int


@dataclass(frozen=True, slots=True)
class SettingRow:
    """The means of the methods under one setting."""

    name: str
    estimates: tuple[Estimate | None, ...]


@dataclass(frozen=True, slots=True)
class DescriptiveCheck:
    """A check that bears on no claim: its question, what it found, and the figures of methods.

    `settings` have the first measure again, of the methods named in `across`.
    """

    name: str
    question: str
    why: str
    heads: tuple[str, ...]
    spans: tuple[ValueRange, ...]
    rows: tuple[MethodRow, ...]
    missing: tuple[str, ...]
    across: tuple[str, ...] = ()
    settings: tuple[SettingRow, ...] = ()


def build_descriptive_checks(records: RunRecords) -> tuple[DescriptiveCheck, ...]:
    """The checks of the run whose measures have headings for a table of methods."""
    found = (
        (find_spec(name, records.manifest), result)
        for name, result in records.verdict.checks.items()
    )
    return tuple(
        _descriptive_check(spec, result)
        for spec, result in found
        if any(one.short for one in spec.measures)
    )


def _descriptive_check(spec: CheckSpec, result: CheckResult) -> DescriptiveCheck:
    columns = {one.name: _defined(result.by_method(one.name)) for one in spec.measures if one.short}
    columns = {name: column for name, column in columns.items() if column}
    names = dict.fromkeys(name for column in columns.values() for name in column)
    order = sorted(names, key=lambda name: name in CONTROL_METHODS)
    first = next((one.name for one in spec.measures if one.short), "")
    across = tuple(dict.fromkeys(row.method for row in _settings(result, first)))
    return DescriptiveCheck(
        name=spec.name,
        question=spec.question,
        why=sanitise_text(result.why),
        heads=tuple(spec.measure(name).short for name in columns),
        spans=tuple(spec.measure(name).range for name in columns),
        rows=tuple(_method_row(name, columns) for name in order),
        missing=tuple(
            f"{name}: {sanitise_text(why)}" for name, why in group_missing(result.missing)
        ),
        across=tuple(sanitise_text(str(name)) for name in across),
        settings=tuple(_setting_rows(result, first, across)),
    )


def _defined(column: Mapping[str, Estimate]) -> dict[str, Estimate]:
    return {name: one for name, one in column.items() if one.n}


def _method_row(name: str, columns: Mapping[str, Mapping[str, Estimate]]) -> MethodRow:
    own = tuple(column.get(name) for column in columns.values())
    texts = max((one.n for one in own if one), default=0)
    return MethodRow(sanitise_text(name), name in CONTROL_METHODS, own, texts)


def _settings(result: CheckResult, measure: str) -> list[EstimateRow]:
    """The rows of the first measure by method under a setting or a seed."""
    return [
        row
        for row in result.rows(measure)
        if row.method and (row.setting or row.seed is not None) and row.predicted is None
    ]


def _setting_rows(
    result: CheckResult, measure: str, across: tuple[str | None, ...]
) -> Iterator[SettingRow]:
    found: dict[str, dict[str | None, Estimate]] = {}
    for row in _settings(result, measure):
        name = row.setting if row.seed is None else f"seed {row.seed}"
        found.setdefault(str(name), {})[row.method] = row.estimate
    for name, estimates in found.items():
        yield SettingRow(sanitise_text(name), tuple(estimates.get(one) for one in across))
