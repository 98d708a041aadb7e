"""The figure of `deception`: attention on the hidden words, and accuracy, before and after."""

from math import isnan
from typing import TYPE_CHECKING

from heedful.core.records import CheckResult
from heedful.results.document import FigureData, FigurePanel, FigureRow
from heedful.results.figure_data import (
    drop_empty,
    ends,
    interval_row,
    reference_lines,
    rounded_span,
    weight_order,
)

if TYPE_CHECKING:
    from heedful.results.run_records import RunRecords

MASS, SCORE = "share of attention on the hidden words", "accuracy"


def build_figures(records: "RunRecords") -> list[FigureData]:
    """Mass and accuracy before and after, λ by λ."""
    result = records.verdict.checks["deception"]
    masses, scores = (
        _before_and_after(result, measure, panel)
        for measure, panel in (("mass", MASS), ("score", SCORE))
    )
    without = reference_lines({"without the words": result.of("score_without_words")})
    rules = [line | {"panel": SCORE} for line in without]
    span = rounded_span([*ends(scores), *(mark["rule"] for mark in rules)])
    panels = ((masses, FigurePanel(MASS, (0.0, 1.0))), (scores, FigurePanel(SCORE, span)))
    figure = FigureData(
        "deception",
        "intervals",
        "Trained to hide words",
        "For every λ: the share of attention on the hidden words, and accuracy, before and after "
        "training. Dashed: accuracy of a model trained without the words.",
        rows=[*masses, *scores],
        marks=rules,
        panels=[panel for rows, panel in panels if rows],
    )
    return drop_empty([figure])


def _before_and_after(result: CheckResult, measure: str, panel: str) -> list[FigureRow]:
    before = result.of(f"{measure}_before").value
    after = {
        row.setting: row.estimate
        for row in result.rows(f"{measure}_after")
        if row.setting and not isnan(row.estimate.value) and not isnan(before)
    }
    rows = list[FigureRow]()
    for weight in sorted(after, key=lambda one: (weight_order(one), one)):
        place = {"panel": panel, "group": weight}
        rows.append(interval_row(after[weight], **place, role="after", before=before))
        rows.append({**place, "role": "before", "value": before, "low": before, "high": before})
    return rows
