"""The results of checks that retrain, as their figures read them."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any

from heedful.checks.retraining.section_parts import WeightResult, is_known, read_weights
from heedful.core.records import CheckResult, Estimate
from heedful.results.run_records import RunRecords

CHECKS = ("necessity", "seeds", "adversary", "guide", "deception", "roar", "off_manifold")


@dataclass(frozen=True, slots=True)
class TrainingArm:
    """One way of training: its mean with its interval, and the mean of every seed."""

    name: str
    estimate: Estimate
    seeds: tuple[float, ...]


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
    results = records.verdict.checks
    return {
        name: RetrainedCheck(
            name,
            results[name],
            records.settings.get(name, {}),
            _arms(results[name], name),
            read_weights(results[name], BY_WEIGHT.get(name, ())),
        )
        for name in CHECKS
        if name in results
    }


def _arms(result: CheckResult, check: str) -> tuple[TrainingArm, ...]:
    return tuple(
        TrainingArm(name, result.of(measure), _seed_means(result, measure))
        for measure, name in ARMS.get(check, {}).items()
        if is_known(result.of(measure))
    )


def _seed_means(result: CheckResult, measure: str) -> tuple[float, ...]:
    means = (row.estimate.value for row in result.rows(measure) if row.seed is not None)
    return tuple(value for value in means if not isnan(value))
