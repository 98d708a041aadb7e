"""What came of a study as one neutral page: sections of words, tables and figures."""

from collections.abc import Mapping
from dataclasses import replace

from heedful.studies.page.page_parts import (
    PageTable,
    Section,
    StudyOutcome,
    format_estimate,
    format_sample_size,
    three_decimals,
)
from heedful.studies.page.setup_section import build_cost_section, build_setup_section
from heedful.studies.published_numbers import NumberKey
from heedful.studies.results.comparison_table import ReplicatedNumber
from heedful.studies.results.estimates import UNIT_RANGE, t_interval_over_seeds
from heedful.studies.run.grid import describe_model

TAUS = {
    "agreement.tau_gradient": "attention and gradient",
    "agreement.tau_leave_one_out": "attention and leave-one-out",
    "agreement.tau_gradient_leave_one_out": "gradient and leave-one-out",
}
TAU_HEAD: tuple[str, ...] = ("data set", "model", "mean τ", "over", "published", "difference")
TAU_HEAD += ("sd", "published", "significant", "published")
MARKS = {"held": "✓ held", "did not hold": "✗ did not hold"}
SCORES = {"accuracy": "accuracy", "f1": "F1", "roc_auc": "ROC-AUC"}
MAX_TABLE_ROWS = 30  # rows that one table may have
DASH_NOTE = (
    "A dash under “here”: no text of ours is of that kind, such as of a bin of largest weights, or "
    "of a class that the paper's files give by a number only (bAbI). Under “published”: the paper "
    "gives none."
)


def build_sections(outcome: StudyOutcome) -> list[Section]:
    """The page from its claims down to its cost."""
    made = [
        _claims(outcome),
        _agreement(outcome),
        _performance(outcome),
        _other_measures(outcome),
        Section("figures", "Figures", figures=tuple(outcome.figures)),
        build_setup_section(outcome),
        build_cost_section(outcome),
    ]
    return [one for one in made if one.words or one.tables or one.figures or one.folded]


def _claims(outcome: StudyOutcome) -> Section:
    titles = {one.name: one.title for one in outcome.study.sets}
    tables = []
    for claim in outcome.study.claims:
        mine = [one for one in outcome.claims if one.claim == claim]
        rows = tuple(
            (
                one.dataset_label(titles[one.texts]),
                MARKS.get(one.answer, one.answer) + (f": {one.why}" if one.why else ""),
                format_estimate(one.found),
                format_sample_size(one.found, one.over),
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
        "there are several, else over texts, and then say nothing of another training. As "
        "published: whether the paper's own numbers of that set say the same, where it gives any. "
        "What is claimed of one model alone is asked of transformers too, of which nothing was "
        "published.",
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
            told_row = _tau_row(row, by_key)
            if key.of_class == "all":
                rows.append(told_row)
            else:
                classes.append((*told_row[:2], row.of_class, *told_row[2:]))
        if rows:
            tables.append(PageTable(TAU_HEAD, tuple(rows), f"Kendall's τ of {words}."))
        if classes:
            head = (*TAU_HEAD[:2], "class", *TAU_HEAD[2:])
            folded.append((f"τ of {words}, by predicted class", PageTable(head, tuple(classes))))
    told = (DASH_NOTE,) if tables else ()
    return Section("agreement", "Do they rank words alike?", told, tuple(tables), (), tuple(folded))


def _tau_row(row: ReplicatedNumber, rows: Mapping[NumberKey, ReplicatedNumber]) -> tuple[str, ...]:
    beside = []
    for statistic in ("sd", "significant"):
        one = rows.get(replace(row.key, statistic=statistic))
        beside.append(three_decimals(one.ours.value if one and one.ours else None))
        beside.append(three_decimals(one.published.value if one and one.published else None))
    theirs = row.published.value if row.published else None
    return (
        row.key.texts,
        describe_model(row.key.model),
        format_estimate(row.ours),
        format_sample_size(row.ours, row.over),
        three_decimals(theirs),
        three_decimals(row.difference, "+"),
        *beside,
    )


def _performance(outcome: StudyOutcome) -> Section:
    by_key = {row.key: row for row in outcome.rows}
    rows = []
    for (texts, model), made in outcome.made.items():
        cells = [texts, describe_model(model)]
        for name in SCORES:
            one = by_key.get(NumberKey(texts, model, f"performance.{name}", "value"))
            theirs = one.published.value if one and one.published else None
            cells += [
                format_estimate(t_interval_over_seeds(made.performance(name), UNIT_RANGE)),
                three_decimals(theirs),
            ]
        rows.append(tuple(cells))
    head = [one for name in SCORES.values() for one in (name, "published")]
    table = PageTable(("data set", "model", *head), tuple(rows))
    return Section("performance", "How well the models predict", (), (table,) if rows else ())


def _other_measures(outcome: StudyOutcome) -> Section:
    """Every other measure: one table where they are few, else a folded one each."""
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
