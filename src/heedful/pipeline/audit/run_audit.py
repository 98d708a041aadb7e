"""Run an audit in this process."""

import platform
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib.metadata import version
from itertools import islice
from json import dumps
from pathlib import Path
from typing import Any

import torch

from heedful.checks import checks
from heedful.checks.base import Check, DescribesCost
from heedful.checks.faithfulness.off_distribution import ReferenceSample
from heedful.core.errors import DataError, RunError
from heedful.core.files.folder_lock import lock_folder
from heedful.core.records import SCHEMA, Verdict
from heedful.data.dataset import Dataset
from heedful.models.protocols import HasArchitecture, HasFingerprint, Subject
from heedful.numerics.stats.bootstrap import INTERVAL_KIND
from heedful.pipeline.audit.job import JobSummary, run_job
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
from heedful.results.tables import MeasurementColumns

CORE_PACKAGES = ("heedful", "torch", "numpy", "scipy", "pyarrow")
MOST_NAMES = 8  # of files in a line
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
        inputs = AuditInputs(subject, data, plan.fitted(data, subject), training, folder)
        _Audit(inputs, RunStore(folder), callbacks).run()
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


@dataclass(frozen=True, eq=False)
class _Audit:
    """Runs all jobs, judges, and writes everything to the store."""

    inputs: AuditInputs
    store: RunStore
    callbacks: Callbacks

    def run(self) -> None:
        store, plan = self.store, self.inputs.plan
        if self.fingerprint is None and (store.folder / PLAN).exists():
            raise RunError(
                f"{store.folder} holds a run already, and {self.inputs.subject.family} has no "
                "fingerprint() that would tell whether it is the same model. Choose another --out."
            )
        jobs = self._jobs()
        with lock_folder(store.folder):
            store.begin(plan, jobs)
            if damaged := list(store.damaged):
                self.callbacks.warn(describe_damage(damaged))
            self._run_jobs([job for job in jobs if isinstance(job, Job)])
            run_retraining(store, jobs, self.inputs, self.callbacks)
            summary = store.summary(jobs)
            verdict = self._verdict(store.columns(jobs), summary)
            content = verdict.to_json()
            manifest = self._manifest(summary) | {"files": store.seal({VERDICT: content})}
            store.write(MANIFEST, dumps(manifest, indent=1))
            store.write(VERDICT, content)  # last: where it is, the run is finished

    @cached_property
    def fingerprint(self) -> str | None:
        """The digest of the model, if it has one."""
        subject = self.inputs.subject
        return subject.fingerprint() if isinstance(subject, HasFingerprint) else None

    def _jobs(self) -> list[AnyJob]:
        plan, data = self.inputs.plan, self.inputs.data
        origin = {"model": self.fingerprint, "data": data.sha256, "split": data.split}
        origin |= {"columns": dumps(dict(data.columns), sort_keys=True)}
        if data.selection is not None:
            origin["selection"] = repr(data.selection)
        training = self.inputs.training
        retraining = make_dataset_jobs(plan, len(data), origin=origin, training=training)
        return [*make_jobs(plan, len(data), origin=origin), *retraining]

    def _run_jobs(self, jobs: Sequence[Job]) -> None:
        subject, data, plan = self.inputs.subject, self.inputs.data, self.inputs.plan
        reference = ReferenceSample(subject, lambda: data, plan.min_words)
        parts = {name: one for name, one in plan.build_checks().items() if isinstance(one, Check)}
        for part in parts.values() if any(not self.store.done(job) for job in jobs) else ():
            if isinstance(part, DescribesCost):
                self.callbacks.announce(part.describe_cost(len(data)))
        before = self.store.dtype(jobs)
        rows = iter(data)  # read once, in order
        for job in jobs:
            examples = list(islice(rows, job.last - job.first))
            self.store.put_text_ids(job, examples)
            if not self.store.done(job):
                result = run_job(
                    subject,
                    examples,
                    parts,
                    seed=plan.seed,
                    max_batch_tokens=plan.max_batch_tokens,
                    min_words=plan.min_words,
                    reference=reference,
                    report_done=partial(self._report_progress, job.first),
                )
                self._require_dtype(before, result.summary.dtype)
                self.store.put(job, result, subject.labels)
            self._report_progress(job.last, 0)

    def _report_progress(self, first: int, done: int) -> None:
        self.callbacks.progress(first + done, len(self.inputs.data), "audit")

    def _require_dtype(self, before: str, now: str) -> None:
        """Refuse results in another precision than those that an earlier process left."""
        if before and now and before != now:
            raise RunError(
                f"{self.store.folder} holds measurements in {before}, and the model now computes "
                f"in {now}. Load it in {before} to continue the run, or choose another --out."
            )

    def _verdict(self, columns: MeasurementColumns, summary: JobSummary) -> Verdict:
        """Judge from the rows as they were kept, so that a resumed run ends in the same bytes."""
        subject, plan, texts = self.inputs.subject, self.inputs.plan, len(columns.instances)
        if summary.too_short == len(self.inputs.data):
            raise DataError(f"No text has {plan.min_words} words or more; nothing was audited.")
        whole = measure_dataset(plan, columns)
        self.store.put_dataset_measures(whole, columns)
        return reach_verdict(
            plan,
            replace(columns, values={**columns.values, **whole}),
            where=AuditSetting(power_architecture(subject), summary.words / max(1, texts), texts),
            labels=subject.labels,
            missing=summary.missing,
            lengths=text_lengths(RunFolder(self.store.folder).texts(), columns.instances),
            ids=self.store.text_ids(columns.instances),
        )

    def _manifest(self, summary: JobSummary) -> dict[str, Any]:
        subject, data, plan = self.inputs.subject, self.inputs.data, self.inputs.plan
        attention = describe_attention(subject)
        own = attention["attention_path"] == "own"
        packages = CORE_PACKAGES if own else (*CORE_PACKAGES, *TRANSFORMER_PACKAGES)
        return {
            "schema": SCHEMA,
            "versions": {name: version(name) for name in packages}
            | {"python": platform.python_version()},
            "model": {"name": plan.model, "family": subject.family, "sha256": self.fingerprint},
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
            **attention,
            "parity": max(summary.parity, attention["parity"]),
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


def describe_damage(names: Sequence[str]) -> str:
    """A line on kept files that are made again.

    >>> describe_damage(["texts/1.parquet", "plan.toml"])
    'Missing or changed since they were written, and made again: texts/1.parquet, plan.toml.'
    """
    some, more = ", ".join(names[:MOST_NAMES]), len(names) - MOST_NAMES
    rest = f" and {more} more" if more > 0 else ""
    return f"Missing or changed since they were written, and made again: {some}{rest}."


def power_architecture(subject: Subject) -> str:
    """The architecture in the power table; unknown unless the subject declares a measured one."""
    found = subject.architecture if isinstance(subject, HasArchitecture) else UNKNOWN
    return found if found in ARCHITECTURES else UNKNOWN


def describe_attention(subject: Subject) -> dict[str, Any]:
    """How the attention of a subject is read, which of its attentions it is, and the parity."""
    return {
        "attention_path": getattr(subject, "attention_path", "own"),
        "attention": str(getattr(subject, "scope", "the model's one attention")),
        "parity": getattr(subject, "parity", 0.0),
    }
