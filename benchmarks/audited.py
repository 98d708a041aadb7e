"""Audit examples in this process, without a run folder: from a subject to estimates."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from heedful.checks.base import Check
from heedful.checks.spec import Evidence
from heedful.core.values import Example
from heedful.models.protocols import Subject
from heedful.pipeline.audit.job import JobResult, run_job
from heedful.pipeline.plan.plan import Plan
from heedful.pipeline.verdict.estimate import estimate_all, measure_dataset
from heedful.results.tables import MeasurementColumns

TOKENS = 20_000


def audit_examples(
    subject: Subject,
    examples: Sequence[Example],
    plan: Plan,
    parts: Mapping[str, Check] | None = None,
) -> Evidence:
    """The estimates of the checks of a plan; `parts` are run in the place of its checks."""
    built = plan.build_checks() if parts is None else parts
    batchwise = {name: one for name, one in built.items() if isinstance(one, Check)}
    found = run_job(subject, examples, batchwise, seed=plan.seed, max_batch_tokens=TOKENS)
    columns = columns_of(found, subject.labels)
    whole = measure_dataset(plan, columns)
    columns = replace(columns, values={**columns.values, **whole})
    return estimate_all(plan, columns, missing=found.summary.missing, labels=subject.labels)


def columns_of(found: JobResult, labels: Sequence[str]) -> MeasurementColumns:
    """The values of the texts that are long enough to be measured."""
    instances = np.array(sorted(found.predicted))
    predicted, label = (
        np.array([labels[classes[n]] for n in instances.tolist()], dtype=object)
        for classes in (found.predicted, found.label)
    )
    return MeasurementColumns(
        instances, predicted, label, {one.key: one.values for one in found.columns}
    )
