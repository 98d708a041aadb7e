"""The same questions for parts of the data: by class, by length, by correctness."""

from dataclasses import dataclass

from heedful.core.records import Estimate
from heedful.report.check_specs import find_spec
from heedful.results.run_records import RunRecords

DEGREE = "degree"


@dataclass(frozen=True, slots=True)
class Slice:
    """One part of the data and its estimates, by label."""

    group: str
    name: str
    texts: int
    estimates: dict[str, Estimate]


def build_slices(records: RunRecords) -> tuple[Slice, ...]:
    """Each part with the degree and the measures that checks estimate by slice."""
    found: dict[str, dict[str, Estimate]] = {}
    texts: dict[str, int] = {}
    for check, result in records.verdict.checks.items():
        spec = find_spec(check, records.manifest)
        for row in result.by:
            if row.slice is not None:
                label = DEGREE if row.measure == DEGREE else spec.measure(row.measure).label
                found.setdefault(row.slice, {})[label or row.measure] = row.estimate
                counted = row.estimate.n + row.undefined
                texts[row.slice] = max(texts.get(row.slice, 0), counted)
    slices = []
    for key, estimates in found.items():
        group, _, name = key.partition(": ")
        slices.append(Slice(group, name, texts[key], estimates))
    return tuple(slices)
