"""The part of an audit that has models made anew: what is to be made, then the checks that look."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch

from heedful.checks import RetrainingCheck, RetrainingContext, mark_hidden_words
from heedful.core.errors import ConfigError, DataError, ModelError, NotApplicable
from heedful.core.timing import Clock, Progress, no_progress
from heedful.data.dataset import Dataset
from heedful.models.protocols import HasFingerprint, Subject
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.pipeline.audit.job import JobResult, JobSummary, to_measure_columns
from heedful.pipeline.audit.run_lock import lock_folder
from heedful.pipeline.audit.run_store import AnyJob, DatasetJob, RunStore
from heedful.pipeline.plan.plan import Plan
from heedful.pipeline.plan.retraining_settings import RetrainingSettings
from heedful.pipeline.retrain.announcement import describe_epoch_cost, describe_retraining_cost
from heedful.pipeline.retrain.process_pool import (
    Worker,
    available_cores,
    train_in_process,
    train_in_workers,
)
from heedful.pipeline.retrain.training_data import (
    TrainingData,
    read_finetuning_recipe,
    read_history,
    retraining_checks,
    stat_recipe_files,
)
from heedful.pipeline.retrain.worker_input import new_variant_store, write_worker_input
from heedful.training.fit import split_dev
from heedful.training.variants.context import EncodedTexts, read_recipe
from heedful.training.variants.variant_store import VariantStore, dependency_order
from heedful.training.variants.variants import Variant

RETRAINED_FOLDER = "retrained"
REFUSALS = (NotApplicable, ConfigError, DataError, ModelError)
"""Reasons why one model cannot be made; the checks that do not need it go on."""


@dataclass(frozen=True)
class Callbacks:
    """Whom an audit tells what: how far it is, and what it is about to do."""

    progress: Progress = no_progress
    announce: Callable[[str], None] = lambda _: None


NO_CALLBACKS = Callbacks()


@dataclass(frozen=True, eq=False)
class AuditInputs:
    """What is audited, on what, how, and what its like is trained on."""

    subject: Subject
    data: Dataset
    plan: Plan
    training: TrainingData | None
    folder: Path  # of the run


def make_dataset_jobs(
    plan: Plan, total: int, *, origin: Mapping[str, Any], training: TrainingData | None
) -> list[DatasetJob]:
    """A job for each check that looks at all texts."""
    found = []
    for name in retraining_checks(plan):
        settled = {
            "settings": dict(plan.settings[name]),
            "retraining": RetrainingSettings.of(plan.retraining).binding(),
            "training": None if training is None else training.origin(),
            "seed": plan.seed,
            "min_words": plan.min_words,
            "texts": total,
            **origin,
        }
        content = json.dumps(settled, sort_keys=True)
        found.append(DatasetJob(name, blake2b(content.encode(), digest_size=10).hexdigest()))
    return found


def run_retraining(
    store: RunStore, jobs: Sequence[AnyJob], audit: AuditInputs, callbacks: Callbacks
) -> None:
    """Have made what the checks ask for, and let them look; what is done is not done again."""
    todo = [job for job in jobs if isinstance(job, DatasetJob) and not store.done(job)]
    if not todo:
        return
    plan, checks, labels = audit.plan, retraining_checks(audit.plan), audit.subject.labels
    try:
        variant_store, base_seed = _open_variant_store(audit)
    except NotApplicable as reason:
        for job in todo:
            store.put_dataset_job(
                job, _refused_result(job.check, checks[job.check], str(reason)), labels
            )
        return
    texts = EncodedTexts(audit.subject, list(audit.data), plan.min_words, mark_hidden_words)
    trial = RetrainingContext(
        audit.subject,
        texts,
        variant_store.dev,
        variant_store.trained,
        plan.seed,
        plan.max_batch_tokens,
        base_seed=base_seed,
    )
    asked, refused = _requested_variants({job.check: checks[job.check] for job in todo}, trial)
    impossible = _train_missing(
        variant_store,
        dependency_order([one for many in asked.values() for one in many]),
        audit,
        callbacks,
    )
    for name, lessons in asked.items():
        if why := next((impossible[one] for one in lessons if one in impossible), None):
            refused[name] = why
    for job in todo:
        check = checks[job.check]
        if job.check in refused:
            result = _refused_result(job.check, check, refused[job.check])
        else:
            callbacks.progress(0, 1, f"looking at what was made: {job.check}")
            result = _run_check(job.check, check, trial, asked[job.check])
        store.put_dataset_job(job, result, labels)


def _requested_variants(
    checks: Mapping[str, RetrainingCheck], trial: RetrainingContext
) -> tuple[dict[str, Sequence[Variant]], dict[str, str]]:
    """What each check wants made, or why it cannot be put."""
    asked: dict[str, Sequence[Variant]] = {}
    refused: dict[str, str] = {}
    for name, check in checks.items():
        try:
            asked[name] = check.lessons(trial)
        except NotApplicable as reason:
            refused[name] = str(reason)
    return asked, refused


def _open_variant_store(audit: AuditInputs) -> tuple[VariantStore, int]:
    """Where this base model's like is made, and its own seed; NotApplicable says why it cannot be.

    What the base model's recipe holds, and the files it names, is part of what all depends on.
    """
    training, subject = audit.training, audit.subject
    chosen = RetrainingSettings.of(audit.plan.retraining)
    if isinstance(subject, RecurrentSubject):
        recipe, tuning = asdict(read_recipe(subject)), dict[str, Any]()
    else:
        recipe = tuning = read_finetuning_recipe(subject, audit.plan)
    if training is None:
        raise NotApplicable(
            "the data has no training split, and none was given: models cannot be made anew"
        )
    training.require_disjoint(audit.data)
    assert isinstance(subject, HasFingerprint)  # noqa: S101 - both kinds are
    origin = {
        "model": subject.fingerprint(),
        "recipe": recipe,
        "files": stat_recipe_files(recipe),
        **training.origin(),
    }
    texts = split_dev(training.train, training.dev)
    where = Path(chosen.folder) if chosen.folder else audit.folder / RETRAINED_FOLDER
    least = recipe.get("min_words", 1)
    variant_store = new_variant_store(
        where, subject, texts, min_words=least, origin=origin, tuning=tuning
    )
    return variant_store, int(recipe.get("seed", 0))


def _train_missing(
    variant_store: VariantStore,
    lessons: Sequence[Variant],
    audit: AuditInputs,
    callbacks: Callbacks,
) -> dict[Variant, str]:
    """Make what is not there yet, on as many processes as asked for."""
    if all(map(variant_store.done, lessons)):
        return {}
    if variant_store.folder.resolve() == audit.folder.resolve():
        raise ConfigError(
            f"--retrained and --out are both {variant_store.folder}; they must differ."
        )
    with lock_folder(variant_store.folder, "--retrained"):
        todo = [
            one for one in lessons if not variant_store.done(one)
        ]  # another may have been quicker
        wanted = RetrainingSettings.of(audit.plan.retraining).workers or available_cores()
        there, history = len(lessons) - len(todo), read_history(variant_store.base, audit.plan)
        callbacks.announce(
            describe_retraining_cost(variant_store, todo, there, wanted)
            + describe_epoch_cost(history)
        )
        # what takes longest first, so that nobody waits for it at the end
        todo.sort(key=lambda one: -one.pace.epochs)
        return _train_variants(
            variant_store, todo, min(wanted, len(todo)), audit.plan, callbacks.progress
        )


def _train_variants(
    variant_store: VariantStore,
    todo: Sequence[Variant],
    wanted: int,
    plan: Plan,
    progress: Progress,
) -> dict[Variant, str]:
    """On processes where there is more than one and they can open the room; else here."""
    worker_input = (
        write_worker_input(variant_store, model=plan.model, choices=plan.subject)
        if wanted > 1
        else None
    )
    if worker_input is None:
        return train_in_process(
            dependency_order(todo), partial(_train_here, variant_store), progress
        )
    workers = [Worker(worker_input) for _ in range(wanted)]
    try:
        return train_in_workers(todo, workers, progress)
    finally:
        for worker in workers:
            worker.end()


def _train_here(
    variant_store: VariantStore, variant: Variant, report_progress: Callable[[str], None]
) -> str | None:
    """A lesson in this process."""
    try:
        variant_store.train_variant(variant, lambda done, total, words: report_progress(words))  # noqa: ARG005
    except REFUSALS as reason:
        return str(reason)
    return None


def _refused_result(name: str, check: RetrainingCheck, reason: str) -> JobResult:
    """A check that could not be put."""
    missing = {name: dict.fromkeys(check.measures, reason)}
    return JobResult((), {}, {}, JobSummary(missing))


def _run_check(
    name: str, check: RetrainingCheck, trial: RetrainingContext, lessons: Sequence[Variant]
) -> JobResult:
    """What a check finds, now that all is there."""
    clock, encoded = Clock(), trial.texts.encoded
    try:
        with clock(name), torch.no_grad():
            findings = check.examine(trial)
    except NotApplicable as reason:
        return _refused_result(name, check, str(reason))
    instances = [one.index for one in encoded]
    classes = trial.texts.base_predictions.probabilities.argmax(-1).tolist()
    taught = {
        one.record["key"]: one.record for one in map(trial.trained, dependency_order(lessons))
    }
    return JobResult(
        tuple(to_measure_columns(name, instances, findings.measurements)),
        dict(zip(instances, classes, strict=True)),
        {one.index: one.label for one in encoded},
        JobSummary({name: dict(findings.missing)}, clock.seconds(), taught=taught),
    )
