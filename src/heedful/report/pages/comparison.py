"""A comparison as a page, HTML or Markdown, and as rows for CSV and data frames."""

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from math import isnan
from typing import Any

from heedful.checks.spec import Measure
from heedful.comparison.records import (
    DEGREE_KEY,
    MAIN_FAMILY,
    OVER_SEEDS,
    ComparisonRecord,
    Difference,
    SidePair,
)
from heedful.comparison.requirements import RequirementResult
from heedful.core.records import KEY_COLUMNS, Estimate, MeasureKey, describe_key
from heedful.report.check_specs import find_spec
from heedful.report.figures.theme import SERIES
from heedful.report.pages.section_page import Heading, render_page_html, render_page_markdown
from heedful.report.pages.section_render import three_decimals
from heedful.report.sections.check_measures import ARROWS
from heedful.results.document import Cell, FigureData, FigureRow, Section, Table
from heedful.results.figure_data import drop_empty, ends, interval_rows
from heedful.results.run_records import sanitise_text

SIDES = ("first", "second", "difference")
COMPARISON_COLUMNS = (
    *("first", "second", "check", "measure", *KEY_COLUMNS, "n"),
    *(f"{side}_{part}" for side in SIDES for part in ("value", "low", "high")),
    *("p", "p_corrected", "certain", "family", "over", "undefined_first", "undefined_second"),
)
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would run
DEGREE_WORDS = "degree of attention, chance 0, reference 1"
MOST_NAMES = 8  # of measures in a sentence
FEW = 20  # rows of a check by setting that are shown beside its measures
THE_METHOD = "the method"
CERTAIN = "●"
MOST_ROWS = 40  # of a figure
MOST_PAIRS = len(SERIES)  # in a figure
ROOM = 1.08  # beyond the widest interval of a figure
CAUTIONS = (
    "A difference is the later value minus the first. Its mark follows the corrected p-value; its "
    "interval is not corrected.",
    "A difference says that two runs differ on texts like these, not why. Two trainings of one "
    "recipe differ too.",
)


@dataclass(frozen=True, slots=True)
class DifferenceGroup:
    """One check's differences: the measures, and of those by setting as many as can be read."""

    check: str
    rows: tuple[Difference, ...]
    more: tuple[Difference, ...] = ()

    @property
    def note(self) -> str:
        """What is left out here, in a sentence."""
        number, certain = len(self.more), sum(one.certain for one in self.more)
        more = f"{number} more by setting (layers, heads, pairs), {certain} of them certain."
        return more if number else ""


def group_differences(pair: SidePair) -> tuple[DifferenceGroup, ...]:
    """The differences of a pair, check by check; the degree has no check."""
    found = []
    for check in dict.fromkeys(one.key.check for one in pair.differences):
        rows = [one for one in pair.differences if one.key.check == check]
        main = [one for one in rows if one.family == MAIN_FAMILY]
        rest = [one for one in rows if one.family != MAIN_FAMILY]
        shown, more = ((*main, *rest), ()) if len(rest) <= FEW else (tuple(main), tuple(rest))
        found.append(DifferenceGroup(sanitise_text(check), shown, more))
    return tuple(found)


def find_measure(key: MeasureKey, kind: str) -> Measure:
    """How to read a row; where methods are compared, measures are those of any method.

    >>> find_measure(MeasureKey("faithfulness", "flip"), "methods").direction
    'down'
    """
    if key == DEGREE_KEY:
        return Measure(key.measure, DEGREE_WORDS, "up")
    method = THE_METHOD if kind == "methods" else key.method
    return find_spec(key.check).measure(key.measure, method)


def display_name(key: MeasureKey) -> str:
    """The measure with what it is keyed by, fit for a page."""
    keys = describe_key(key)
    return sanitise_text(f"{key.measure} [{keys}]" if keys else key.measure)


def format_p_value(p: float) -> str:
    """A p-value to three decimals, or that it is smaller; a dash where there is none.

    >>> format_p_value(0.0004), format_p_value(0.25), format_p_value(float("nan"))
    ('<0.001', '0.250', '–')
    """
    if p != p:
        return "–"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def describe_correction(compared: ComparisonRecord) -> str:
    """How the p-values were corrected, in a sentence."""
    how = {"holm": "Holm's correction", "bh": "Benjamini and Hochberg's correction"}
    counts = Counter(one.family for _, one in compared.rows)
    if compared.correction == "none":
        return f"p-values are not corrected, though {counts.total()} tests are made."
    families = ", ".join(f"{count} ({sanitise_text(name)})" for name, count in counts.items())
    return f"p-values by {how[compared.correction]} over each family of tests: {families}."


def describe_intervals(compared: ComparisonRecord) -> str:
    """Where intervals and p-values come from, in a sentence."""
    paired = all(pair.pairing.paired for pair in compared.pairs)
    how = "sign flips" if paired else "relabelling texts"
    return (
        f"{100 * compared.level:g} % expanded percentile bootstrap over "
        f"{'texts, paired' if paired else 'the texts of each'}, {compared.resamples} resamples; "
        f"p-values by {how}; measures of retrained models also over their seeds."
    )


def render_comparison_html(
    compared: ComparisonRecord, required: Sequence[RequirementResult] = ()
) -> str:
    """One self-contained page."""
    return render_page_html(*_page(compared, required), kind="compared")


def render_comparison_markdown(
    compared: ComparisonRecord, required: Sequence[RequirementResult] = ()
) -> str:
    """Answers side by side, differences with intervals and p-values, and how they were found."""
    heading, sections = _page(compared, required)
    return render_page_markdown(heading, [one for one in sections if not one.figures])


def _page(
    compared: ComparisonRecord, required: Sequence[RequirementResult]
) -> tuple[Heading, list[Section]]:
    names = [sanitise_text(one.name) for one in compared.sides]
    heading = Heading(
        title=f"{' and '.join(names)}, compared",
        above=f"{compared.kind.capitalize()} compared with the first of them",
        name=", ".join(names),
    )
    sections = [_sides_section(compared)]
    if required:
        sections.append(_required_section(required))
    if figures := build_forest_figures(compared):
        left = len(compared.pairs) - MOST_PAIRS
        words = (f"{left} more are in the tables.",) if left > 0 else ()
        title = "Differences with their intervals"
        sections.append(Section("figures", title, words, figures=figures, short="Figures"))
    how = (describe_intervals(compared), describe_correction(compared), *CAUTIONS)
    sections += [_differences(compared), Section("how", "How", points=how, short="How")]
    return heading, sections


def _sides_section(compared: ComparisonRecord) -> Section:
    if compared.kind == "runs":
        tables = (build_side_table(compared),)
        return Section("sides", "Answers", tables=tables, short="Answers")
    one = compared.sides[0]
    words = sanitise_text(f"{one.texts} texts of {one.data}, model {one.model}, in {one.folder}.")
    return Section("sides", "Methods of one run", (words,), short="Methods")


def build_side_table(compared: ComparisonRecord) -> Table:
    """A column for each run: model, attention, texts, answer, degree and claims."""
    sides = compared.sides
    rows: list[tuple[str | Cell, ...]] = [
        ("model", *(sanitise_text(one.model) for one in sides)),
        ("attention", *(sanitise_text(one.attention) for one in sides)),
        ("texts", *(sanitise_text(f"{one.texts} of {one.data}") for one in sides)),
        ("answer", *(_answer(one.answer) for one in sides)),
        ("degree", *(str(one.degree or "–") for one in sides)),
    ]
    for claim in dict.fromkeys(name for one in sides for name in one.claims):
        answers = (_answer(one.claims.get(claim, "–")) for one in sides)
        rows.append((sanitise_text(claim), *answers))
    return Table(("", *(sanitise_text(one.name) for one in sides)), tuple(rows))


def _answer(text: str) -> Cell:
    return Cell(answer=sanitise_text(text))


def _required_section(required: Sequence[RequirementResult]) -> Section:
    head, rows = ("requirement", "answer", "found"), []
    for one in required:
        rule, found = sanitise_text(one.rule), sanitise_text(one.found)
        rows.append((rule, _answer("met" if one.met else "not met"), found))
    return Section("required", "Required", tables=(Table(head, tuple(rows)),), short="Required")


def _differences(compared: ComparisonRecord) -> Section:
    what = "attention" if compared.kind == "runs" else "a method"
    legend = f"{CERTAIN} differs beyond chance. ↑ higher, ↓ lower values speak for {what}."
    parts = tuple(_pair_section(compared, pair, place) for place, pair in enumerate(compared.pairs))
    title, words = "Every difference", (f"{legend} Grey: controls and references.",)
    return Section("differences", title, words, parts=parts, short="Differences")


def _pair_section(compared: ComparisonRecord, pair: SidePair, place: int) -> Section:
    name, pairing = f"pair-{place}", str(pair.pairing)
    groups = group_differences(pair)
    tables = tuple(_difference_table(compared, pair, one.check, one.rows) for one in groups)
    folded = tuple(
        Section(f"{name}-{number}", f"{one.check}: {one.note}", tables=(table,))
        for number, one in enumerate(groups)
        if one.more
        for table in (_difference_table(compared, pair, one.check, one.more),)
    )
    title = f"{sanitise_text(pair.second)} against {sanitise_text(pair.first)}"
    words = (f"{pairing[0].upper()}{pairing[1:]}.", *map(sanitise_text, pair.notes))
    return Section(name, title, (*words, *describe_missing(pair)), tables, folded=folded)


def _difference_table(
    compared: ComparisonRecord, pair: SidePair, check: str, rows: Sequence[Difference]
) -> Table:
    sides = sanitise_text(pair.first), sanitise_text(pair.second)
    ends = f"difference [{100 * compared.level:g} %]"
    head = ("measure", "", *sides, ends, "p, corrected", "n")
    return Table(head, tuple(_difference_row(one, compared.kind) for one in rows), check)


def _difference_row(one: Difference, kind: str) -> tuple[str | Cell, ...]:
    measure, name = find_measure(one.key, kind), display_name(one.key)
    muted = measure.role != "measure"
    words = [measure.label or name, f"({measure.role})" if muted else ""]
    small = [name if measure.label else "", *describe_texts(one)]
    label, note = (sanitise_text(" ".join(filter(None, some))) for some in (words, small))
    label = f"{label}\N{NO-BREAK SPACE}{ARROWS[measure.direction]}".strip()
    difference = Cell(format_difference(one.difference), muted=muted, strong=one.certain)
    return (
        Cell(label, muted=muted, note=note),
        CERTAIN if one.certain else "",
        *(Cell(three_decimals(side.value), muted=muted) for side in (one.first, one.second)),
        difference,
        Cell(format_p_value(one.corrected), muted=muted),
        Cell(str(one.difference.n), muted=muted),
    )


def describe_texts(one: Difference) -> list[str]:
    """Texts without a value, and whether seeds were resampled too."""
    found = [f"({one.undefined[0]}, {one.undefined[1]} undefined)"] if any(one.undefined) else []
    return [*found, "(over seeds too)"] if one.over == OVER_SEEDS else found


def format_difference(estimate: Estimate) -> str:
    """A difference with its sign and interval.

    >>> format_difference(Estimate(-0.25, -0.4, 0.1, 9)), format_difference(Estimate(0.25, 0, 0, 1))
    ('−0.250 [−0.400, +0.100]', '+0.250')
    """
    if isnan(estimate.value):
        return "–"
    text = f"{estimate.value:+z.3f}"
    if estimate.n > 1 and not isnan(estimate.low):
        text += f" [{estimate.low:+z.3f}, {estimate.high:+z.3f}]"
    return text.replace("-", "\u2212")


def build_forest_figures(compared: ComparisonRecord) -> tuple[FigureData, ...]:
    """A figure for each check that both sides have; the degree stands first, on its own."""
    by_check: dict[str, list[FigureRow]] = {}
    for pair in compared.pairs[:MOST_PAIRS]:
        for group in group_differences(pair):
            by_check.setdefault(group.check, []).extend(_figure_rows(pair, group))
    return tuple(
        drop_empty(
            _forest(f"differences-{place}", check or "Degree", rows, compared)
            for place, (check, rows) in enumerate(by_check.items())
        )
    )


def _figure_rows(pair: SidePair, group: DifferenceGroup) -> list[FigureRow]:
    second = sanitise_text(pair.second)
    return interval_rows(
        (one.difference, {"group": display_name(one.key), "class": second, "certain": one.certain})
        for one in group.rows
    )


def _forest(name: str, title: str, rows: list[FigureRow], compared: ComparisonRecord) -> FigureData:
    names = list(dict.fromkeys(row["group"] for row in rows))
    shown = [row for row in rows if row["group"] in names[:MOST_ROWS]]
    most = ROOM * max(map(abs, ends(shown)), default=0.0) or 1.0
    left = f" The first {MOST_ROWS} of {len(names)} are drawn." if len(names) > MOST_ROWS else ""
    return FigureData(
        name,
        "intervals",
        title,
        f"Bars are {100 * compared.level:g} % intervals; filled: certain after correction.{left}",
        x=f"difference from {sanitise_text(compared.pairs[0].first)}",
        span=(-most, most),
        classes=tuple(sanitise_text(pair.second) for pair in compared.pairs[:MOST_PAIRS]),
        rows=shown,
    )


def flatten_rows(compared: ComparisonRecord) -> Iterator[dict[str, Any]]:
    """One row per pair and measure, with the columns above."""
    for pair, one in compared.rows:
        row: dict[str, Any] = {"first": pair.first, "second": pair.second, "n": one.difference.n}
        for name, value in one.to_dict().items():
            parts = value.items() if isinstance(value, dict) else ()
            row |= {f"{name}_{part}": each for part, each in parts} or {name: value}
        yield row


def render_csv(compared: ComparisonRecord) -> str:
    """The rows as CSV; numbers in full, nothing where there is none."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COMPARISON_COLUMNS)
    for row in flatten_rows(compared):
        writer.writerow(_cell(row[name]) for name in COMPARISON_COLUMNS)
    return out.getvalue()


def _cell(value: Any) -> Any:
    if value is None or value != value:
        return ""
    if isinstance(value, str):  # a name may come from others, and a spreadsheet may run it
        return f"'{sanitise_text(value)}" if value.startswith(FORMULA) else sanitise_text(value)
    return repr(value) if isinstance(value, float) else value


def describe_missing(pair: SidePair) -> Iterator[str]:
    """What was not compared, and why, a sentence for each reason."""
    reasons: dict[str, list[str]] = {}
    for key, why in pair.only_one.items():
        reasons.setdefault(why, []).append(key)
    for why, keys in reasons.items():
        names = ", ".join(keys[:MOST_NAMES])
        more = f" and {len(keys) - MOST_NAMES} more" if len(keys) > MOST_NAMES else ""
        yield sanitise_text(f"Not compared: {names}{more} ({why}).")
