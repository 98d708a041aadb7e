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
        spec = find_spec(check, records.manifest)
        for row in result.by:
            if row.slice is not None and _group(row.slice) not in spec.splits:
                plain = row.measure == DEGREE
                label = DEGREE if plain else spec.measure(row.measure).label or row.measure
                found.setdefault(row.slice, {})[label] = row.estimate
                counted = row.estimate.n + row.undefined
                texts[row.slice] = max(texts.get(row.slice, 0), counted)
    if not found:
        none = ("No check that was run has values to slice.",)
        return Section("slices", "Slices", none, short="Slices")
    return Section("slices", "Slices", tables=(_table(found, texts),), short="Slices")


def _table(found: dict[str, dict[str, Estimate]], texts: dict[str, int]) -> Table:
    """Slices by the group they belong to."""
    columns = dict.fromkeys(label for one in found.values() for label in one)
    found = {key: {**dict.fromkeys(columns, NO_ESTIMATE), **one} for key, one in found.items()}
    below = {label for label in columns if any(one[label].low < 0 for one in found.values())}
    spans = {label: (-1.0 if label in below else 0.0, 1.0) for label in columns}
    rows: list[tuple[str | Cell, ...]] = []
    for group, keys in groupby(sorted(found, key=_group, reverse=True), key=_group):
        for place, key in enumerate(keys):
            cells = (Cell(estimate=found[key][one], span=spans[one]) for one in columns)
            name = sanitise_text(key.partition(": ")[2])
            rows.append((sanitise_text("" if place else group), name, *cells, str(texts[key])))
    return Table(("by", "slice", *columns, "n"), tuple(rows))


def _group(key: str) -> str:
    return key.partition(": ")[0]
