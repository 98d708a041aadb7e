"""The measures of every check: one table each, with intervals, by class, and what is missing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from heedful.checks.spec import CheckSpec, Direction, Measure, Role, ValueRange, group_missing
from heedful.core.records import CheckResult, Estimate, EstimateRow, Verdict, describe_key
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
    words: str
    direction: Direction
    role: Role
    span: ValueRange
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
        return Cell(
            f"{self.words or self.name}\N{NO-BREAK SPACE}{ARROWS[self.direction]}".strip(),
            answer="" if self.role == "measure" else self.role,
            muted=self.role != "measure",
            note=self.name if self.words else "",
        )

    def cell(self, estimate: Estimate | None, note: str = "") -> Cell:
        """An estimate of this measure, drawn on its scale."""
        return Cell(estimate=estimate, span=self.span, muted=self.role != "measure", note=note)

    def class_cells(self, most: Sequence[int]) -> Iterator[str | Cell]:
        """Its estimates by class; `most` are the numbers of texts that the headings give."""
        for one, n in zip(self.by_class, most, strict=True):
            yield self.cell(one, note_texts(one, n)) if one else ""


@dataclass(frozen=True, slots=True)
class CheckTable:
    """One check: its question, its vote, its estimates, and what it could not measure."""

    name: str
    question: str
    answer: str
    why: str
    rows: tuple[MeasureRow, ...]
    missing: tuple[str, ...]


def build_checks(records: RunRecords) -> Section:
    """A part for each check with a vote or a claim; descriptive checks stand apart."""
    level = records.level
    classes = _classes(records.verdict)
    return Section(
        "checks",
        "Checks",
        words=(
            f"Means over texts with {100 * level:g} % intervals. ↑ higher, ↓ lower values speak "
            "for attention. Grey: controls and references.",
        ),
        parts=tuple(
            _part(spec, result, classes)
            for spec, result in (
                (find_spec(name, records.manifest), result)
                for name, result in records.verdict.checks.items()
            )
            if not is_descriptive(spec)
        ),
        short="Checks",
    )


def _part(spec: CheckSpec, result: CheckResult, classes: tuple[str, ...]) -> Section:
    table = build_check_table(spec, result, classes)
    rows = tuple(one.cells for one in table.rows if not one.of_other_method)
    return Section(
        f"check-{table.name}",
        f"{table.name}: {table.question}" if table.question else table.name,
        words=tuple(filter(None, (table.why, *(f"No {one}" for one in table.missing)))),
        tables=(Table(("measure", "mean", "n"), rows),) if rows else (),
        folded=tuple(_folded(spec, result, table, classes)),
        answer=table.answer,
    )


def _folded(
    spec: CheckSpec, result: CheckResult, table: CheckTable, classes: tuple[str, ...]
) -> Iterator[Section]:
    """The measures by class; by layer, seed or setting where no section of the check has them."""
    others = tuple(one.cells for one in table.rows if one.of_other_method)
    if others:
        listed = Table(("measure", "mean", "n"), others)
        yield Section(f"check-{table.name}-methods", "Other methods", tables=(listed,))
    by_class = [row for row in table.rows if any(row.by_class) and not row.of_other_method]
    if by_class:
        most = [
            max(one.n if one else 0 for one in column)
            for column in zip(*(row.by_class for row in by_class), strict=True)
        ]
        named = zip(map(sanitise_text, classes), most, strict=True)
        head = ("measure", *(f"{one}, n = {n}" for one, n in named))
        cells = tuple((row.label, *row.class_cells(most)) for row in by_class)
        name = f"check-{table.name}-classes"
        yield Section(name, "By predicted class", tables=(Table(head, cells),))
    keyed = [] if spec.sections else [row for row in result.by if _is_keyed(row)]
    if keyed:
        rows = tuple(_keyed_row(spec.measure(row.measure, row.method), row) for row in keyed)
        head, name = ("measure", "of", "mean", "n"), f"check-{table.name}-keys"
        yield Section(name, "By layer, seed or setting", tables=(Table(head, rows),))


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


def _classes(verdict: Verdict) -> tuple[str, ...]:
    """Classes with a column of their own: all of them, or none where they would be too many."""
    names = dict.fromkeys(name for one in verdict.checks.values() for name in one.classes)
    return tuple(names) if len(names) <= MOST_CLASSES else ()


def build_check_table(
    spec: CheckSpec, result: CheckResult, classes: tuple[str, ...] = ()
) -> CheckTable:
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
    missing = (f"{name}: {sanitise_text(why)}" for name, why in group_missing(result.missing))
    why = sanitise_text(result.why)
    return CheckTable(
        sanitise_text(spec.name), spec.question, result.answer, why, tuple(rows), tuple(missing)
    )


def _measure_row(
    measure: Measure,
    name: str,
    result: CheckResult,
    estimate: Estimate,
    classes: tuple[str, ...],
    method: str | None = None,
) -> MeasureRow:
    keys = {} if method is None else {"method": method}
    by_class = result.by_class(name, **keys)
    undefined = (
        result.undefined.get(name, 0)
        if method is None
        else sum(row.undefined for row in result.rows(name, **keys) if row.predicted is None)
    )
    return MeasureRow(
        name=sanitise_text(name if method is None else f"{name} ({method})"),
        words=measure.label,
        direction=measure.direction,
        role=measure.role,
        span=measure.range,
        estimate=estimate,
        by_class=tuple(by_class.get(one) for one in classes),
        undefined=undefined,
        of_other_method=bool(measure.short) and method not in (None, "attention"),
    )
