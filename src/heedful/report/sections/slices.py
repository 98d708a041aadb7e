"""The same questions for parts of the data: by class, by length, by correctness."""

from itertools import groupby

from heedful.core.records import NO_ESTIMATE, Estimate
from heedful.report.check_specs import find_spec
from heedful.results.document import Cell, Section, Table
from heedful.results.run_records import RunRecords, sanitise_text

DEGREE = "degree"


def build_slices(records: RunRecords) -> Section:
    """Each part of the data with the degree and the measures that checks estimate by slice."""
    found: dict[str, dict[str, Estimate]] = {}
    texts: dict[str, int] = {}
    for check, result in records.verdict.checks.items():
        splits = find_spec(check, records.manifest).splits
        for row in result.by:
            if row.slice is not None and _group(row.slice) not in splits:
                label = _label(records, check, row.measure)
                found.setdefault(row.slice, {})[label] = row.estimate
                counted = row.estimate.n + row.undefined
                texts[row.slice] = max(texts.get(row.slice, 0), counted)
    return Section(
        "slices",
        "Slices",
        words=() if found else ("No check that was run has values to slice.",),
        tables=(_table(found, texts),) if found else (),
        short="Slices",
    )


def _label(records: RunRecords, check: str, measure: str) -> str:
    if measure == DEGREE:
        return DEGREE
    return find_spec(check, records.manifest).measure(measure).label or measure


def _table(found: dict[str, dict[str, Estimate]], texts: dict[str, int]) -> Table:
    """Slices by the group they belong to."""
    columns = dict.fromkeys(label for one in found.values() for label in one)
    spans = {
        label: (-1.0, 1.0) if any(_of(one, label).low < 0 for one in found.values()) else (0.0, 1.0)
        for label in columns
    }
    rows: list[tuple[str | Cell, ...]] = []
    for group, keys in groupby(sorted(found, key=_group, reverse=True), key=_group):
        for place, key in enumerate(keys):
            cells = (Cell(estimate=_of(found[key], one), span=spans[one]) for one in columns)
            name = sanitise_text(key.partition(": ")[2])
            rows.append((sanitise_text("" if place else group), name, *cells, str(texts[key])))
    return Table(("by", "slice", *columns, "n"), tuple(rows))


def _group(key: str) -> str:
    return key.partition(": ")[0]


def _of(estimates: dict[str, Estimate], label: str) -> Estimate:
    return estimates.get(label, NO_ESTIMATE)
