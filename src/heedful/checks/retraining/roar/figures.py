"""The figure of `roar`: accuracy of models retrained without the top-ranked words."""

from typing import TYPE_CHECKING

from heedful.results.document import FigureData
from heedful.results.figure_data import (
    drop_empty,
    ends,
    interval_rows,
    reference_lines,
    rounded_span,
)

if TYPE_CHECKING:
    from heedful.results.run_records import RunRecords

NAME, SHARE = "roar", "share "


def build_figures(records: "RunRecords") -> list[FigureData]:
    """Accuracy by the share of words removed, for each method and the control."""
    result = records.verdict.checks[NAME]
    rows = interval_rows(
        (row.estimate, {"class": str(row.method), "x": float(row.setting.removeprefix(SHARE))})
        for row in result.rows("score")
        if row.setting and row.setting.startswith(SHARE) and row.seed is None
    )
    rows.sort(key=lambda row: (row["class"], row["x"]))
    whole = reference_lines({"whole texts": result.of("score_whole")})
    figure = FigureData(
        NAME,
        "lines",
        "Retrained without the top-ranked words",
        "Accuracy of models retrained without the words that a method ranks highest, with "
        "intervals over seeds and texts. Below random: the removed words carried more than random "
        "words do. Dashed: models trained on whole texts.",
        x="share of the words removed",
        span=(0.0, min(1.0, max((row["x"] for row in rows), default=0.0) + 0.1)),
        rows=rows,
        marks=whole,
        y="accuracy",
        y_span=rounded_span([*ends(rows), *(mark["rule"] for mark in whole)], 0.1),
    )
    return drop_empty([figure])
