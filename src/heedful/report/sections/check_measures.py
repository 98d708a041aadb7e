"""The measures of every check: one table each, with intervals, by class, and what is missing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from heedful.checks.spec import CheckSpec, Measure, group_missing
from heedful.core.records import CheckResult, Estimate, EstimateRow, describe_key
from heedful.report.check_specs import find_spec
from heedful.report.sections.descriptive_checks import is_descriptive
from heedful.results.document import Cell, Section, Table, note_texts
from heedful.results.run_records import RunRecords, sanitise_text

MOST_CLASSES = 4  # more columns than this would not be read
ARROWS = {"up": "↑", "down": "↓", "none": ""}


@dataclass(frozen=True, slots=True)
class MeasureRow:
    """One estimate of a check, overall and by class, and how to read it.

    `of_other_method` marks a row of a table of methods, which is not about attention.
    """

    name: str
    measure: Measure
    estimate: Estimate
    by_class: tuple[Estimate | None, ...]
    undefined: int
    of_other_method: bool = False

    @property
    def cells(self) -> tuple[Cell, Cell, str]:
        """Its label, its estimate and its number of texts."""
        undefined = f"{self.undefined} undefined" if self.undefined else ""
        return self.label, self.cell(self.estimate, undefined), str(self.estimate.n)

    @property
    def label(self) -> Cell:
        """The cell that names the row: what it is, where its values point, and its plain name."""
        one, muted = self.measure, self.measure.role != "measure"
        return Cell(
            f"{one.label or self.name}\N{NO-BREAK SPACE}{ARROWS[one.direction]}".strip(),
            answer=one.role if muted else "",
            muted=muted,
            note=self.name if one.label else "",
        )

    def cell(self, estimate: Estimate | None, note: str = "") -> Cell:
        """An estimate of this measure, drawn on its scale."""
        muted = self.measure.role != "measure"
        return Cell(estimate=estimate, span=self.measure.range, muted=muted, note=note)


def build_checks(records: RunRecords) -> Section:
    """A part for each check with a vote or a claim; descriptive checks stand apart."""
    found = records.verdict.checks
    # classes with a column of their own: all of them, or none where they would be too many
    names = tuple(dict.fromkeys(name for one in found.values() for name in one.classes))
    classes = names if len(names) <= MOST_CLASSES else ()
    checks = ((find_spec(name, records.manifest), result) for name, result in found.items())
    parts = (_part(spec, result, classes) for spec, result in checks if not is_descriptive(spec))
    words = (
        f"Means over texts with {100 * records.level:g} % intervals. ↑ higher, ↓ lower values "
        "speak for attention. Grey: controls and references.",
    )
    return Section("checks", "Checks", words=words, parts=tuple(parts), short="Checks")


def _part(spec: CheckSpec, result: CheckResult, classes: tuple[str, ...]) -> Section:
    measured, name = build_measure_rows(spec, result, classes), sanitise_text(spec.name)
    rows = tuple(one.cells for one in measured if not one.of_other_method)
    missing = (f"No {one}: {sanitise_text(why)}" for one, why in group_missing(result.missing))
    return Section(
        f"check-{name}",
        f"{name}: {spec.question}" if spec.question else name,
        words=tuple(filter(None, (sanitise_text(result.why), *missing))),
        tables=(Table(("measure", "mean", "n"), rows),) if rows else (),
        folded=tuple(_folded(spec, result, measured, classes)),
        answer=result.answer,
    )


def _folded(
    spec: CheckSpec, result: CheckResult, rows: Sequence[MeasureRow], classes: tuple[str, ...]
) -> Iterator[Section]:
    """The measures by class; by layer, seed or setting where no section of the check has them."""
    anchor = f"check-{sanitise_text(spec.name)}"
    if others := tuple(one.cells for one in rows if one.of_other_method):
        listed = Table(("measure", "mean", "n"), others)
        yield Section(f"{anchor}-methods", "Other methods", tables=(listed,))
    if by_class := [row for row in rows if any(row.by_class) and not row.of_other_method]:
        most = [
            max(one.n if one else 0 for one in column)
            for column in zip(*(row.by_class for row in by_class), strict=True)
        ]
        named = zip(map(sanitise_text, classes), most, strict=True)
        head = ("measure", *(f"{one}, n = {n}" for one, n in named))
        cells = tuple(
            (row.label, *(row.cell(one, note_texts(one, n)) if one else "" for one, n in columns))
            for row in by_class
            for columns in (zip(row.by_class, most, strict=True),)
        )
        yield Section(f"{anchor}-classes", "By predicted class", tables=(Table(head, cells),))
    keyed = () if spec.sections else filter(_is_keyed, result.by)
    if lines := tuple(_keyed_row(spec.measure(row.measure, row.method), row) for row in keyed):
        table = Table(("measure", "of", "mean", "n"), lines)
        yield Section(f"{anchor}-keys", "By layer, seed or setting", tables=(table,))


def _is_keyed(row: EstimateRow) -> bool:
    keys = (row.layer, row.head, row.seed, row.setting)
    return row.predicted is None and row.slice is None and any(key is not None for key in keys)


def _keyed_row(measure: Measure, row: EstimateRow) -> tuple[str | Cell, ...]:
    muted = measure.role != "measure"
    return (
        Cell(sanitise_text(measure.label or row.measure), muted=muted),
        sanitise_text(describe_key(row)),
        Cell(estimate=row.estimate, muted=muted),
        str(row.estimate.n),
    )


def build_measure_rows(
    spec: CheckSpec, result: CheckResult, classes: tuple[str, ...] = ()
) -> list[MeasureRow]:
    """What a page shows of one check: plain measures, then those by method; classes as columns."""
    rows = [
        _measure_row(spec.measure(name), name, result, estimate, classes)
        for name, estimate in result.estimates.items()
    ]
    for name in dict.fromkeys(row.measure for row in result.by if row.method is not None):
        rows += [
            _measure_row(spec.measure(name, method), name, result, estimate, classes, method)
            for method, estimate in result.by_method(name).items()
        ]
    return rows


def _measure_row(
    measure: Measure,
    name: str,
    result: CheckResult,
    estimate: Estimate,
    classes: tuple[str, ...],
    method: str | None = None,
) -> MeasureRow:
    keys = {} if method is None else {"method": method}
    found = result.by_class(name, **keys)
    undefined = (
        result.undefined.get(name, 0)
        if method is None
        else sum(row.undefined for row in result.rows(name, **keys) if row.predicted is None)
    )
    shown = sanitise_text(name if method is None else f"{name} ({method})")
    by_class = tuple(found.get(one) for one in classes)
    of_other_method = bool(measure.short) and method not in (None, "attention")
    return MeasureRow(shown, measure, estimate, by_class, undefined, of_other_method)
