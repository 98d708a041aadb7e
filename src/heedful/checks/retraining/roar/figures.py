"""The figure of `roar`: accuracy of models retrained without the top-ranked words."""

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING

from heedful.core.records import EstimateRow
from heedful.results.document import FigureData
from heedful.results.figure_data import ends, interval_rows, rounded_span

if TYPE_CHECKING:
    from heedful.results.run_records import RunRecords

NAME, SHARE = "roar", "share "


def build_figures(records: "RunRecords") -> Sequence[FigureData]:
    """Accuracy by the share of words removed, for each method and the control."""
    result = records.verdict.checks[NAME]
    kept = [
        row
        for row in result.rows("score")
        if row.setting and row.setting.startswith(SHARE) and row.seed is None
    ]
    rows = interval_rows(
        (row.estimate, {"class": str(row.method), "x": _share(row)})
        for row in sorted(kept, key=lambda row: (str(row.method), _share(row)))
    )
    if not rows:
        return ()
    whole = result.of("score_whole").value
    marks = [] if isnan(whole) else [{"rule": whole, "label": "whole texts"}]
    figure = FigureData(
        name=NAME,
        kind="lines",
        title="Retrained without the top-ranked words",
        caption="Accuracy of models retrained without the words that a method ranks highest, with "
        "intervals over seeds and texts. Below random: the removed words carried more than random "
        "words do. Dashed: models trained on whole texts.",
        x="share of the words removed",
        span=(0.0, min(1.0, max(row["x"] for row in rows) + 0.1)),
        classes=tuple(dict.fromkeys(row["class"] for row in rows)),
        rows=tuple(rows),
        marks=tuple(marks),
        y="accuracy",
        y_span=rounded_span([*ends(rows), *(mark["rule"] for mark in marks)], 0.1),
    )
    return (figure,)


def _share(row: EstimateRow) -> float:
    return float(str(row.setting).removeprefix(SHARE))
