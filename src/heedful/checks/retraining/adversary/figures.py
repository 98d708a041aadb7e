"""The figure of `adversary`: how far its attention gets, and what that costs in output."""

from math import isnan
from typing import TYPE_CHECKING

import numpy as np

from heedful.core.records import CheckResult
from heedful.results.document import FigureData, FigureRow
from heedful.results.figure_data import (
    drop_empty,
    interval_row,
    rounded_span,
    seed_means,
    weight_order,
)

if TYPE_CHECKING:
    from heedful.results.run_records import RunRecords

NAME, SEEDS = "adversary", "other seeds"
LEAST = 0.1  # of either axis


def build_figures(records: "RunRecords") -> list[FigureData]:
    """Every adversary by the distance of its attention and of its output; seeds to compare."""
    rows, seeds = _adversaries(records.verdict.checks[NAME]), _seeds(records)
    epsilon = records.number_setting(NAME, "epsilon")
    heights = [row["high"] for row in rows] + [mark["value"] for mark in seeds]
    across = [row["x_high"] for row in rows] + [mark["x"] for mark in seeds]
    far, high = (rounded_span([0.0, LEAST, *some], 0.1)[1] for some in (across, heights))
    line = [{"rule": epsilon, "label": "ε"}] if epsilon is not None and epsilon <= high else []
    figure = FigureData(
        NAME,
        "lines",
        "Another attention, and what it costs",
        "Means over texts of adversaries, each with its λ and intervals. To the right attention "
        "differs more, further up the output does."
        + (" Seeds: each one's mean JSD, at the TVD of all of them." if seeds else ""),
        x="distance of attention (JSD)",
        span=(0.0, far),
        rows=rows,
        marks=[*seeds, *line],
        y="distance of output (TVD)",
        y_span=(-0.06 * high, high),  # room for the λ of points near 0
    )
    return drop_empty([figure])


def _adversaries(result: CheckResult) -> list[FigureRow]:
    """Every λ from the smallest up, start by start, from scratch first."""
    settings = {str(row.setting).partition(", ") for row in result.rows("jsd") if row.setting}
    order = sorted(settings, key=lambda one: (one[2] != "scratch", one[2], weight_order(one[0])))
    rows = []
    for weight, comma, start in order:
        setting = f"{weight}{comma}{start}"
        jsd, tvd = (result.of(name, setting=setting) for name in ("jsd", "tvd"))
        if not isnan(jsd.value) and not isnan(tvd.value):
            name = f"from {start}" if start else NAME
            across = {f"x_{end}": value for end, value in interval_row(jsd).items()}
            across |= {"class": name, "label": weight.removeprefix("λ "), "x": jsd.value}
            rows.append(interval_row(tvd, **across))
    return rows


def _seeds(records: "RunRecords") -> list[FigureRow]:
    result = records.verdict.checks.get("seeds")
    moved = records.column("seeds", "tvd_seeds")
    if result is None or np.isnan(moved).all():
        return []
    tvd = float(np.nanmean(moved))
    return [{"class": SEEDS, "x": jsd, "value": tvd} for jsd in seed_means(result, "jsd_seeds")]
