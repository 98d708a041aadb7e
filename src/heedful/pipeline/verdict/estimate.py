"""From per-instance columns to estimates with intervals, and from those to the verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.checks import Check, HasSignificanceTests, NeedsAllTexts, RetrainingCheck
from heedful.checks.attention.agreement.check import Agreement
from heedful.core.records import CheckResult, Estimate, Verdict
from heedful.numerics.stats.bootstrap import Place, estimate_means, estimate_place
from heedful.pipeline.plan.plan import Plan
from heedful.pipeline.verdict.alternatives import Alternative, find_alternatives
from heedful.pipeline.verdict.check_power import AuditSetting, powers_for
from heedful.pipeline.verdict.evidence import Evidence
from heedful.pipeline.verdict.judge import judge
from heedful.pipeline.verdict.multiverse import multiverse
from heedful.pipeline.verdict.seed_estimates import estimate_drift, estimate_over_seeds

Column = NDArray[np.float64]
Table = NDArray[np.float64]  # a row for each seed, a column for each instance


@dataclass(frozen=True)
class MeasuredColumns:
    """All instances' values by check and measure, and the class predicted for each.

    `by_seed` holds what was measured under several seeds, one row each.
    """

    predicted: NDArray[Any]  # class names
    values: Mapping[str, Mapping[str, Column]]
    missing: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    by_seed: Mapping[str, Mapping[str, Table]] = field(default_factory=dict)

    def with_whole(self, whole: Mapping[str, Mapping[str, Column]]) -> "MeasuredColumns":
        """These columns and the measures that needed all of them."""
        values = {name: {**one, **whole.get(name, {})} for name, one in self.values.items()}
        return replace(self, values=values)


def dataset_measures(plan: Plan, columns: MeasuredColumns) -> dict[str, dict[str, Column]]:
    """The measures that could only be computed with all instances at hand."""
    return {
        name: check.whole(columns.values[name])
        for name, check in plan.build_checks().items()
        if isinstance(check, NeedsAllTexts)
    }


def reach_verdict(
    plan: Plan, columns: MeasuredColumns, labels: Sequence[str], where: AuditSetting
) -> Verdict:
    """The verdict on all that was measured, and what it would be under other choices."""
    evidence, known = estimate_all(plan, columns, labels), powers_for(where)
    others = multiverse(plan, columns.values, columns.predicted, evidence, known)
    return replace(judge(evidence, known), multiverse=others)


def estimate_all(plan: Plan, columns: MeasuredColumns, labels: Sequence[str]) -> Evidence:
    """All that was measured as estimates with intervals, for the rules to look at."""
    parts = plan.build_checks()
    estimated = {
        name: _estimate(plan, check, name, columns, labels) for name, check in parts.items()
    }
    return Evidence(
        estimated,
        parts,
        _place(plan, columns.values.get("agreement", {})),
        plan.epsilon,
        _rivals(plan, parts, columns),
        estimate_drift(plan, columns.values.get("seeds", {}), columns.by_seed.get("seeds", {})),
        {name: found for name in PLACED if (found := _placed(plan, columns.values, name))},
    )


def _estimate(
    plan: Plan,
    check: Check | RetrainingCheck,
    name: str,
    columns: MeasuredColumns,
    labels: Sequence[str],
) -> CheckResult:
    measured, reasons = columns.values.get(name, {}), columns.missing.get(name, {})
    promised = (*check.measures, *check.head_measures)
    chosen = {measure: measured[measure] for measure in promised if measure in measured}
    # a reason is told where no text has a value; where some have, the others are counted
    nowhere = {m for m, one in chosen.items() if m in reasons and np.isnan(one).all()}
    chosen = {m: one for m, one in chosen.items() if m not in nowhere}
    tables = columns.by_seed.get(name, {})
    by_class = {}
    for label in labels:
        here = columns.predicted == label
        if here.any() and chosen:
            by_class[label] = _means(plan, {m: one[here] for m, one in chosen.items()})
            of_class = {measure: table[:, here] for measure, table in tables.items()}
            by_class[label] |= estimate_over_seeds(plan, check, of_class, chosen, here)
    undefined = {m: int(np.isnan(one).sum()) for m, one in chosen.items() if np.isnan(one).any()}
    return CheckResult(
        "undecided",
        "",
        _means(plan, chosen)
        | estimate_over_seeds(plan, check, tables, chosen)
        | _tested(plan, check, measured),
        by_class,
        undefined,
        {m: reason for m, reason in reasons.items() if m not in chosen},
    )


def _tested(
    plan: Plan, check: Check | RetrainingCheck, measured: Mapping[str, Column]
) -> dict[str, Estimate]:
    """The p-values of a check that tests; they have no interval."""
    if not isinstance(check, HasSignificanceTests) or not measured:
        return {}
    nan, texts = float("nan"), len(next(iter(measured.values())))
    found = check.tested(measured, resamples=plan.resamples, seed=plan.seed)
    return {name: Estimate(p, nan, nan, texts) for name, p in found.items() if p == p}


def _means(plan: Plan, columns: Mapping[str, Column]) -> dict[str, Estimate]:
    return estimate_means(columns, resamples=plan.resamples, seed=plan.seed, level=plan.level)


def _place(plan: Plan, agreement: Mapping[str, Column]) -> Place | None:
    """Attention between its shuffled control and the gradient, in agreement with leave-one-out."""
    if not agreement:
        return None
    return estimate_place(
        agreement["tau_leave_one_out"],
        agreement["tau_shuffled_leave_one_out"],
        agreement["tau_gradient_leave_one_out"],
        resamples=plan.resamples,
        seed=plan.seed,
        level=plan.level,
    )


PLACED = {  # attention's figure, that of chance, and the best there is
    "erasure": tuple(f"fraction_to_flip_{one}" for one in ("attention", "random", "optimal")),
    "faithfulness": tuple(
        f"comprehensiveness_{one}" for one in ("attention", "random", "leave_one_out")
    ),
}


def _placed(plan: Plan, values: Mapping[str, Mapping[str, Column]], check: str) -> Place | None:
    """Attention between chance (0) and the best (1), by the figures of another check."""
    measured, names = values.get(check, {}), PLACED[check]
    if any(name not in measured for name in names):
        return None
    # a share of the words to be removed is the better the lower, a loss the better the higher
    sign = -1.0 if check == "erasure" else 1.0
    own, chance, best = (sign * measured[name] for name in names)
    return estimate_place(
        own, chance, best, resamples=plan.resamples, seed=plan.seed, level=plan.level
    )


def _rivals(
    plan: Plan, parts: Mapping[str, Check | RetrainingCheck], columns: MeasuredColumns
) -> tuple[Alternative, ...]:
    """The methods that were tried beside attention, the gradient always."""
    check = parts.get("agreement")
    if not isinstance(check, Agreement):
        return ()
    tried = {"one_hot_gradient": "tau_gradient_leave_one_out"} | check.of_methods
    return find_alternatives(plan, tried, columns.values["agreement"])
