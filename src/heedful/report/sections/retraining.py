"""What the checks found that had models made anew: seed by seed, λ by λ."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isclose, isnan
from typing import Any

import numpy as np
from jaxtyping import Float64

from heedful.core.records import CheckResult, Estimate
from heedful.numerics.stats.bootstrap import estimate_means
from heedful.report.run_records import RunRecords, sanitise_text

CHECKS = ("necessity", "seeds", "adversary", "guide", "deception", "roar", "off_manifold")
NOTHING = Estimate(float("nan"), float("nan"), float("nan"), 0)
TextValues = Float64[np.ndarray, "n"]


@dataclass(frozen=True, slots=True)
class TrainingArm:
    """One way of training: its mean with its interval, and the mean of every seed."""

    name: str
    estimate: Estimate
    seeds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class WeightResult:
    """One λ, of one start where there are several; `told` is the one the check speaks of."""

    weight: str
    start: str
    found: Mapping[str, Estimate]
    told: bool


@dataclass(frozen=True, slots=True)
class RetrainedCheck:
    """One check: its result, its settings, and what it has by seed or by λ."""

    name: str
    result: CheckResult
    settings: Mapping[str, Any]
    arms: tuple[TrainingArm, ...] = ()
    tried: tuple[WeightResult, ...] = ()

    def estimate(self, measure: str) -> Estimate:
        """An estimate of the check; one without a value where it has none."""
        return self.result.estimates.get(measure, NOTHING)

    def setting(self, name: str) -> float | None:
        """A number of the plan; None where the run has no plan, or an odd one."""
        found = self.settings.get(name)
        return float(found) if isinstance(found, int | float) else None


ARMS = {
    "necessity": {"score_trained": "own attention", "score_uniform": "uniform"},
    "seeds": {"jsd_seeds": "other seeds"},
    "guide": {
        "score_uniform": "uniform",
        "score_own": "its own",
        "score_base": "under audit",
        "score_adversary": "adversary",
    },
}
BY_WEIGHT = {"adversary": ("jsd", "tvd", "score"), "deception": ("mass_after", "score_after")}


def read_retrained_checks(records: RunRecords) -> dict[str, RetrainedCheck]:
    """By check; empty where none was run that has models made anew."""
    results, settings = records.verdict.checks, _settings(records.plan)
    return {
        name: RetrainedCheck(
            name,
            results[name],
            settings.get(name, {}),
            _arms(records, name),
            _tried(records, name),
        )
        for name in CHECKS
        if name in results
    }


def is_known(estimate: Estimate) -> bool:
    """Whether there is a value."""
    return not isnan(estimate.value)


def _settings(plan: str) -> dict[str, Any]:
    """By check; the plan's epsilon is that of every check that has none of its own."""
    try:
        whole = tomllib.loads(plan)
        shared = {"epsilon": whole["epsilon"]} if "epsilon" in whole else {}
        found = whole["settings"].items()
        return {name: {**shared, **one} for name, one in found if isinstance(one, dict)}
    except (tomllib.TOMLDecodeError, KeyError, AttributeError):
        return {}  # an older run, or no plan at all


def _arms(records: RunRecords, check: str) -> tuple[TrainingArm, ...]:
    estimates = records.verdict.checks[check].estimates
    return tuple(
        TrainingArm(name, estimates[measure], _means(records.by_setting(check, measure)))
        for measure, name in ARMS.get(check, {}).items()
        if measure in estimates and is_known(estimates[measure])
    )


def _means(by_seed: Mapping[str, TextValues]) -> tuple[float, ...]:
    means = (float(np.nanmean(one)) for one in by_seed.values() if not np.isnan(one).all())
    return tuple(means)


def _tried(records: RunRecords, check: str) -> tuple[WeightResult, ...]:
    """Every λ from the least up, start by start."""
    columns = {
        (setting, measure): values
        for measure in BY_WEIGHT.get(check, ())
        for setting, values in records.by_setting(check, measure).items()
    }
    found = _estimates(records, columns)
    settings = dict.fromkeys(setting for setting, _ in columns)
    every = [_one(records, check, setting, found) for setting in settings]
    return tuple(
        sorted(every, key=lambda one: (one.start != "scratch", one.start, weight_order(one)))
    )


def _one(
    records: RunRecords, check: str, setting: str, found: Mapping[tuple[str, str], Estimate]
) -> WeightResult:
    here = {one: found.get((setting, one), NOTHING) for one in BY_WEIGHT[check]}
    told = records.verdict.checks[check].estimates
    weight, _, start = setting.partition(", ")
    same = all(one in told and isclose(told[one].value, here[one].value) for one in here)
    return WeightResult(sanitise_text(weight), sanitise_text(start), here, same)


def weight_order(one: WeightResult) -> float:
    """The number of a λ; what is none comes last."""
    try:
        value = float(one.weight.removeprefix("λ "))
    except ValueError:
        return inf
    return inf if isnan(value) else value


def _estimates(
    records: RunRecords, columns: Mapping[tuple[str, str], TextValues]
) -> dict[tuple[str, str], Estimate]:
    longest = max(map(len, columns.values()), default=0)
    padded = (
        np.pad(one, (0, longest - len(one)), constant_values=np.nan) for one in columns.values()
    )
    named = {str(number): one for number, one in enumerate(padded)}
    level, seed = records.manifest.get("level", 0.95), records.manifest.get("seed", 0)
    found = estimate_means(named, seed=seed, level=level)
    return dict(zip(columns, found.values(), strict=True))
