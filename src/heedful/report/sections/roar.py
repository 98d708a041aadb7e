"""Accuracy of models trained without the top-ranked words, by share of the words."""

from math import isnan

import numpy as np

from heedful.checks.retraining.section_parts import is_known
from heedful.core.records import EstimateRow
from heedful.report.sections.retraining import RetrainedCheck
from heedful.results.document import FigureData, FigureRow
from heedful.results.run_records import sanitise_text

SHARE = "share "


def build_roar_curves(found: RetrainedCheck) -> FigureData:
    """Accuracy by the share of words removed, for each method and the control."""
    shares = [
        row
        for row in found.result.rows("score")
        if row.setting
        and row.setting.startswith(SHARE)
        and row.seed is None
        and is_known(row.estimate)
    ]
    rows = [_point(row) for row in sorted(shares, key=lambda row: (str(row.method), _share(row)))]
    whole = found.estimate("score_whole")
    marks = [{"whole": whole.value}] if is_known(whole) and rows else []
    ends = [row[end] for row in rows for end in ("low", "high")] + [m["whole"] for m in marks]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    return FigureData(
        name="roar",
        kind="curves",
        title="Trained without the words",
        caption="Accuracy of models trained without the words that a method ranks highest, with "
        "intervals over seeds and texts. Below random: the removed words carried more than random "
        "words do. Dashed: models trained on whole texts.",
        x="share of the words removed",
        span=(float(np.floor(10 * low) / 10), float(np.ceil(10 * high) / 10)),
        classes=tuple(dict.fromkeys(row["method"] for row in rows)),
        rows=tuple(rows),
        marks=tuple(marks),
    )


def _share(row: EstimateRow) -> float:
    return float(str(row.setting).removeprefix(SHARE))


def _point(row: EstimateRow) -> FigureRow:
    value = row.estimate.value
    low, high = (value if isnan(end) else end for end in (row.estimate.low, row.estimate.high))
    values = {"value": value, "low": low, "high": high}
    return {"method": sanitise_text(str(row.method)), "share": _share(row), **values}
