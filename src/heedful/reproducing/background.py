"""How a study was set up, and what it cost."""

from heedful.reproducing.parts import Outcome, Section, Table
from heedful.reproducing.published import SOURCES


def setup_of(outcome: Outcome) -> Section:
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


def cost_of(outcome: Outcome) -> Section:
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
