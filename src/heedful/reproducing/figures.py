"""The paper's figures from our runs: distributions of one seed, and differences beside published.

Numbers are those of Jain & Wallace (2019): 2 histograms of τ with the gradient, 3 how much better
the two references agree with each other than attention with one, 5 the average encoder against the
BiLSTM, 6 shuffled weights, 8 the farthest attention found.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan

from heedful.report.pictures import Picture, Row, pictures_of
from heedful.reproducing.claims import Judged
from heedful.reproducing.made import Made
from heedful.reproducing.study import Model, Study
from heedful.runner.run import Run

OF_TEXTS = {"tau_gradient": "Figure 2", "median_tvd": "Figure 6", "epsilon_max_jsd": "Figure 8"}
OF_CLAIMS = {"references-agree-better": "Figure 3", "average-above-bilstm": "Figure 5"}
OURS, THEIRS = "here", "published"


def figures_of(
    study: Study, made: Mapping[tuple[str, Model], Made], claims: Sequence[Judged]
) -> list[Picture]:
    """Differences first, then the distributions of the main model on every set."""
    found = [_forest(study, name, claims) for name in OF_CLAIMS]
    drawn = [one for one in found if one is not None]
    for measure, number in OF_TEXTS.items():
        for texts in study.sets:
            if (cells := made.get((texts.name, study.main))) is not None:
                drawn += _distribution(cells, measure, f"{number}: {texts.title}", texts.name)
    return drawn


def _distribution(cells: Made, measure: str, title: str, name: str) -> list[Picture]:
    """The figure of a run as it is drawn in its own report."""
    records = Run(cells.cells[0].place(cells.out) / "run").records
    return [
        replace(one, title=f"{title}. {one.title}", name=f"{measure}-{name}")
        for one in pictures_of(records)
        if one.name == measure
    ]


def _forest(study: Study, name: str, claims: Sequence[Judged]) -> Picture | None:
    """Ours with its interval and the published difference, a row for each set."""
    titles = {one.name: one.title for one in study.sets}
    mine = [one for one in claims if one.claim.name == name and one.found is not None]
    rows: list[Row] = []
    for one in mine:
        assert one.found is not None  # noqa: S101 - chosen so
        low, high = (one.found.value if isnan(x) else x for x in (one.found.low, one.found.high))
        told = {"measure": one.asked_of(titles[one.texts]), "class": OURS, "value": one.found.value}
        rows.append(told | {"low": low, "high": high, "certain": one.answer != "undecided"})
        if one.published is not None:
            there = {"measure": titles[one.texts], "class": THEIRS, "value": one.published}
            rows.append(there | {"low": one.published, "high": one.published, "certain": False})
    if not rows:
        return None
    ends = [row[end] for row in rows for end in ("low", "high")]
    return Picture(
        name=name,
        kind="forest",
        title=f"{OF_CLAIMS[name]}: {mine[0].claim.says}",
        caption="Difference of means with its 95 % interval; right of zero the claim holds.",
        x="difference of Kendall's τ",
        span=(min(0.0, *ends) - 0.05, max(0.0, *ends) + 0.05),
        classes=(OURS, THEIRS),
        rows=tuple(rows),
    )
