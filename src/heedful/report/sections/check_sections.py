"""The sections that checks bring: those of plug-ins, and any that a description makes."""

from heedful.checks import BUILT_IN
from heedful.checks.spec import CheckSpec, group_missing
from heedful.core.records import CheckResult, EstimateRow, describe_key
from heedful.report.check_specs import find_spec
from heedful.results.document import Cell, FigureData, Section, Table
from heedful.results.run_records import RunRecords, sanitise_text

BUILT_IN_NAMES = frozenset(spec.name for spec in BUILT_IN)


def build_check_sections(records: RunRecords) -> tuple[Section, ...]:
    """A section for every check that describes its own, and for every plug-in."""
    sections: list[Section] = []
    for name, result in records.verdict.checks.items():
        spec = find_spec(name, records.manifest)
        if spec.sections is not None:
            sections += spec.sections(records)
        elif name not in BUILT_IN_NAMES:
            sections.append(_section(spec, result, records))
    return tuple(sections)


def list_figures(records: RunRecords) -> tuple[FigureData, ...]:
    """The figures that descriptions make, check by check."""
    specs = (find_spec(name, records.manifest) for name in records.verdict.checks)
    return tuple(one for spec in specs if spec.figures for one in spec.figures(records))


def _section(spec: CheckSpec, result: CheckResult, records: RunRecords) -> Section:
    """The question, the answer, and a table of all estimates."""
    words = [sanitise_text(result.why)]
    words += [f"{name}: {sanitise_text(why)}" for name, why in group_missing(result.missing)]
    return Section(
        name=f"check-{sanitise_text(spec.name)}",
        title=spec.question or sanitise_text(spec.name),
        words=tuple(filter(None, words)),
        tables=tuple(table for table in (_table(spec, result),) if table.rows),
        figures=tuple(spec.figures(records)) if spec.figures else (),
    )


def _table(spec: CheckSpec, result: CheckResult) -> Table:
    plain = [EstimateRow(name, one) for name, one in result.estimates.items()]
    keyed = [row for row in result.by if row.predicted is None and row.slice is None]
    return Table(
        ("measure", "of", "mean", "texts"),
        tuple(_row(spec, row) for row in (*plain, *keyed)),
    )


def _row(spec: CheckSpec, row: EstimateRow) -> tuple[str | Cell, ...]:
    measure = spec.measure(row.measure, row.method)
    return (
        sanitise_text(measure.label or row.measure),
        sanitise_text(describe_key(row)),
        Cell(estimate=row.estimate, span=measure.range, muted=measure.role != "measure"),
        str(row.estimate.n),
    )
