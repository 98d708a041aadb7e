"""The results of checks that retrain: by seed and by λ."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isclose, isnan
from typing import Any

from heedful.core.records import CheckResult, Estimate
from heedful.results.run_records import RunRecords, sanitise_text

CHECKS = ("necessity", "seeds", "adversary", "guide", "deception", "roar", "off_manifold")


@dataclass(frozen=True, slots=True)
class TrainingArm:
    """One way of training: its mean with its interval, and the mean of every seed."""

    name: str
    estimate: Estimate
    seeds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class WeightResult:
    """One λ, of one start where there are several; `reported` is the one the check reports."""

    weight: str
    start: str
    found: Mapping[str, Estimate]
    reported: bool


@dataclass(frozen=True, slots=True)
class RetrainedCheck:
    """One check: its result, its settings, and its estimates by seed or by λ."""

    name: str
    result: CheckResult
    settings: Mapping[str, Any]
    arms: tuple[TrainingArm, ...] = ()
    tried: tuple[WeightResult, ...] = ()

    def estimate(self, measure: str) -> Estimate:
        """An estimate of the check; one without a value where it has none."""
        return self.result.of(measure)

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
    """By check; empty where no check of the run retrains."""
    results, settings = records.verdict.checks, _settings(records.plan)
    return {
        name: RetrainedCheck(
            name,
            results[name],
            settings.get(name, {}),
            _arms(results[name], name),
            _tried(results[name], name),
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


def _arms(result: CheckResult, check: str) -> tuple[TrainingArm, ...]:
    return tuple(
        TrainingArm(name, result.of(measure), _seed_means(result, measure))
        for measure, name in ARMS.get(check, {}).items()
        if is_known(result.of(measure))
    )


def _seed_means(result: CheckResult, measure: str) -> tuple[float, ...]:
    means = (row.estimate.value for row in result.rows(measure) if row.seed is not None)
    return tuple(value for value in means if not isnan(value))


def _tried(result: CheckResult, check: str) -> tuple[WeightResult, ...]:
    """Every λ from the smallest up, start by start."""
    measures = BY_WEIGHT.get(check, ())
    settings = dict.fromkeys(
        row.setting for name in measures for row in result.rows(name) if row.setting
    )
    every = [_weight_result(result, measures, str(setting)) for setting in settings]
    return tuple(
        sorted(every, key=lambda one: (one.start != "scratch", one.start, weight_order(one)))
    )


def _weight_result(result: CheckResult, measures: tuple[str, ...], setting: str) -> WeightResult:
    here = {name: result.of(name, setting=setting) for name in measures}
    weight, _, start = setting.partition(", ")
    same = all(isclose(result.of(name).value, one.value) for name, one in here.items())
    return WeightResult(sanitise_text(weight), sanitise_text(start), here, same)


def weight_order(one: WeightResult) -> float:
    """The number of a λ; infinite where it is not a number."""
    try:
        value = float(one.weight.removeprefix("λ "))
    except ValueError:
        return inf
    return inf if isnan(value) else value
