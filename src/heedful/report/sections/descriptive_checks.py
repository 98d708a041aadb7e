"""Checks about no claim: each a table of methods and measures."""

from collections.abc import Iterator

from heedful.checks.spec import CONTROL_METHODS, CheckSpec, group_missing
from heedful.core.records import CheckResult, Estimate
from heedful.report.check_specs import find_spec
from heedful.results.document import Cell, Section, Span, Table, note_texts
from heedful.results.run_records import RunRecords, sanitise_text


def is_descriptive(spec: CheckSpec) -> bool:
    """Whether it has no vote, and its measures have headings for a table of methods."""
    return not spec.votes and any(one.short for one in spec.measures)


def build_descriptive_checks(records: RunRecords) -> Section | None:
    """The descriptive checks of the run; None where it has none."""
    described = (
        (find_spec(name, records.manifest), one) for name, one in records.verdict.checks.items()
    )
    parts = tuple(_part(spec, result) for spec, result in described if is_descriptive(spec))
    if not parts:
        return None
    words = ("These bear on no claim and never change the answer. Grey: controls.",)
    return Section("descriptive", "Descriptive checks", words, parts=parts, short="Descriptive")


def _part(spec: CheckSpec, result: CheckResult) -> Section:
    missing = (f"No {name}: {sanitise_text(why)}" for name, why in group_missing(result.missing))
    table, settings = _methods(spec, result), _settings(spec, result)
    name = sanitise_text(spec.name)
    words = tuple(filter(None, (sanitise_text(result.why), *missing)))
    every = Section(f"check-{name}-settings", "Every setting", tables=(settings,))
    return Section(
        f"check-{name}",
        f"{name}: {spec.question}",
        words,
        (table,) if table.rows else (),
        folded=(every,) if settings.rows else (),
    )


def _methods(spec: CheckSpec, result: CheckResult) -> Table:
    """A row for each method, controls last; a column for each measure that has values."""
    measures = [one for one in spec.measures if one.short]
    columns = {
        one: {name: each for name, each in result.by_method(one.name).items() if each.n}
        for one in measures
    }
    columns = {one: column for one, column in columns.items() if column}
    names = dict.fromkeys(name for column in columns.values() for name in column)

    def rows() -> Iterator[tuple[str | Cell, ...]]:
        for name in sorted(names, key=lambda name: name in CONTROL_METHODS):
            muted = name in CONTROL_METHODS
            found = {one: column.get(name) for one, column in columns.items()}
            n = max((one.n for one in found.values() if one), default=0)
            yield (
                Cell(sanitise_text(name), muted=muted, answer="control" if muted else ""),
                *(_cell(one, span.range, n, muted=muted) for span, one in found.items()),
                str(n),
            )

    return Table(("method", *(one.short for one in columns), "n"), tuple(rows()))


def _cell(
    estimate: Estimate | None, span: Span, n: int | None = None, *, muted: bool = False
) -> str | Cell:
    """An estimate, with its number of texts where that is not `n`; a dash where there is none."""
    if not estimate or not estimate.n:
        return "–"
    note = note_texts(estimate, estimate.n if n is None else n)
    return Cell(estimate=estimate, span=span, muted=muted, note=note)


def _settings(spec: CheckSpec, result: CheckResult) -> Table:
    """The first measure again, by setting or seed and by method."""
    first = next(one for one in spec.measures if one.short)
    found: dict[str, dict[str, Estimate]] = {}
    for row in result.rows(first.name, predicted=None):
        if row.method and (row.setting or row.seed is not None):
            setting = str(row.setting) if row.seed is None else f"seed {row.seed}"
            found.setdefault(setting, {})[row.method] = row.estimate
    across = tuple(dict.fromkeys(method for one in found.values() for method in one))
    rows = tuple(
        (sanitise_text(name), *(_cell(one.get(method), first.range) for method in across))
        for name, one in found.items()
    )
    return Table(("setting", *map(sanitise_text, across)), rows)
