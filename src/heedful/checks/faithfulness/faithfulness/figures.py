"""The figure of `faithfulness` and `off_manifold`: methods and controls, by way of removal."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from heedful.checks.faithfulness.faithfulness.rules import WAYS
from heedful.checks.spec import CONTROL_METHODS
from heedful.core.records import CheckResult, Estimate
from heedful.results.document import FigureData, FigurePanel, FigureRow
from heedful.results.figure_data import drop_empty, ends, interval_rows, rounded_span

if TYPE_CHECKING:
    from heedful.results.run_records import RunRecords

PANELS = {
    "beyond_random": "lost beyond random removal",
    "comprehensiveness": "lost without the top words",
    "sufficiency": "lost with the top words alone",
}
WORST = "worst"  # comprehensiveness of the order from its end
LEAST = 0.05  # of the axis


def build_figures(records: "RunRecords") -> list[FigureData]:
    """Methods with intervals, by every way to remove words."""
    ways = records.settings("faithfulness").get("ways")
    first = ways[0] if isinstance(ways, list) and ways and ways[0] in WAYS else WAYS[0]
    title = "The words a method ranks highest"
    return removal_figures(records, check="faithfulness", title=title, way=first)


def removal_figures(records: "RunRecords", *, check: str, title: str, way: str) -> list[FigureData]:
    """A figure of the removals of a check; `way` is that of the rows without a setting."""
    result = records.verdict.checks[check]
    settings = {row.setting for row in result.rows(WORST) if row.setting and row.predicted is None}
    ways: dict[str, dict[str, str]] = {way: {}}
    ways |= {setting: {"setting": setting} for setting in sorted(settings)}
    rows = interval_rows(
        pair
        for name, keys in ways.items()
        for measure in PANELS
        for pair in _points(result, measure, name, keys)
    )
    span, drawn = rounded_span([0.0, LEAST, *ends(rows)]), {row["panel"] for row in rows}
    figure = FigureData(
        check,
        "intervals",
        title,
        "Probability of the predicted class that is lost, mean over texts and shares of the words, "
        "with intervals. Only what lies beyond random removal is evidence: any removal harms. "
        "Hollow: controls, and the words that a method ranks lowest.",
        rows=rows,
        panels=[FigurePanel(panel, span) for panel in PANELS.values() if panel in drawn],
    )
    return drop_empty([figure])


def _points(
    result: CheckResult, measure: str, way: str, keys: dict[str, str]
) -> Iterator[tuple[Estimate, FigureRow]]:
    """Every method and control in a panel, and the reversed order of each method."""
    for method in (*result.by_method("beyond_random"), *CONTROL_METHODS):
        row = {"panel": PANELS[measure], "group": method, "class": way}
        role = "control" if method in CONTROL_METHODS else "method"
        yield result.of(measure, method=method, **keys), row | {"role": role}
        if measure == "comprehensiveness":
            worst = result.of(WORST, method=method, **keys)
            yield worst, row | {"role": "its order reversed"}
