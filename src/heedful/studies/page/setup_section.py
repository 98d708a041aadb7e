"""How a study was set up, and what it cost."""

from collections.abc import Iterator, Mapping

from heedful.studies.page.page_parts import PageTable, Section, StudyOutcome
from heedful.studies.published_numbers import SOURCES
from heedful.studies.run.grid import OWN_ATTENTION, describe_model
from heedful.studies.study import StudyDataset

COSTLIEST_PARTS = 3  # parts of an audit that are told apart


def build_setup_section(outcome: StudyOutcome) -> Section:
    study, rows = outcome.study, []
    rows = [(one.what, one.paper, one.here) for one in study.differs]
    tables = [
        PageTable(("", "paper", "here"), tuple(rows), "What differs from the paper's set-up.")
    ]
    sizes = [row for texts in study.sets for row in _sizes(texts, outcome)]
    head = ("data set", "train", "published", "test", "published", "what else differs")
    if sizes:
        tables.append(PageTable(head, tuple(sizes), "Texts of each set."))
    titles = {one.name: one.title for one in study.sets}
    away = [(titles[name], why) for name, why in outcome.absent.items()]
    away += [(name, why) for name, why in outcome.failed.items()]
    if away:
        tables.append(PageTable(("", "why"), tuple(away), "What is not in the tables."))
    words = [f"{mark}: {means}." for mark, means in SOURCES.items()]
    return Section("setup", "Set-up", ("Published numbers. " + " ".join(words),), tuple(tables))


def _sizes(texts: StudyDataset, outcome: StudyOutcome) -> Iterator[tuple[str, ...]]:
    """How many texts models were trained and tested on: the paper's, and each that it has not."""
    told = set()
    for (name, model), cells in outcome.made.items():
        beyond = model[1] == OWN_ATTENTION
        whose = f"{texts.title}, {describe_model(model)}" if beyond else texts.title
        if name != texts.name or whose in told:
            continue
        told.add(whose)
        ours, theirs = cells.told[0]["texts"], {} if beyond else texts.published_texts
        differs = texts.differs
        if beyond:
            differs = (f"texts are cut at {cells.cells[0].recipe['max_tokens']} tokens",)
        yield (
            whose,
            str(ours["train"]),
            str(theirs.get("train", "–")),
            str(ours["test"]),
            str(theirs.get("test", "–")),
            "; ".join(differs),
        )


def build_cost_section(outcome: StudyOutcome) -> Section:
    """CPU minutes by set: of training, of the dearest parts of the audits, of the rest of them."""
    spent: dict[str, dict[str, float]] = {}
    count: dict[str, int] = {}
    for (texts, _), cells in outcome.made.items():
        count[texts] = count.get(texts, 0) + len(cells.told)
        mine = spent.setdefault(texts, {})
        for one in cells.told:
            for part, seconds in one["cpu_seconds"].items():
                mine[part] = mine.get(part, 0.0) + seconds / 60
    if not spent:
        return Section("cost", "Cost")
    whole: dict[str, float] = {}
    for mine in spent.values():
        for part, minutes in mine.items():
            whole[part] = whole.get(part, 0.0) + minutes
    parts = sorted(whole.keys() - {"training", "audit"}, key=lambda part: -whole[part])[
        :COSTLIEST_PARTS
    ]
    rows = [_minutes(name, count[name], spent[name], parts) for name in spent]
    rows.append(_minutes("all", sum(count.values()), whole, parts))
    head = ("data set", "cells", "training", *(one.replace("_", "-") for one in parts))
    head += ("rest of the audit", "all")
    words = "CPU minutes, each cell in one thread; two cells side by side take half as long."
    return Section("cost", "Where the time goes", (words,), (PageTable(head, tuple(rows)),))


def _minutes(
    name: str, cells: int, spent: Mapping[str, float], parts: list[str]
) -> tuple[str, ...]:
    rest = spent["audit"] - sum(spent.get(part, 0.0) for part in parts)
    columns = (spent["training"], *(spent.get(part, 0.0) for part in parts), rest)
    told = (*columns, spent["training"] + spent["audit"])
    return name, str(cells), *(f"{one:.1f}" for one in told)
