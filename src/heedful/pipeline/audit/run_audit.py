"""Run an audit in this process."""

import platform
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from itertools import islice
from json import dumps
from pathlib import Path
from typing import Any

import torch

from heedful.checks import Check, ReferenceSample, RetrainingCheck
from heedful.core.errors import DataError, RunError
from heedful.core.timing import Progress
from heedful.core.values import Example
from heedful.data.dataset import Dataset
from heedful.models.protocols import HasFingerprint, Subject
from heedful.numerics.stats.bootstrap import INTERVAL_KIND
from heedful.pipeline.audit.job import run_job
from heedful.pipeline.audit.run_lock import lock_folder
from heedful.pipeline.audit.run_store import AnyJob, DatasetJob, Job, RunStore, make_jobs
from heedful.pipeline.plan.method_settings import describe_methods
from heedful.pipeline.plan.plan import Plan
from heedful.pipeline.retrain.run_retraining import (
    NO_CALLBACKS,
    AuditInputs,
    Callbacks,
    make_dataset_jobs,
    run_retraining,
)
from heedful.pipeline.retrain.training_data import TrainingData
from heedful.pipeline.verdict.check_power import AuditSetting
from heedful.pipeline.verdict.estimate import MeasuredColumns, dataset_measures, reach_verdict
from heedful.results.run_folder import MANIFEST, PLAN, VERDICT

CORE_PACKAGES = ("heedful", "torch", "numpy", "scipy", "pyarrow")
TRANSFORMER_PACKAGES = ("transformers", "tokenizers")  # told where they are part of the model


def run_audit(
    subject: Subject,
    data: Dataset,
    plan: Plan,
    *,
    out: Path | None = None,
    training: TrainingData | None = None,
    callbacks: Callbacks = NO_CALLBACKS,
) -> Path:
    """Audit the subject on the data, job by job; jobs already done are not done again."""
    plan = plan.fitted(data)
    store = RunStore(out or Path(tempfile.mkdtemp(prefix="heedful-")))
    fingerprint = subject.fingerprint() if isinstance(subject, HasFingerprint) else None
    if fingerprint is None and (store.folder / PLAN).exists():
        raise RunError(
            f"{store.folder} holds a run already, and {subject.family} has no fingerprint() that "
            "would tell whether it is the same model. Choose another --out."
        )
    origin = {"model": fingerprint, "data": data.sha256, "split": data.split}
    origin |= {"columns": dumps(dict(data.columns), sort_keys=True)}
    if data.selection is not None:
        origin["selection"] = repr(data.selection)
    jobs: list[AnyJob] = [*make_jobs(plan, len(data), origin=origin)]
    jobs += make_dataset_jobs(plan, len(data), origin=origin, training=training)
    with lock_folder(store.folder):
        store.begin(plan, jobs)
        _run_jobs(store, jobs, subject, data, plan, callbacks.progress)
        run_retraining(
            store, jobs, AuditInputs(subject, data, plan, training, store.folder), callbacks
        )
        verdict = _write_verdict(store, jobs, plan, subject)
        manifest = _manifest(store, jobs, subject, data, plan, fingerprint)
        store.write(MANIFEST, dumps(manifest, indent=1))
        store.write(VERDICT, verdict)
    return store.folder


def _run_jobs(
    store: RunStore,
    jobs: Sequence[AnyJob],
    subject: Subject,
    data: Dataset,
    plan: Plan,
    progress: Progress,
) -> None:
    total, reference = len(data), ReferenceSample(subject, lambda: data, plan.min_words)
    parts = {name: one for name, one in plan.build_checks().items() if isinstance(one, Check)}
    own = [one for one in jobs if isinstance(one, Job)]
    before = store.dtype(own)
    for job, examples in _with_examples(own, data):
        if not store.done(job):
            result = run_job(
                subject,
                examples,
                parts,
                seed=plan.seed,
                max_batch_tokens=plan.max_batch_tokens,
                min_words=plan.min_words,
                reference=reference,
                report_done=partial(_report_progress, progress, job, total),
            )
            _require_dtype(store, before, result.beside.dtype)
            store.put(job, result, subject.labels)
        progress(job.last, total, "audit")


def _require_dtype(store: RunStore, before: str, now: str) -> None:
    """Refuse results in another precision than those that an earlier process left."""
    if before and now and before != now:
        raise RunError(
            f"{store.folder} holds measurements in {before}, and the model now computes in {now}. "
            f"Load it in {before} to continue the run, or choose another --out."
        )


def _report_progress(progress: Progress, job: Job, total: int, done: int) -> None:
    progress(job.first + done, total, "audit")


def _with_examples(jobs: Iterable[Job], data: Dataset) -> Iterator[tuple[Job, list[Example]]]:
    """Each job with its rows, read once, in order."""
    rows = iter(data)
    for job in jobs:
        yield job, list(islice(rows, job.last - job.first))


def _write_verdict(store: RunStore, jobs: Sequence[AnyJob], plan: Plan, subject: Subject) -> str:
    """Compute what needs all rows, from the rows as kept: a resumed run ends in the same bytes."""
    measured = store.measured(jobs)
    total = sum(job.last - job.first for job in jobs if isinstance(job, Job))
    beside = store.beside(jobs)
    if beside.too_short == total:
        raise DataError(f"No text has {plan.min_words} words or more; nothing was audited.")
    parts, by_seed = plan.build_checks(), {}
    for job in jobs:
        if isinstance(job, DatasetJob) and isinstance(check := parts[job.check], RetrainingCheck):
            by_seed[job.check] = store.by_seed(job, tuple(check.over_seeds))
    columns = MeasuredColumns(measured.predicted, measured.values, beside.missing, by_seed)
    whole = dataset_measures(plan, columns)
    store.put_dataset_measures(whole, measured)
    texts = len(measured.predicted)
    where = AuditSetting(power_architecture(subject), beside.words / max(1, texts), texts)
    return reach_verdict(plan, columns.with_whole(whole), subject.labels, where).to_json()


def power_architecture(subject: Subject) -> str:
    """What a subject is to the table of powers: one attention over states, or a transformer.

    Whether such an attention is asked with a question is told apart: the output is not linear then.
    """
    if getattr(subject, "reads_question", False):
        return "recurrent with a question"
    return "recurrent" if getattr(subject, "attention_path", "own") == "own" else "transformer"


def _manifest(
    store: RunStore,
    jobs: Sequence[AnyJob],
    subject: Subject,
    data: Dataset,
    plan: Plan,
    fingerprint: str | None,
) -> dict[str, Any]:
    beside = store.beside(jobs)
    return {
        "schema": 1,
        "versions": _versions(subject),
        "model": {"name": plan.model, "family": subject.family, "sha256": fingerprint},
        "data": {
            "name": data.name,
            "split": data.split,
            "sha256": data.sha256,
            "texts": len(data),
            "bad_rows": str(data.bad),
            "cleaning": data.cleaning,
            "left_out": str(data.left_out) if data.left_out.total else None,
        },
        "labels": list(subject.labels),
        "seed": plan.seed,
        "device": str(getattr(subject, "device", "cpu")),
        "dtype": beside.dtype,
        "threads": beside.threads or torch.get_num_threads(),  # 0 in jobs of older versions
        "attention_path": getattr(subject, "attention_path", "own"),
        "attention": str(getattr(subject, "scope", "the model's one attention")),
        "parity": max(beside.parity, getattr(subject, "parity", 0.0)),
        "methods": describe_methods(plan.methods),
        "level": plan.level,
        "interval": f"{plan.level:.0%} {INTERVAL_KIND}, {plan.resamples} resamples",
        "truncated": beside.truncated,
        "too_short": beside.too_short,
        "batches_halved": beside.halved,
        "retrained": list(beside.taught.values()),
        "seconds": beside.seconds,
    }


def _versions(subject: Subject) -> dict[str, str]:
    names = (
        CORE_PACKAGES
        if getattr(subject, "attention_path", "own") == "own"
        else (*CORE_PACKAGES, *TRANSFORMER_PACKAGES)
    )
    return {name: version(name) for name in names} | {"python": platform.python_version()}
