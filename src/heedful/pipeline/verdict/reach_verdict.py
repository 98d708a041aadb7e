"""The verdict on everything that an audit measured."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from heedful.checks.influence.names import LEAST_WORDS
from heedful.checks.influence.names import NAME as INFLUENCE
from heedful.checks.influence.summary import InfluenceSummary
from heedful.core.records import MeasureKey, MissingMeasure, ModelScore, TextCounts, Verdict
from heedful.pipeline.plan.plan import Plan
from heedful.pipeline.verdict.check_power import AuditSetting, powers_for
from heedful.pipeline.verdict.estimate import Bootstrap, estimate_all
from heedful.pipeline.verdict.judge import judge
from heedful.pipeline.verdict.multiverse import multiverse
from heedful.results.tables import MeasurementColumns, TextValues
from heedful.results.text_ids import TextIds

FEW_UNITS = 10  # distinct texts or clusters; resamples of fewer say little of how others vary


def reach_verdict(
    plan: Plan,
    columns: MeasurementColumns,
    *,
    where: AuditSetting,
    labels: Sequence[str],
    missing: Mapping[str, tuple[MissingMeasure, ...]],
    lengths: TextValues | None = None,
    ids: TextIds | None = None,
) -> Verdict:
    """Estimate, judge, and repeat the judgement under other analysis choices.

    Arguments as for `estimate_all`, and:

    Args:
        where: What kind of subject is audited, on what texts.
        ids: Which texts are copies, and which are drawn together. Without, each is drawn alone.
    """
    bootstrap, powers = Bootstrap.of(plan, ids), powers_for(where)
    evidence = estimate_all(
        plan, columns, missing=missing, labels=labels, lengths=lengths, bootstrap=bootstrap
    )
    others = multiverse(evidence, powers)
    verdict = judge(evidence, powers)
    if evidence.results.get(INFLUENCE) and evidence.results[INFLUENCE].measured:
        found = InfluenceSummary(columns, bootstrap)
        verdict = replace(verdict, flips=found.flips(), instead=found.better_method())
    return replace(
        verdict,
        multiverse=others,
        score=score_model(columns, bootstrap),
        texts=replace(
            count_texts(len(columns.instances), ids), not_judged=count_not_judged(columns)
        ),
    )


def count_texts(audited: int, ids: TextIds | None) -> TextCounts:
    """How many texts were audited, how many are distinct, and how many clusters they form."""
    if ids is None:
        return TextCounts(audited, audited)
    units, what = ids.clusters, "clusters"
    if units is None:
        units, what = ids.distinct, "distinct texts"
    note = None
    if units < FEW_UNITS:
        noun = what if units != 1 else what.removesuffix("s")
        note = (
            f"The texts form only {units} {noun}: the intervals cannot be trusted, since at least "
            f"{FEW_UNITS} are needed to see how others would vary."
        )
    return TextCounts(audited, ids.distinct, clusters=ids.clusters, note=note)


def count_not_judged(columns: MeasurementColumns) -> int:
    """How many texts have fewer words than a ranking of them is judged by."""
    items = columns.column(INFLUENCE, "items")
    return int((items < LEAST_WORDS).sum())


def score_model(columns: MeasurementColumns, bootstrap: Bootstrap) -> ModelScore | None:
    """How well the model does on the texts that have a label; None where none has."""
    labelled = columns.label.astype(bool)
    if not labelled.any():
        return None
    right = np.where(labelled, (columns.predicted == columns.label).astype(float), np.nan)
    names, counts = np.unique(columns.label[labelled].astype(str), return_counts=True)
    key = MeasureKey("", "accuracy")
    accuracy = bootstrap.means({key: right}, frozenset({key.measure}))[key]
    n_by_class = {str(name): int(count) for name, count in zip(names, counts, strict=True)}
    return ModelScore(accuracy, max(n_by_class.values()) / int(labelled.sum()), n_by_class)
