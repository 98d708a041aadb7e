"""The figure of `adversary`: how far its attention gets, and what that costs in output."""

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING

import numpy as np

from heedful.core.records import CheckResult
from heedful.results.document import FigureData, FigureRow
from heedful.results.figure_data import interval_row, rounded_span, seed_means, weight_order

if TYPE_CHECKING:
    from heedful.results.run_records import RunRecords

NAME, SEEDS = "adversary", "other seeds"
FARTHEST = 0.7  # JSD ends a little below


def build_figures(records: "RunRecords") -> Sequence[FigureData]:
    """Every adversary by the distance of its attention and of its output; seeds to compare."""
    rows = _adversaries(records.verdict.checks[NAME])
    if not rows:
        return ()
    seeds = _seeds(records)
    epsilon = records.number_setting(NAME, "epsilon")
    heights = [0.0, 0.1, *(row["high"] for row in rows), *(mark["value"] for mark in seeds)]
    high = rounded_span(heights, 0.1)[1]
    line = [{"rule": epsilon, "label": "ε"}] if epsilon is not None and epsilon <= high else []
    figure = FigureData(
        name=NAME,
        kind="lines",
        title="Another attention, and what it costs",
        caption="Means over texts of adversaries, each with its λ and intervals. To the right "
        "attention differs more, further up the output does."
        + (" Seeds: each one's mean JSD, at the TVD of all of them." if seeds else ""),
        x="distance of attention (JSD)",
        span=(0.0, FARTHEST),
        classes=(*dict.fromkeys(row["class"] for row in rows), *[SEEDS][: len(seeds)]),
        rows=tuple(rows),
        marks=(*seeds, *line),
        y="distance of output (TVD)",
        y_span=(-0.06 * high, high),  # room for the λ of points near 0
    )
    return (figure,)


def _adversaries(result: CheckResult) -> list[FigureRow]:
    """Every λ from the smallest up, start by start, from scratch first."""
    settings = {row.setting for row in result.rows("jsd") if row.setting}
    tried = [(*setting.partition(", ")[::2], setting) for setting in settings]
    tried.sort(key=lambda one: (one[1] != "scratch", one[1], weight_order(one[0]), one[0]))
    rows = []
    for weight, start, setting in tried:
        jsd, tvd = (result.of(name, setting=setting) for name in ("jsd", "tvd"))
        if isnan(jsd.value) or isnan(tvd.value):
            continue
        across = {f"x_{end}": value for end, value in interval_row(jsd).items()}
        name = f"from {start}" if start else NAME
        label = weight.removeprefix("λ ")
        row = {"class": name, "label": label, "x": across.pop("x_value"), **across}
        rows.append(interval_row(tvd, **row))
    return rows


def _seeds(records: "RunRecords") -> list[FigureRow]:
    result = records.verdict.checks.get("seeds")
    moved = records.column("seeds", "tvd_seeds")
    if result is None or np.isnan(moved).all():
        return []
    tvd = float(np.nanmean(moved))
    return [{"class": SEEDS, "x": jsd, "value": tvd} for jsd in seed_means(result, "jsd_seeds")]
