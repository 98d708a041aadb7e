"""The figure of `deception`: attention on the hidden words, and accuracy, before and after."""

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING

from heedful.core.records import CheckResult
from heedful.results.document import FigureData, FigurePanel, FigureRow
from heedful.results.figure_data import (
    ends,
    format_two_decimals,
    interval_row,
    rounded_span,
    weight_order,
)

if TYPE_CHECKING:
    from heedful.results.run_records import RunRecords

NAME = "deception"
PANELS = {"mass": "share of attention on the hidden words", "score": "accuracy"}


def build_figures(records: "RunRecords") -> Sequence[FigureData]:
    """Mass and accuracy before and after, λ by λ."""
    result = records.verdict.checks[NAME]
    rows = [row for of, panel in PANELS.items() for row in _before_and_after(result, of, panel)]
    if not rows:
        return ()
    scores = [row for row in rows if row["panel"] == PANELS["score"]]
    without = result.of("score_without_words").value
    rules = [] if isnan(without) else [without]
    panels = (
        FigurePanel(PANELS["mass"], (0.0, 1.0)),
        FigurePanel(PANELS["score"], rounded_span([*ends(scores), *rules])),
    )
    figure = FigureData(
        name=NAME,
        kind="intervals",
        title="Trained to hide words",
        caption="For every λ: the share of attention on the hidden words, and accuracy, before and "
        "after training. Dashed: accuracy of a model trained without the words.",
        x="",
        span=(0.0, 1.0),
        classes=(),
        rows=tuple(rows),
        marks=tuple(
            {
                "panel": PANELS["score"],
                "rule": one,
                "label": f"without the words {format_two_decimals(one)}",
            }
            for one in rules
        ),
        panels=tuple(one for one in panels if any(row["panel"] == one.x for row in rows)),
    )
    return (figure,)


def _before_and_after(result: CheckResult, of: str, panel: str) -> list[FigureRow]:
    before = result.of(f"{of}_before")
    if isnan(before.value):
        return []
    found = {
        row.setting: row.estimate
        for row in result.rows(f"{of}_after")
        if row.setting and not isnan(row.estimate.value)
    }
    rows = []
    for weight in sorted(found, key=lambda one: (weight_order(one), one)):
        place = {"panel": panel, "group": weight}
        after = interval_row(found[weight], **place, role="after", before=before.value)
        first = dict.fromkeys(("value", "low", "high"), before.value)
        rows += [after, {**place, "role": "before", **first}]
    return rows
