"""The verdict on everything that an audit measured."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from heedful.core.records import MissingMeasure, Verdict
from heedful.pipeline.plan.plan import Plan
from heedful.pipeline.verdict.alternatives import best_alternative, find_alternatives
from heedful.pipeline.verdict.check_power import AuditSetting, powers_for
from heedful.pipeline.verdict.estimate import Bootstrap, estimate_all
from heedful.pipeline.verdict.judge import judge
from heedful.pipeline.verdict.multiverse import multiverse
from heedful.results.tables import MeasurementColumns, TextValues


def reach_verdict(
    plan: Plan,
    columns: MeasurementColumns,
    *,
    where: AuditSetting,
    labels: Sequence[str],
    missing: Mapping[str, tuple[MissingMeasure, ...]],
    lengths: TextValues | None = None,
) -> Verdict:
    """Estimate, judge, and repeat the judgement under other analysis choices."""
    bootstrap, powers = Bootstrap.of(plan), powers_for(where)
    evidence = estimate_all(plan, columns, missing=missing, labels=labels, lengths=lengths)
    instead = best_alternative(find_alternatives(columns, bootstrap))
    others = multiverse(columns, evidence, powers, bootstrap)
    return replace(judge(evidence, powers, instead), multiverse=others)
