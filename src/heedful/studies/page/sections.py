"""The sections of a study's page: claims, comparisons with published numbers, set-up and cost."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from heedful.studies.page.page_parts import (
    PageTable,
    Section,
    StudyOutcome,
    format_estimate,
    format_sample_size,
    three_decimals,
)
from heedful.studies.published_numbers import SOURCES, NumberKey
from heedful.studies.results.comparison_table import ReplicatedNumber
from heedful.studies.results.estimates import UNIT_RANGE, t_interval_over_seeds
from heedful.studies.run.grid import OWN_ATTENTION, describe_model
from heedful.studies.study import StudyDataset

TAUS = {
    "agreement.tau_gradient": "attention and gradient",
    "agreement.tau_leave_one_out": "attention and leave-one-out",
    "agreement.tau_gradient_leave_one_out": "gradient and leave-one-out",
}
TAU_HEAD: tuple[str, ...] = ("data set", "model", "mean τ", "over", "published", "difference")
TAU_HEAD += ("sd", "published", "significant", "published")
MARKS = {"held": "✓ held", "did not hold": "✗ did not hold"}
SCORES = {"accuracy": "accuracy", "f1": "F1", "roc_auc": "ROC-AUC"}
MAX_TABLE_ROWS = 30  # more rows are split into folded tables
COSTLIEST_PARTS = 3  # parts of an audit with a column of their own
DASH_NOTE = (
    "A dash under “here”: none of our texts is of that kind, for example in a bin of largest "
    "weights, or of a class that the paper's files give only by number (bAbI). Under “published”: "
    "the paper gives no number."
)


def build_sections(outcome: StudyOutcome) -> list[Section]:
    """All sections that are not empty, from claims to cost."""
    sections = [
        _claims(outcome),
        _agreement(outcome),
        _performance(outcome),
        _other_measures(outcome),
        Section("figures", "Figures", figures=tuple(outcome.figures)),
        build_setup_section(outcome),
        build_cost_section(outcome),
    ]
    return [one for one in sections if one.words or one.tables or one.figures or one.folded]


def _claims(outcome: StudyOutcome) -> Section:
    titles = {one.name: one.title for one in outcome.study.sets}
    tables = []
    for claim in outcome.study.claims:
        mine = [one for one in outcome.claims if one.claim == claim]
        rows = tuple(
            (
                one.dataset_label(titles[one.texts]),
                MARKS.get(one.answer, one.answer) + (f": {one.why}" if one.why else ""),
                format_estimate(one.estimate),
                format_sample_size(one.estimate, one.over),
                three_decimals(one.published),
                {True: "yes", False: "no", None: "–"}[one.as_published],
            )
            for one in mine
        )
        what = "share of texts" if claim.kind == "share" else "difference"
        head = ("data set", "here", what, "over", "published", "as published")
        if rows:
            tables.append(PageTable(head, rows, claim.says + "."))
    words = (
        "A claim held where the whole 95 % interval is on its side. Intervals are over seeds where "
        "there are several, else over texts; the latter do not cover the variation between "
        "trainings. As published: whether the paper's own numbers on that set give the same "
        "answer, where it has any. Claims about a single model are also tested on transformers, "
        "for which nothing was published.",
    )
    return Section("claims", "What the paper says, and whether it held", words, tuple(tables))


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
            tables.append(PageTable(TAU_HEAD, tuple(rows), f"Kendall's τ of {words}."))
        if classes:
            head = (*TAU_HEAD[:2], "class", *TAU_HEAD[2:])
            folded.append((f"τ of {words}, by predicted class", PageTable(head, tuple(classes))))
    note = (DASH_NOTE,) if tables else ()
    return Section("agreement", "Do they rank words alike?", note, tuple(tables), (), tuple(folded))


def _tau_row(row: ReplicatedNumber, rows: Mapping[NumberKey, ReplicatedNumber]) -> tuple[str, ...]:
    others = []
    for statistic in ("sd", "significant"):
        one = rows.get(replace(row.key, statistic=statistic))
        others.append(three_decimals(one.ours.value if one and one.ours else None))
        others.append(three_decimals(one.published.value if one and one.published else None))
    theirs = row.published.value if row.published else None
    return (
        row.key.texts,
        describe_model(row.key.model),
        format_estimate(row.ours),
        format_sample_size(row.ours, row.over),
        three_decimals(theirs),
        three_decimals(row.difference, "+"),
        *others,
    )


def _performance(outcome: StudyOutcome) -> Section:
    by_key = {row.key: row for row in outcome.rows}
    rows = []
    for (texts, model), results in outcome.results.items():
        cells = [texts, describe_model(model)]
        for name in SCORES:
            one = by_key.get(NumberKey(texts, model, f"performance.{name}", "value"))
            theirs = one.published.value if one and one.published else None
            cells += [
                format_estimate(t_interval_over_seeds(results.performance(name), UNIT_RANGE)),
                three_decimals(theirs),
            ]
        rows.append(tuple(cells))
    head = [one for name in SCORES.values() for one in (name, "published")]
    table = PageTable(("data set", "model", *head), tuple(rows))
    return Section("performance", "How well the models predict", (), (table,) if rows else ())


def _other_measures(outcome: StudyOutcome) -> Section:
    """All other measures: one table if they are few, else a folded table for each."""
    others = [
        row
        for row in outcome.rows
        if row.key.measure not in TAUS and not row.key.measure.startswith("performance.")
    ]
    head = ("data set", "model", "class", "here", "over", "published", "difference", "source")
    groups: dict[str, list[tuple[str, ...]]] = {}
    for row in others:
        groups.setdefault(f"{row.key.measure}, {row.key.statistic}", []).append(_other_row(row))
    if len(others) <= MAX_TABLE_ROWS:
        rows = [(name, *row) for name, some in groups.items() for row in some]
        table = PageTable(("measure", *head), tuple(rows))
        return Section("more", "Every other number", (DASH_NOTE,), (table,) if rows else ())
    folded = tuple((name, PageTable(head, tuple(rows))) for name, rows in groups.items())
    return Section("more", "Every other number", (DASH_NOTE,), (), (), folded)


def _other_row(row: ReplicatedNumber) -> tuple[str, ...]:
    theirs = row.published
    return (
        row.key.texts,
        describe_model(row.key.model),
        row.of_class,
        format_estimate(row.ours),
        format_sample_size(row.ours, row.over),
        three_decimals(theirs.value if theirs else None),
        three_decimals(row.difference, "+"),
        theirs.source if theirs else "–",
    )


def build_setup_section(outcome: StudyOutcome) -> Section:
    """How the study was set up, and what is missing from its tables."""
    study = outcome.study
    rows = tuple((one.what, one.paper, one.here) for one in study.differs)
    tables = [PageTable(("", "paper", "here"), rows, "What differs from the paper's set-up.")]
    sizes = [row for texts in study.sets for row in _sizes(texts, outcome)]
    head = ("data set", "train", "published", "test", "published", "what else differs")
    if sizes:
        tables.append(PageTable(head, tuple(sizes), "Texts of each set."))
    titles = {one.name: one.title for one in study.sets}
    missing = [(titles[name], why) for name, why in outcome.absent.items()]
    missing += outcome.failed.items()
    if missing:
        tables.append(PageTable(("", "why"), tuple(missing), "What is not in the tables."))
    words = [f"{mark}: {means}." for mark, means in SOURCES.items()]
    return Section("setup", "Set-up", ("Published numbers. " + " ".join(words),), tuple(tables))


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
    return Section("cost", "Where the time goes", (words,), (PageTable(head, tuple(rows)),))


def _minutes(
    name: str, cells: int, spent: Mapping[str, float], parts: list[str]
) -> tuple[str, ...]:
    rest = spent["audit"] - sum(spent.get(part, 0.0) for part in parts)
    columns = (spent["training"], *(spent.get(part, 0.0) for part in parts), rest)
    total = spent["training"] + spent["audit"]
    return name, str(cells), *(f"{one:.1f}" for one in (*columns, total))
