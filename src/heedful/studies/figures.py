"""The paper's figures from our runs: means and differences with the published ones, distributions.

Means of τ show its Table 2; distributions are of one seed. Figures are numbered as in Jain &
Wallace (2019): 2 histograms of τ with the gradient, 3 how much better the two references agree with
each other than with attention, 5 the average encoder compared with the BiLSTM, 6 shuffled weights,
8 the most distant attention found.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import nan

from heedful.api.run import Run
from heedful.core.records import Estimate
from heedful.report.sections.check_sections import list_figures
from heedful.results.document import FigureData, FigureRow
from heedful.results.figure_data import drop_empty, ends, interval_row
from heedful.studies.cell_results import CellResults, StudyResults
from heedful.studies.claims import ClaimFinding
from heedful.studies.grid import describe_model
from heedful.studies.published_numbers import NumberKey
from heedful.studies.published_numbers import ReplicatedNumber as Number
from heedful.studies.study import Study

DISTRIBUTION_FIGURES = {"tau_gradient": 2, "median_tvd": 6, "epsilon_max_jsd": 8}
CLAIM_FIGURES = {"references-agree-better": "Figure 3", "average-above-bilstm": "Figure 5"}
MEAN_FIGURES = {
    "agreement.tau_gradient": "Table 2: attention and gradient",
    "agreement.tau_leave_one_out": "Table 2: attention and leave-one-out",
}
OURS, THEIRS = "here", "published"


def build_study_figures(
    study: Study,
    results: StudyResults,
    claims: Sequence[ClaimFinding],
    numbers: Sequence[Number],
) -> list[FigureData]:
    """Differences first, then means, then the distributions of the main model on every set."""
    figures = [one for name in CLAIM_FIGURES for one in _differences(study, name, claims)]
    figures += [one for measure in MEAN_FIGURES for one in _means(study, measure, numbers)]
    for measure, number in DISTRIBUTION_FIGURES.items():
        for texts in study.sets:
            if (cells := results.get((texts.name, study.main))) is not None:
                figures += _distribution(
                    cells, measure, f"Figure {number}: {texts.title}", texts.name
                )
    return figures


def _means(study: Study, measure: str, numbers: Sequence[Number]) -> list[FigureData]:
    """The mean τ of every model on every set with its interval, and the published mean."""
    dots = [
        (f"{texts.title}, {describe_model(one.key.model)}", one.ours, one.theirs, bool(one.inside))
        for texts in study.sets
        for one in numbers
        if one.key == NumberKey(texts.name, one.key.model, measure, "mean") and one.ours is not None
    ]
    caption = (
        "Mean of Kendall's τ over the test texts with its 95 % interval; filled where the "
        "published mean lies within."
    )
    return _forest(measure.replace(".", "-"), MEAN_FIGURES[measure], caption, dots)


def _forest(
    name: str, title: str, caption: str, dots: Iterable[tuple[str, Estimate, float | None, bool]]
) -> list[FigureData]:
    """Intervals of ours and the published values; the axis includes zero. Empty without dots.

    A dot has a name, our estimate, the published value if any, and whether it is certain.
    """
    rows: list[FigureRow] = []
    for group, ours, theirs, certain in dots:
        rows.append(interval_row(ours, **{"group": group, "class": OURS, "certain": certain}))
        if theirs is not None:
            published = {"group": group, "class": THEIRS, "certain": False}
            rows.append(interval_row(Estimate(theirs, nan, nan, 1), **published))
    span = min((0.0, *ends(rows))) - 0.05, max((0.0, *ends(rows))) + 0.05
    x = "difference of Kendall's τ" if name in CLAIM_FIGURES else "Kendall's τ"
    figure = FigureData(name, "intervals", title, caption, x, span, (OURS, THEIRS), tuple(rows))
    return drop_empty([figure])


def _distribution(cells: CellResults, measure: str, title: str, name: str) -> list[FigureData]:
    """The figure of the first seed's run, as in the run's own report."""
    records = Run(cells.cells[0].place(cells.out) / "run").records
    which = f" Seed {cells.seeds[0]} of {len(cells.seeds)}." if len(cells.seeds) > 1 else ""
    renamed = (
        replace(one, name=f"{measure}-{name}", title=f"{title}. {one.title}")
        for one in list_figures(records)
        if one.name == measure
    )
    return [replace(one, caption=f"{one.caption}{which}") for one in renamed]


def _differences(study: Study, name: str, claims: Sequence[ClaimFinding]) -> list[FigureData]:
    """Our difference with its interval and the published one, on each set."""
    titles = {one.name: one.title for one in study.sets}
    dots, title = [], ""
    for one in claims:
        if one.claim.name == name and one.estimate is not None:
            title = f"{CLAIM_FIGURES[name]}: {one.claim.says}"
            where, certain = one.dataset_label(titles[one.texts]), one.answer != "undecided"
            dots.append((where, one.estimate, one.published, certain))
    caption = "Difference of means with its 95 % interval; right of zero the claim holds."
    return _forest(name, title, caption, dots)
