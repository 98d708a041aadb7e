"""What `adversary` asks, measures, describes and shows."""

from math import isnan

import numpy as np

from heedful.checks.retraining.section_parts import (
    Content,
    estimate_row,
    frame_section,
    weight_rows,
    weight_settings,
)
from heedful.checks.spec import JSD, CheckSpec, Measure, describe_only
from heedful.core.records import NO_ESTIMATE, CheckResult
from heedful.results.document import FigureData, FigureRow, Table
from heedful.results.figure_data import drop_empty, interval_row, rounded_span, seed_means
from heedful.results.run_records import RunRecords

NAME = "adversary"
LEAST = 0.1  # of either axis of the figure
MEASURES = ("jsd", "tvd", "score")
SCALES = (
    "TVD is ½ Σ|Δp| between the adversary's output and the model's, from 0 to 1; the published "
    "code halves it once more. The training loss is TVD − λ·KL(own ‖ base) of the attentions, KL "
    "from the adversary's own to the model's."
)
REVERSED = SCALES.replace("KL(own ‖ base)", "KL(base ‖ own)").replace(
    "from the adversary's own to the model's", "from the model's to the adversary's"
)


def _describe(result: CheckResult) -> str:
    return (
        f"A model trained to attend elsewhere has its attention {result.of('jsd')} away in JSD, "
        f"its outputs {result.of('tvd')} away and accuracy {result.of('score').value:.3f} (audited "
        f"model: {result.of('score_base').value:.3f}); a model merely trained with another seed "
        f"has its attention {result.of('jsd_another_seed')} away and its outputs "
        f"{result.of('tvd_another_seed')} away."
    )


def build_figures(records: RunRecords) -> list[FigureData]:
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
    rows = []
    for setting, weight, start in weight_settings(result, "jsd"):
        jsd, tvd = (result.of(name, setting=setting) for name in ("jsd", "tvd"))
        if not isnan(jsd.value) and not isnan(tvd.value):
            name = f"from {start}" if start else NAME
            across = {f"x_{end}": value for end, value in interval_row(jsd).items()}
            across |= {"class": name, "label": weight.removeprefix("λ "), "x": jsd.value}
            rows.append(interval_row(tvd, **across))
    return rows


def _seeds(records: RunRecords) -> list[FigureRow]:
    result = records.verdict.checks.get("seeds")
    moved = records.column("seeds", "tvd_seeds")
    if result is None or np.isnan(moved).all():
        return []
    tvd = float(np.nanmean(moved))
    means = seed_means(result, "jsd_seeds")
    return [{"class": "other seeds", "x": jsd, "value": tvd} for jsd in means]


def _section_content(records: RunRecords, result: CheckResult) -> Content:
    base = estimate_row("the model under audit", NO_ESTIMATE, NO_ESTIMATE, result.of("score_base"))
    rows = (*weight_rows(result, *MEASURES), base)
    scales = REVERSED if records.settings(NAME).get("reverse") is True else SCALES
    return (scales,), (Table(("model", "JSD", "TVD", "accuracy"), rows),)


SPEC = CheckSpec(
    NAME,
    "Can a whole model learn a different attention with the same outputs?",
    (
        Measure("tvd", "change of output of the adversary", "up", by=("setting",)),
        Measure(
            "jsd", "distance of the adversary's attention, JSD", "down", range=JSD, by=("setting",)
        ),
        Measure("score", "accuracy of the adversary", by=("setting",)),
        Measure("score_base", "accuracy of the audited model", role="reference"),
        Measure("tvd_another_seed", "change of output, another seed", role="control"),
        Measure("jsd_another_seed", "distance of another seed's, JSD", role="control", range=JSD),
    ),
    "heedful.checks.retraining.adversary.check:ModelAdversary",
    claim="exclusive",
    source="Wiegreffe & Pinter, 2019, section 4",
    leading=("jsd", "tvd"),
    rules=describe_only(NAME, _describe),
    quick={"weights": 2, "epochs": 24, "patience": 6},
    retrains=True,
    figures=build_figures,
    sections=frame_section(NAME, _section_content),
)
