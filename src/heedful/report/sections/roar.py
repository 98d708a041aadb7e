"""What training without words found, share by share."""

import re
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float64

from heedful.core.records import Estimate
from heedful.numerics.stats.crossed_bootstrap import estimate_from_draws, resample_crossed
from heedful.report.figures.figure_data import FigureData, FigureRow
from heedful.report.sections.retraining import RetrainedCheck, is_known
from heedful.results.run_records import RunRecords, sanitise_text

PATTERN = (
    "Models are trained for texts such as these, so that what is left is no surprise to them. But "
    "a model made anew may find other ways, and what is missing may itself tell what was there."
)
SETTING = re.compile(r"share ([0-9.e+-]+), seed \d+")
RANDOM, WHOLE = "random", "whole"
TextValues = Float64[np.ndarray, "n"]
ScoreTables = Mapping[tuple[str, float], Float64[np.ndarray, "S n"]]


def list_roar_methods(found: RetrainedCheck) -> list[str]:
    """The methods that have an accuracy, the control last."""
    scores = [name for name, one in found.result.estimates.items() if is_known(one)]
    names = [name.removeprefix("score_") for name in scores if name.startswith("score_")]
    return [sanitise_text(name) for name in names if name != WHOLE]


def build_roar_curves(records: RunRecords, found: RetrainedCheck) -> FigureData:
    """Accuracy by the share of the words that went, for each method and the control."""
    estimates = _estimates(records, _tables(records, list_roar_methods(found)))
    rows: list[FigureRow] = [
        {"method": name, "share": share, "value": one.value, "low": one.low, "high": one.high}
        for (name, share), one in estimates.items()
    ]
    whole = found.estimate(f"score_{WHOLE}")
    marks = [{"whole": whole.value}] if is_known(whole) and rows else []
    ends = [row[end] for row in rows for end in ("low", "high")] + [m["whole"] for m in marks]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    return FigureData(
        name="roar",
        kind="curves",
        title="Trained without the words",
        caption="Accuracy of models that never had the words which a method ranks highest, with "
        "intervals over seeds and texts. Below random: what went carried more than words at "
        "random do. Dashed: models of whole texts.",
        x="share of the words that went",
        span=(float(np.floor(10 * low) / 10), float(np.ceil(10 * high) / 10)),
        classes=tuple(dict.fromkeys(row["method"] for row in rows)),
        rows=tuple(rows),
        marks=tuple(marks),
    )


def _tables(records: RunRecords, names: list[str]) -> ScoreTables:
    """For each method and share the texts' scores, a row for each seed."""
    found: dict[tuple[str, float], list[TextValues]] = {}
    measures = [f"score_{name}" for name in names]
    for measure, by_setting in records.by_every_setting("roar", measures).items():
        for setting, values in by_setting.items():
            if one := SETTING.fullmatch(setting):
                place = measure.removeprefix("score_"), float(one[1])
                found.setdefault(place, []).append(values)
    return {place: np.stack(rows) for place, rows in sorted(found.items(), key=lambda one: one[0])}


def _estimates(records: RunRecords, tables: ScoreTables) -> dict[tuple[str, float], Estimate]:
    if not tables:
        return {}
    level, seed = records.manifest.get("level", 0.95), records.manifest.get("seed", 0)
    named = {f"{name} {share:g}": one for (name, share), one in tables.items()}
    draws = resample_crossed(named, seed=seed)
    return {
        place: estimate_from_draws(float(one.mean()), draw, n=one.shape[1], level=level)
        for (place, one), draw in zip(tables.items(), draws.values(), strict=True)
    }
