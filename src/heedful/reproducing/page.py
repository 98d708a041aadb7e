"""What came of a study as one neutral page: sections of words, tables and figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan

from heedful.core.records import Estimate
from heedful.report.pictures import Picture
from heedful.reproducing.cells import model_name
from heedful.reproducing.claims import Judged
from heedful.reproducing.made import Made
from heedful.reproducing.published import SOURCES, Key
from heedful.reproducing.rows import Row
from heedful.reproducing.study import Model, Study

TAUS = {
    "agreement.tau_gradient": "attention and gradient",
    "agreement.tau_leave_one_out": "attention and leave-one-out",
    "agreement.tau_gradient_leave_one_out": "gradient and leave-one-out",
}
MARKS = {"held": "✓ held", "did not hold": "✗ did not hold"}
MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Table:
    """Rows of cells under a head; the first column names the row."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    name: str
    title: str
    words: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Picture, ...] = ()
    folded: tuple[tuple[str, Table], ...] = ()


@dataclass(frozen=True)
class Outcome:
    """All that a page is made from."""

    study: Study
    made: Mapping[tuple[str, Model], Made]
    rows: Sequence[Row]
    claims: Sequence[Judged]
    figures: Sequence[Picture]
    absent: Mapping[str, str]
    failed: Mapping[str, str] = field(default_factory=dict)
    quick: bool = False
    missing: int = 0  # cells not made yet


def told(estimate: Estimate | None) -> str:
    """A number with its interval, with a true minus; a dash where there is none."""
    if estimate is None or isnan(estimate.value):
        return "–"
    if isnan(estimate.low):
        return f"{estimate.value:z.3f}".replace("-", MINUS)
    ends = f"{estimate.value:z.3f} [{estimate.low:z.3f}, {estimate.high:z.3f}]"
    return ends.replace("-", MINUS)


def number(value: float | None, sign: str = "") -> str:
    """Three decimals, or a dash."""
    if value is None or isnan(value):
        return "–"
    return f"{value:{sign}z.3f}".replace("-", MINUS)


def sections_of(outcome: Outcome) -> list[Section]:
    """The page from its claims down to its cost."""
    made = [
        _claims(outcome),
        _agreement(outcome),
        _performance(outcome),
        _others(outcome),
        Section("figures", "Figures", figures=tuple(outcome.figures)),
        _setup(outcome),
        _cost(outcome),
    ]
    return [one for one in made if one.words or one.tables or one.figures or one.folded]


def _claims(outcome: Outcome) -> Section:
    titles = {one.name: one.title for one in outcome.study.sets}
    tables = []
    for claim in outcome.study.claims:
        mine = [one for one in outcome.claims if one.claim == claim]
        rows = tuple(
            (
                titles[one.texts],
                MARKS.get(one.answer, one.answer) + (f": {one.why}" if one.why else ""),
                told(one.found),
                number(one.published),
                {True: "yes", False: "no", None: "–"}[one.as_published],
            )
            for one in mine
        )
        what = "share of texts" if claim.kind == "share" else "difference"
        head = ("data set", "here", what, "published", "as published")
        if rows:
            tables.append(Table(head, rows, claim.says + "."))
    words = (
        "A claim held where the whole 95 % interval is on its side. Intervals are over seeds where "
        "there are several, else over texts, and then say nothing of another training.",
    )
    return Section("claims", "What the paper says, and whether it held", words, tuple(tables))


def _agreement(outcome: Outcome) -> Section:
    by_key = {row.key: row for row in outcome.rows}
    tables, folded = [], []
    for measure, words in TAUS.items():
        rows, classes = [], []
        for (texts, model), cells in outcome.made.items():
            row = by_key.get(Key(texts, model, measure, "mean"))
            if row is not None:
                rows.append(_tau(row, by_key, texts, model))
            for name in cells.classes() if len(cells.classes()) <= 3 else ():
                one = by_key.get(Key(texts, model, measure, "mean", name))
                if one is not None:
                    classes.append(
                        (
                            *_tau(one, by_key, texts, model)[:2],
                            name,
                            *_tau(one, by_key, texts, model)[2:],
                        )
                    )
        head = (
            "data set",
            "model",
            "mean τ",
            "published",
            "difference",
            "sd",
            "published",
            "significant",
            "published",
        )
        if rows:
            tables.append(Table(head, tuple(rows), f"Kendall's τ of {words}."))
        if classes:
            folded.append(
                (
                    f"τ of {words}, by predicted class",
                    Table((*head[:2], "class", *head[2:]), tuple(classes)),
                )
            )
    return Section("agreement", "Do they rank words alike?", (), tuple(tables), (), tuple(folded))


def _tau(row: Row, rows: Mapping[Key, Row], texts: str, model: Model) -> tuple[str, ...]:
    of_class, measure = row.key.of_class, row.key.measure
    beside = []
    for statistic in ("sd", "significant"):
        one = rows.get(Key(texts, model, measure, statistic, of_class))
        beside.append(number(one.ours.value if one and one.ours else None))
        beside.append(number(one.published.value if one and one.published else None))
    theirs = row.published.value if row.published else None
    return (
        texts,
        model_name(model),
        told(row.ours),
        number(theirs),
        number(row.difference, "+"),
        *beside,
    )


def _performance(outcome: Outcome) -> Section:
    names = ("accuracy", "f1", "roc_auc")
    by_key = {row.key: row for row in outcome.rows}
    rows = []
    for texts, model in outcome.made:
        cells = [texts, model_name(model)]
        for name in names:
            one = by_key.get(Key(texts, model, f"performance.{name}", "value"))
            cells += [
                told(one.ours) if one else "–",
                number(one.published.value if one and one.published else None),
            ]
        rows.append(tuple(cells))
    head = ("data set", "model", "accuracy", "published", "F1", "published", "ROC-AUC", "published")
    return Section(
        "performance",
        "How well the models predict",
        (),
        (Table(head, tuple(rows)),) if rows else (),
    )


def _others(outcome: Outcome) -> Section:
    """Every other measure: a table each, folded where it is long."""
    groups: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    for row in outcome.rows:
        if row.key.measure in TAUS or row.key.measure.startswith("performance."):
            continue
        theirs = row.published
        groups.setdefault((row.key.measure, row.key.statistic), []).append(
            (
                row.key.texts,
                model_name(row.key.model),
                row.key.of_class,
                told(row.ours),
                number(theirs.value if theirs else None),
                number(row.difference, "+"),
                theirs.source if theirs else "–",
            )
        )
    head = ("data set", "model", "class", "here", "published", "difference", "source")
    folded = tuple(
        (f"{measure}, {statistic}", Table(head, tuple(rows)))
        for (measure, statistic), rows in groups.items()
    )
    words = ("Published values marked svg were digitised from plots (± 0.01).",) if folded else ()
    return Section("more", "Shuffled and adversarial attention", words, (), (), folded)


def _setup(outcome: Outcome) -> Section:
    study, rows = outcome.study, []
    rows = [(one.what, one.paper, one.here) for one in study.differs]
    tables = [Table(("", "paper", "here"), tuple(rows), "What differs from the paper's set-up.")]
    sizes = []
    for texts in study.sets:
        cells = next((one for (name, _), one in outcome.made.items() if name == texts.name), None)
        if cells is not None:
            ours = cells.told[0]["texts"]
            theirs = texts.published_texts
            sizes.append(
                (
                    texts.title,
                    str(ours["train"]),
                    str(theirs.get("train", "–")),
                    str(ours["test"]),
                    str(theirs.get("test", "–")),
                    "; ".join(texts.differs),
                )
            )
    head = ("data set", "train", "published", "test", "published", "what else differs")
    if sizes:
        tables.append(Table(head, tuple(sizes), "Texts of each set."))
    titles = {one.name: one.title for one in study.sets}
    away = [(titles[name], why) for name, why in outcome.absent.items()]
    away += [(name, why) for name, why in outcome.failed.items()]
    if away:
        tables.append(Table(("", "why"), tuple(away), "What is not in the tables."))
    words = [f"{mark}: {means}." for mark, means in SOURCES.items()]
    return Section("setup", "Set-up", ("Published numbers. " + " ".join(words),), tuple(tables))


def _cost(outcome: Outcome) -> Section:
    total: dict[str, list[float]] = {}
    for (texts, _), cells in outcome.made.items():
        for one in cells.told:
            spent = one["cpu_seconds"]
            sums = total.setdefault(texts, [0.0, 0.0, 0.0])
            for place, value in enumerate((1.0, spent["training"], spent["audit"])):
                sums[place] += value
    rows = [
        (name, f"{n:.0f}", f"{train / 60:.1f}", f"{audit / 60:.1f}")
        for name, (n, train, audit) in total.items()
    ]
    if not rows:
        return Section("cost", "Cost")
    sums = [sum(one[place] for one in total.values()) for place in range(3)]
    rows.append(("all", f"{sums[0]:.0f}", f"{sums[1] / 60:.1f}", f"{sums[2] / 60:.1f}"))
    head = ("data set", "cells", "training, CPU minutes", "audit, CPU minutes")
    return Section("cost", "Where the time goes", (), (Table(head, tuple(rows)),))
