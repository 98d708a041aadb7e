"""Run an audit in this process."""

import platform
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from itertools import islice
from json import dumps
from pathlib import Path
from typing import Any

import torch

from heedful.checks import checks
from heedful.checks.base import Check
from heedful.checks.faithfulness.off_distribution import ReferenceSample
from heedful.core.errors import DataError, RunError
from heedful.core.records import SCHEMA
from heedful.core.timing import Progress
from heedful.core.values import Example
from heedful.data.dataset import Dataset
from heedful.models.protocols import HasArchitecture, HasFingerprint, Subject
from heedful.numerics.stats.bootstrap import INTERVAL_KIND
from heedful.pipeline.audit.job import run_job
from heedful.pipeline.audit.run_lock import lock_folder
from heedful.pipeline.audit.run_store import AnyJob, Job, RunStore, make_jobs
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
from heedful.pipeline.verdict.check_power import ARCHITECTURES, UNKNOWN, AuditSetting
from heedful.pipeline.verdict.estimate import measure_dataset
from heedful.pipeline.verdict.reach_verdict import reach_verdict
from heedful.results.run_folder import MANIFEST, PLAN, VERDICT, RunFolder
from heedful.results.run_records import text_lengths

CORE_PACKAGES = ("heedful", "torch", "numpy", "scipy", "pyarrow")
TRANSFORMER_PACKAGES = ("transformers", "tokenizers")  # recorded where they are part of the model


def run_audit(
    subject: Subject,
    data: Dataset,
    plan: Plan,
    *,
    out: Path | None = None,
    training: TrainingData | None = None,
    callbacks: Callbacks = NO_CALLBACKS,
) -> Path:
    """Audit the subject on the data, job by job; jobs already done are not done again.

    Returns the folder of the run. Without `out` it is a temporary one, which the caller removes.
    """
    with _folder(out) as folder:
        _run(
            subject,
            data,
            plan.fitted(data),
            RunStore(folder),
            training=training,
            callbacks=callbacks,
        )
    return folder


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    """The folder of a run; a temporary one is removed after an error."""
    if out is not None:
        yield out
        return
    folder = Path(tempfile.mkdtemp(prefix="heedful-"))
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _run(
    subject: Subject,
    data: Dataset,
    plan: Plan,
    store: RunStore,
    *,
    training: TrainingData | None,
    callbacks: Callbacks,
) -> None:
    """Run all jobs, judge, and write everything to the store."""
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
            _require_dtype(store, before, result.summary.dtype)
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
    """Judge from the rows as they were kept, so that a resumed run ends in the same bytes."""
    columns, summary = store.columns(jobs), store.summary(jobs)
    total = sum(job.last - job.first for job in jobs if isinstance(job, Job))
    if summary.too_short == total:
        raise DataError(f"No text has {plan.min_words} words or more; nothing was audited.")
    whole = measure_dataset(plan, columns)
    store.put_dataset_measures(whole, columns)
    texts = len(columns.instances)
    verdict = reach_verdict(
        plan,
        replace(columns, values={**columns.values, **whole}),
        where=AuditSetting(power_architecture(subject), summary.words / max(1, texts), texts),
        labels=subject.labels,
        missing=summary.missing,
        lengths=text_lengths(RunFolder(store.folder).texts(), columns.instances),
    )
    return verdict.to_json()


def power_architecture(subject: Subject) -> str:
    """The architecture in the power table; unknown unless the subject declares a measured one."""
    found = subject.architecture if isinstance(subject, HasArchitecture) else UNKNOWN
    return found if found in ARCHITECTURES else UNKNOWN


def _manifest(
    store: RunStore,
    jobs: Sequence[AnyJob],
    subject: Subject,
    data: Dataset,
    plan: Plan,
    fingerprint: str | None,
) -> dict[str, Any]:
    summary = store.summary(jobs)
    return {
        "schema": SCHEMA,
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
        "dtype": summary.dtype,
        "threads": summary.threads or torch.get_num_threads(),  # 0 in jobs of older versions
        "attention_path": getattr(subject, "attention_path", "own"),
        "attention": str(getattr(subject, "scope", "the model's one attention")),
        "parity": max(summary.parity, getattr(subject, "parity", 0.0)),
        "methods": describe_methods(plan.methods),
        "level": plan.level,
        "interval": f"{plan.level:.0%} {INTERVAL_KIND}, {plan.resamples} resamples",
        "truncated": summary.truncated,
        "too_short": summary.too_short,
        "batches_halved": summary.halved,
        "checks": {name: checks.spec(name).to_dict() for name in plan.checks},
        "retrained": list(summary.retrained.values()),
        "seconds": summary.seconds,
    }


def _versions(subject: Subject) -> dict[str, str]:
    names = (
        CORE_PACKAGES
        if getattr(subject, "attention_path", "own") == "own"
        else (*CORE_PACKAGES, *TRANSFORMER_PACKAGES)
    )
    return {name: version(name) for name in names} | {"python": platform.python_version()}
