"""The verdict on everything that an audit measured."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from heedful.checks.influence.names import NAME as INFLUENCE
from heedful.checks.influence.summary import InfluenceSummary
from heedful.core.records import MissingMeasure, ModelScore, TextCounts, Verdict
from heedful.pipeline.plan.plan import Plan
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
    others = multiverse(evidence, powers)
    verdict = judge(evidence, powers)
    if evidence.results.get(INFLUENCE) and evidence.results[INFLUENCE].measured:
        found = InfluenceSummary(columns, bootstrap)
        verdict = replace(verdict, flips=found.flips(), instead=found.better_method())
    return replace(
        verdict,
        multiverse=others,
        score=score_model(columns, bootstrap),
        texts=TextCounts(len(columns.instances), count_distinct(columns, bootstrap)),
    )


def count_distinct(columns: MeasurementColumns, bootstrap: Bootstrap) -> int:
    """The number of distinct texts."""
    if bootstrap.clusters is None:
        return len(columns.instances)
    return len(np.unique(bootstrap.clusters))


def score_model(columns: MeasurementColumns, bootstrap: Bootstrap) -> ModelScore | None:
    """How well the model does on the texts that have a label; None where none has."""
    labelled = columns.label.astype(bool)
    if not labelled.any():
        return None
    right = np.where(labelled, (columns.predicted == columns.label).astype(float), np.nan)
    names, counts = np.unique(columns.label[labelled].astype(str), return_counts=True)
    accuracy = bootstrap.accuracy(right)
    n_by_class = {str(name): int(count) for name, count in zip(names, counts, strict=True)}
    return ModelScore(accuracy, max(n_by_class.values()) / int(labelled.sum()), n_by_class)
