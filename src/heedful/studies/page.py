"""The page of a study: claims, numbers beside the published ones, figures, set-up and cost."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from heedful.core.records import NO_ESTIMATE, Estimate
from heedful.report.pages.section_page import Heading
from heedful.report.pages.section_render import three_decimals
from heedful.results.document import Cell, FigureData, Section, Table
from heedful.studies.cell_results import StudyResults
from heedful.studies.claims import ClaimFinding
from heedful.studies.estimates import UNIT_RANGE, t_interval_over_seeds
from heedful.studies.grid import OWN_ATTENTION, describe_model
from heedful.studies.published_numbers import SOURCES, NumberKey, ReplicatedNumber
from heedful.studies.study import Study, StudyDataset

TAUS = {
    "agreement.tau_gradient": "attention and gradient",
    "agreement.tau_leave_one_out": "attention and leave-one-out",
    "agreement.tau_gradient_leave_one_out": "gradient and leave-one-out",
}
TAU_HEAD: tuple[str, ...] = ("data set", "model", "mean τ", "over", "published", "difference")
TAU_HEAD += ("sd", "published", "significant", "published")
TableRow = tuple[str | Cell, ...]
SCORES = {"accuracy": "accuracy", "f1": "F1", "roc_auc": "ROC-AUC"}
MAX_TABLE_ROWS = 30  # more rows are split into folded tables
COSTLIEST_PARTS = 3  # parts of an audit with a column of their own
DASH_NOTE = (
    "A dash under “here”: none of our texts is of that kind, for example in a bin of largest "
    "weights, or of a class that the paper's files give only by number (bAbI). Under “published”: "
    "the paper gives no number."
)


@dataclass(frozen=True)
class StudyOutcome:
    """Everything that the page shows."""

    study: Study
    results: StudyResults
    rows: Sequence[ReplicatedNumber]
    claims: Sequence[ClaimFinding]
    figures: Sequence[FigureData]
    absent: Mapping[str, str]
    failed: Mapping[str, str] = field(default_factory=dict)
    quick: bool = False
    missing: Sequence[str] = ()  # names of cells without results

    @property
    def titles(self) -> dict[str, str]:
        """The titles of the data sets by name."""
        return {one.name: one.title for one in self.study.sets}


def build_heading(outcome: StudyOutcome) -> Heading:
    """Title and question of the study, dates and versions, and what to be warned of."""
    study = outcome.study
    title, above = f"{study.title}, run again", f"{study.reference}, run again"
    words, warnings = (_provenance_line(outcome),), tuple(_warnings(outcome))
    return Heading(title, above, study.title, study.question, words, warnings)


def _provenance_line(outcome: StudyOutcome) -> str:
    """Dates, versions and number of seeds of the finished cells."""
    summaries = [one for cells in outcome.results.values() for one in cells.summaries]
    if not summaries:
        return "No cell is finished yet."
    days = sorted({one["finished"][:10] for one in summaries})
    parts = [days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"]
    for name in ("heedful", "torch", "python"):
        versions = sorted({one["versions"][name] for one in summaries})
        parts.append(f"{name.replace('python', 'Python')} {' and '.join(versions)}")
    counts = {model: len(one.seeds) for (_, model), one in outcome.results.items()}
    main = max((n for model, n in counts.items() if model == outcome.study.main), default=0)
    others = max((n for model, n in counts.items() if model != outcome.study.main), default=main)
    seeds = "one seed" if others == 1 else f"{others} seeds"
    if main > others:
        seeds += f", of the main model {main}"
    return f"{', '.join(parts)}; {seeds}."


def _warnings(outcome: StudyOutcome) -> Iterator[str]:
    if outcome.quick:
        yield (
            "A quick run: models are trained on samples for a few epochs and audited on a few "
            "texts. Its numbers show that everything runs, not what the paper found."
        )
    if outcome.failed:
        yield f"{pluralise(len(outcome.failed), 'cells')} failed; see Set-up for why."
    if not_run := [one for one in outcome.missing if one not in outcome.failed]:
        yield f"Not run yet: {pluralise(len(not_run), 'cells')}: {', '.join(not_run)}."


def build_sections(outcome: StudyOutcome) -> list[Section]:
    """All sections that are not empty, from claims to cost."""
    sections = [
        _claims(outcome),
        _agreement(outcome),
        _performance(outcome),
        _other_measures(outcome),
        Section("figures", "Figures", figures=tuple(outcome.figures), short="Figures"),
        build_setup_section(outcome),
        build_cost_section(outcome),
    ]
    return [one for one in sections if one.words or one.tables or one.figures or one.folded]


def _claims(outcome: StudyOutcome) -> Section:
    tables = []
    for claim in outcome.study.claims:
        what = "share of texts" if claim.kind == "share" else "difference"
        head = ("data set", "here", what, "over", "published", "as published")
        rows = tuple(
            (
                one.dataset_label(outcome.titles[one.texts]),
                Cell(answer=one.answer, note=one.why),
                _cell(one.estimate),
                format_sample_size(one.estimate, one.over),
                three_decimals(one.published),
                {True: "yes", False: "no", None: "–"}[one.as_published],
            )
            for one in outcome.claims
            if one.claim == claim
        )
        if rows:
            tables.append(Table(head, rows, claim.says + "."))
    words = (
        "A claim held where the whole 95 % interval is on its side. Intervals are over seeds where "
        "there are several, else over texts; the latter do not cover the variation between "
        "trainings. As published: whether the paper's own numbers on that set give the same "
        "answer, where it has any. Claims about a single model are also tested on transformers, "
        "for which nothing was published."
    )
    title = "What the paper says, and whether it held"
    return Section("claims", title, (words,), tuple(tables), short="Claims")


def _agreement(outcome: StudyOutcome) -> Section:
    by_key = {row.key: row for row in outcome.rows}
    tables, folded = [], []
    for measure, words in TAUS.items():
        rows, classes = [], []
        for key, row in by_key.items():
            if (key.measure, key.statistic) != (measure, "mean"):
                continue
            cells = _tau_row(row, by_key)
            if key.of_class == "all":
                rows.append(cells)
            else:
                classes.append((*cells[:2], row.of_class, *cells[2:]))
        if rows:
            tables.append(Table(TAU_HEAD, tuple(rows), f"Kendall's τ of {words}."))
        if classes:
            head = (*TAU_HEAD[:2], "class", *TAU_HEAD[2:])
            title = f"τ of {words}, by predicted class"
            folded.append(_folded(title, Table(head, tuple(classes))))
    title, note = "Do they rank words alike?", (DASH_NOTE,) if tables else ()
    section = Section("agreement", title, note, tuple(tables), short="Agreement")
    return replace(section, folded=tuple(folded))


def _folded(title: str, table: Table) -> Section:
    return Section(re.sub(r"\W+", "-", title), title, tables=(table,))


def _tau_row(row: ReplicatedNumber, rows: Mapping[NumberKey, ReplicatedNumber]) -> TableRow:
    others = []
    for statistic in ("sd", "significant"):
        one = rows.get(replace(row.key, statistic=statistic))
        others.append(three_decimals(one.ours.value if one and one.ours else None))
        others.append(three_decimals(one.theirs if one else None))
    return (
        row.key.texts,
        describe_model(row.key.model),
        _cell(row.ours),
        format_sample_size(row.ours, row.over),
        three_decimals(row.theirs),
        _signed(row.difference),
        *others,
    )


def _performance(outcome: StudyOutcome) -> Section:
    by_key = {row.key: row for row in outcome.rows}
    rows = []
    for (texts, model), results in outcome.results.items():
        cells: list[str | Cell] = [texts, describe_model(model)]
        for name in SCORES:
            one = by_key.get(NumberKey(texts, model, f"performance.{name}", "value"))
            ours = t_interval_over_seeds(results.performance(name), UNIT_RANGE)
            cells += [_cell(ours), three_decimals(one.theirs if one else None)]
        rows.append(tuple(cells))
    head = [one for name in SCORES.values() for one in (name, "published")]
    table = Table(("data set", "model", *head), tuple(rows))
    tables = (table,) if rows else ()
    title = "How well the models predict"
    return Section("performance", title, tables=tables, short="Performance")


def _other_measures(outcome: StudyOutcome) -> Section:
    """All other measures: one table if they are few, else a folded table for each."""
    head = ("data set", "model", "class", "here", "over", "published", "difference", "source")
    groups: dict[str, list[TableRow]] = {}
    for row in outcome.rows:
        measure = row.key.measure
        if measure not in TAUS and not measure.startswith("performance."):
            groups.setdefault(f"{measure}, {row.key.statistic}", []).append(_other_row(row))
    section = Section("more", "Every other number", (DASH_NOTE,), short="Other numbers")
    rows = [(name, *row) for name, some in groups.items() for row in some]
    if len(rows) > MAX_TABLE_ROWS:
        folded = (_folded(name, Table(head, tuple(some))) for name, some in groups.items())
        return replace(section, folded=tuple(folded))
    return replace(section, tables=(Table(("measure", *head), tuple(rows)),) if rows else ())


def _other_row(row: ReplicatedNumber) -> TableRow:
    return (
        row.key.texts,
        describe_model(row.key.model),
        row.of_class,
        _cell(row.ours),
        format_sample_size(row.ours, row.over),
        three_decimals(row.theirs),
        _signed(row.difference),
        row.published.source if row.published else "–",
    )


def build_setup_section(outcome: StudyOutcome) -> Section:
    """How the study was set up, and what is missing from its tables."""
    study = outcome.study
    differs = tuple((one.what, one.paper, one.here) for one in study.differs)
    sizes = tuple(row for texts in study.sets for row in _sizes(texts, outcome))
    size_head = ("data set", "train", "published", "test", "published", "what else differs")
    missing = [(outcome.titles[name], why) for name, why in outcome.absent.items()]
    missing += outcome.failed.items()
    tables = (
        Table(("", "paper", "here"), differs, "What differs from the paper's set-up."),
        Table(size_head, sizes, "Texts of each set."),
        Table(("", "why"), tuple(missing), "What is not in the tables."),
    )
    sources = [f"{mark}: {means}." for mark, means in SOURCES.items()]
    words = ("Published numbers. " + " ".join(sources),)
    shown = tuple(one for one in tables if one.rows)
    return Section("setup", "Set-up", words, shown, short="Set-up")


def _sizes(texts: StudyDataset, outcome: StudyOutcome) -> Iterator[tuple[str, ...]]:
    """The numbers of texts, for the models of the paper and for each transformer."""
    labels = set()
    for (name, model), cells in outcome.results.items():
        label, theirs, differs = texts.title, texts.published_texts, texts.differs
        if model[1] == OWN_ATTENTION:
            label, theirs = f"{texts.title}, {describe_model(model)}", {}
            differs = (f"texts are cut at {cells.cells[0].recipe['max_tokens']} tokens",)
        if name != texts.name or label in labels:
            continue
        labels.add(label)
        ours = cells.summaries[0]["texts"]
        train, test = ((str(ours[one]), str(theirs.get(one, "–"))) for one in ("train", "test"))
        yield label, *train, *test, "; ".join(differs)


def build_cost_section(outcome: StudyOutcome) -> Section:
    """CPU minutes by set: training, the costliest parts of the audits, and the rest."""
    spent: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    whole: dict[str, float] = defaultdict(float)
    count: dict[str, int] = defaultdict(int)
    for (texts, _), cells in outcome.results.items():
        count[texts] += len(cells.summaries)
        for one in cells.summaries:
            for part, seconds in one["cpu_seconds"].items():
                spent[texts][part] += seconds / 60
                whole[part] += seconds / 60
    if not spent:
        return Section("cost", "Cost")
    by_cost = sorted(whole.keys() - {"training", "audit"}, key=lambda part: -whole[part])
    parts = by_cost[:COSTLIEST_PARTS]
    rows = [_minutes(name, count[name], spent[name], parts) for name in spent]
    rows.append(_minutes("all", sum(count.values()), whole, parts))
    head = ("data set", "cells", "training", *(one.replace("_", "-") for one in parts))
    head += ("rest of the audit", "all")
    words = "CPU minutes, each cell in one thread; two cells in parallel take half as long."
    table = Table(head, tuple(rows))
    return Section("cost", "Where the time goes", (words,), (table,), short="Cost")


def _minutes(name: str, n: int, spent: Mapping[str, float], parts: list[str]) -> tuple[str, ...]:
    rest = spent["audit"] - sum(spent.get(part, 0.0) for part in parts)
    columns = (spent["training"], *(spent.get(part, 0.0) for part in parts), rest)
    total = spent["training"] + spent["audit"]
    return name, str(n), *(f"{one:.1f}" for one in (*columns, total))


def _cell(estimate: Estimate | None) -> Cell:
    return Cell(estimate=estimate or NO_ESTIMATE)


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{three_decimals(value)}"


def format_sample_size(estimate: Estimate | None, over: str) -> str:
    """The sample that an interval is over, such as "3 seeds".

    >>> format_sample_size(Estimate(0.3, 0.2, 0.4, 1725), "texts")
    '1 725 texts'
    """
    if estimate is None or not estimate.n:
        return "–"
    return pluralise(estimate.n, over)


def pluralise(count: int, what: str) -> str:
    """A count with its noun, singular for 1.

    >>> pluralise(1, "cells"), pluralise(9824, "texts")
    ('1 cell', '9 824 texts')
    """
    many = f"{count:,}".replace(",", " ")
    return f"{many} {what if count != 1 else what.removesuffix('s')}"
