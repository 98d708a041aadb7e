"""The paper's figures from our runs: means and differences beside published, distributions.

Means of τ are its Table 2, drawn; distributions are of one seed. Numbers of figures are those of
Jain & Wallace (2019): 2 histograms of τ with the gradient, 3 how much better the two references
agree with each other than attention with one, 5 the average encoder against the BiLSTM, 6 shuffled
weights, 8 the farthest attention found.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan, nan

from heedful.api.run import Run
from heedful.core.records import Estimate
from heedful.report.figures.figure_data import build_figures
from heedful.results.document import FigureData, FigureRow
from heedful.studies.results.cell_results import CellResults
from heedful.studies.results.claims import ClaimFinding
from heedful.studies.results.comparison_table import ReplicatedNumber as Number
from heedful.studies.run.grid import describe_model
from heedful.studies.study import ModelSpec, Study

DISTRIBUTION_FIGURES = {
    "tau_gradient": "Figure 2",
    "median_tvd": "Figure 6",
    "epsilon_max_jsd": "Figure 8",
}
CLAIM_FIGURES = {"references-agree-better": "Figure 3", "average-above-bilstm": "Figure 5"}
MEAN_FIGURES = {
    "agreement.tau_gradient": "Table 2: attention and gradient",
    "agreement.tau_leave_one_out": "Table 2: attention and leave-one-out",
}
OURS, THEIRS = "here", "published"


def build_study_figures(
    study: Study,
    made: Mapping[tuple[str, ModelSpec], CellResults],
    claims: Sequence[ClaimFinding],
    numbers: Sequence[Number],
) -> list[FigureData]:
    """Differences first, then means, then the distributions of the main model on every set."""
    found = [_forest(study, name, claims) for name in CLAIM_FIGURES]
    found += [_means(study, measure, numbers) for measure in MEAN_FIGURES]
    drawn = [one for one in found if one is not None]
    for measure, number in DISTRIBUTION_FIGURES.items():
        for texts in study.sets:
            if (cells := made.get((texts.name, study.main))) is not None:
                drawn += _distribution(cells, measure, f"{number}: {texts.title}", texts.name)
    return drawn


def _means(study: Study, measure: str, numbers: Sequence[Number]) -> FigureData | None:
    """The mean τ of every model on every set, ours with its interval, beside the published one."""
    rows: list[FigureRow] = []
    for texts in study.sets:
        for one in numbers:
            key = one.key
            if (key.texts, key.measure, key.statistic) != (texts.name, measure, "mean"):
                continue
            if key.of_class == "all" and one.ours is not None:
                name = f"{texts.title}, {describe_model(key.model)}"
                rows.append(_dot(name, OURS, one.ours, certain=bool(one.inside)))
                if (theirs := one.published) is not None:
                    rows.append(_dot(name, THEIRS, Estimate(theirs.value, nan, nan, 1)))
    if not rows:
        return None
    return FigureData(
        name=measure.replace(".", "-"),
        kind="forest",
        title=MEAN_FIGURES[measure],
        caption="Mean of Kendall's τ over the test texts with its 95 % interval; filled where the "
        "published mean lies within.",
        x="Kendall's τ",
        span=_span(rows),
        classes=(OURS, THEIRS),
        rows=tuple(rows),
    )


def _dot(name: str, whose: str, found: Estimate, *, certain: bool = False) -> FigureRow:
    low, high = (found.value if isnan(x) else x for x in (found.low, found.high))
    told = {"measure": name, "class": whose, "value": found.value}
    return told | {"low": low, "high": high, "certain": certain}


def _span(rows: Sequence[FigureRow]) -> tuple[float, float]:
    """From the lowest end to the highest, zero among them, with some room."""
    ends = [row[end] for row in rows for end in ("low", "high")]
    return min(0.0, *ends) - 0.05, max(0.0, *ends) + 0.05


def _distribution(cells: CellResults, measure: str, title: str, name: str) -> list[FigureData]:
    """The figure of a run as it is drawn in its own report."""
    records = Run(cells.cells[0].place(cells.out) / "run").records
    which = f" Seed {cells.seeds[0]} of {len(cells.seeds)}." if len(cells.seeds) > 1 else ""
    return [
        replace(
            one,
            title=f"{title}. {one.title}",
            caption=f"{one.caption}{which}",
            name=f"{measure}-{name}",
        )
        for one in build_figures(records)
        if one.name == measure
    ]


def _forest(study: Study, name: str, claims: Sequence[ClaimFinding]) -> FigureData | None:
    """Ours with its interval and the published difference, a row for each set."""
    titles = {one.name: one.title for one in study.sets}
    mine = [one for one in claims if one.claim.name == name and one.found is not None]
    rows: list[FigureRow] = []
    for one in mine:
        assert one.found is not None  # noqa: S101 - chosen so
        where = one.dataset_label(titles[one.texts])
        rows.append(_dot(where, OURS, one.found, certain=one.answer != "undecided"))
        if one.published is not None:
            rows.append(_dot(where, THEIRS, Estimate(one.published, nan, nan, 1)))
    if not rows:
        return None
    return FigureData(
        name=name,
        kind="forest",
        title=f"{CLAIM_FIGURES[name]}: {mine[0].claim.says}",
        caption="Difference of means with its 95 % interval; right of zero the claim holds.",
        x="difference of Kendall's τ",
        span=_span(rows),
        classes=(OURS, THEIRS),
        rows=tuple(rows),
    )
