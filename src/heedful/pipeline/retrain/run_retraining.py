"""Retraining in an audit: train the variants that checks request, then run the checks."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from heedful.checks import checks as check_registry
from heedful.checks.retraining.hidden_word_marks import mark_hidden_words
from heedful.checks.retraining_base import RetrainingCheck, RetrainingContext
from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.files.folder_lock import lock_folder
from heedful.core.process_pool import (
    ReportProgress,
    Worker,
    available_cores,
    run_tasks,
    run_tasks_here,
)
from heedful.core.records import MissingMeasure
from heedful.core.timing import Clock, Progress, no_progress
from heedful.data.dataset import Dataset
from heedful.models.protocols import HasFingerprint, Subject
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.pipeline.audit.job import JobResult, JobSummary, to_measure_columns
from heedful.pipeline.audit.run_store import AnyJob, DatasetJob, RunStore, job_key
from heedful.pipeline.plan.plan import Plan, RetrainingSettings
from heedful.pipeline.retrain.training_data import (
    TrainingData,
    read_finetuning_recipe,
    read_history,
    retraining_checks,
    stat_recipe_files,
)
from heedful.pipeline.retrain.worker import new_variant_store, train_or_refuse, write_worker_input
from heedful.training.fit import split_dev
from heedful.training.variants.models import read_recipe
from heedful.training.variants.texts import EncodedTexts
from heedful.training.variants.variant_store import VariantStore, dependency_order
from heedful.training.variants.variants import GuidedVariant, Variant, variant_to_dict

RETRAINED_FOLDER = "retrained"


@dataclass(frozen=True)
class Callbacks:
    """Callbacks of an audit: its progress, what it is about to do, and what it found damaged."""

    progress: Progress = no_progress
    announce: Callable[[str], None] = lambda _: None
    warn: Callable[[str], None] = warnings.warn


NO_CALLBACKS = Callbacks()


@dataclass(frozen=True, eq=False)
class AuditInputs:
    """The audited model, the texts, the plan, and the data to retrain on; `folder` is the run's."""

    subject: Subject
    data: Dataset
    plan: Plan
    training: TrainingData | None
    folder: Path


def make_dataset_jobs(
    plan: Plan, total: int, *, origin: Mapping[str, Any], training: TrainingData | None
) -> list[DatasetJob]:
    """One job for each check that looks at all texts at once."""
    jobs = []
    for name in retraining_checks(plan):
        settings = {
            "settings": plan.settings_of(name),
            "retraining": RetrainingSettings.of(plan.retraining).binding(),
            "training": None if training is None else training.origin(),
            "seed": plan.seed,
            "min_words": plan.min_words,
            "texts": total,
            **origin,
        }
        jobs.append(DatasetJob(name, job_key(settings)))
    return jobs


def run_retraining(
    store: RunStore, jobs: Sequence[AnyJob], audit: AuditInputs, callbacks: Callbacks
) -> None:
    """Train the variants that the checks of unfinished jobs request, and run these checks."""
    todo = {job.check: job for job in jobs if isinstance(job, DatasetJob) and not store.done(job)}
    if todo:
        for name, result in _run_checks(list(todo), audit, callbacks):
            store.put(todo[name], result, audit.subject.labels)


def _run_checks(
    names: Sequence[str], audit: AuditInputs, callbacks: Callbacks
) -> Iterator[tuple[str, JobResult]]:
    try:
        variant_store, base_seed = _open_variant_store(audit)
    except NotApplicable as reason:
        yield from ((name, _refused_result(name, str(reason))) for name in names)
        return
    plan, checks = audit.plan, retraining_checks(audit.plan)
    context = RetrainingContext(
        audit.subject,
        EncodedTexts(audit.subject, list(audit.data), plan.min_words, mark_hidden_words),
        variant_store.dev,
        variant_store.trained,
        plan.seed,
        plan.max_batch_tokens,
        base_seed=base_seed,
    )
    requested, refused = dict[str, list[Variant]](), dict[str, str]()
    for name in names:
        try:
            requested[name] = dependency_order(checks[name].variants(context))
        except NotApplicable as reason:
            refused[name] = str(reason)
    every = dependency_order([one for many in requested.values() for one in many])
    untrained = _train_missing(variant_store, every, audit, callbacks)
    for name in names:
        reasons = (untrained[one] for one in requested.get(name, ()) if one in untrained)
        if why := refused.get(name) or next(reasons, None):
            yield name, _refused_result(name, why)
        else:
            callbacks.progress(0, 1, f"evaluating retrained models: {name}")
            records = map(variant_store.record, requested[name])
            yield name, _run_check(name, checks[name], context, list(records))


def _open_variant_store(audit: AuditInputs) -> tuple[VariantStore, int]:
    """The store for variants of the base model, and the base model's own seed.

    The base model's recipe and the files it names are part of what all variants depend on. Raises
    NotApplicable if the model cannot be retrained.
    """
    training, subject = audit.training, audit.subject
    settings = RetrainingSettings.of(audit.plan.retraining)
    if isinstance(subject, RecurrentSubject):
        recipe, tuning = asdict(read_recipe(subject)), dict[str, Any]()
    else:
        recipe = tuning = read_finetuning_recipe(subject, audit.plan)
    if training is None:
        raise NotApplicable(
            "the data has no training split and none was given: models cannot be retrained"
        )
    training.require_disjoint(audit.data)
    assert isinstance(subject, HasFingerprint)  # noqa: S101 - both kinds are
    origin = {
        "model": subject.fingerprint(),
        "recipe": recipe,
        "files": stat_recipe_files(recipe),
        **training.origin(),
    }
    variant_store = new_variant_store(
        Path(settings.folder) if settings.folder else audit.folder / RETRAINED_FOLDER,
        subject,
        split_dev(training.train, training.dev),
        min_words=recipe.get("min_words", 1),
        origin=origin,
        tuning=tuning,
    )
    return variant_store, int(recipe.get("seed", 0))


def _train_missing(
    variant_store: VariantStore,
    variants: Sequence[Variant],
    audit: AuditInputs,
    callbacks: Callbacks,
) -> dict[Variant, str]:
    """Train the variants that are not trained yet; return why some cannot be."""
    if all(map(variant_store.done, variants)):
        return {}
    if variant_store.folder.resolve() == audit.folder.resolve():
        folder = variant_store.folder
        raise ConfigError(f"--retrained and --out are both {folder}; they must differ.")
    workers = RetrainingSettings.of(audit.plan.retraining).workers or available_cores()
    with lock_folder(variant_store.folder, "--retrained"):
        # checked again under the lock: another process may have trained some
        todo = [one for one in variants if not variant_store.done(one)]
        workers = min(workers, len(todo))
        callbacks.announce(
            describe_retraining_cost(variant_store, todo, len(variants) - len(todo), workers)
            + describe_epoch_cost(read_history(variant_store.base, audit.plan))
        )
        todo.sort(key=lambda one: -one.pace.epochs)  # longest first, so that workers end together
        return _train_variants(variant_store, todo, workers, audit.plan, callbacks.progress)


def _train_variants(
    variant_store: VariantStore,
    todo: Sequence[Variant],
    workers: int,
    plan: Plan,
    progress: Progress,
) -> dict[Variant, str]:
    """Train in worker processes if several are wanted and can load the base model, else here."""
    train = partial(train_or_refuse, variant_store)
    options: Any = {"needs": lambda variant: variant.needs, "title": "retraining"}
    input_file = None
    if workers > 1:
        input_file = write_worker_input(variant_store, model=plan.model, choices=plan.subject)
    if input_file is None:
        return run_tasks_here(dependency_order(todo), train, progress, **options)
    arguments = "heedful.pipeline.retrain.worker", [str(input_file)]
    processes = [Worker(*arguments) for _ in range(workers)]
    try:
        return run_tasks(todo, [partial(_train_in, one) for one in processes], progress, **options)
    finally:
        for process in processes:
            process.end()


def _train_in(worker: Worker, variant: Variant, report_progress: ReportProgress) -> str | None:
    return worker(variant_to_dict(variant), report_progress)


def describe_retraining_cost(
    variant_store: VariantStore, todo: Sequence[Variant], trained: int, workers: int
) -> str:
    """How many models are about to be retrained, for how many epochs at most."""
    schedule = variant_store.tuning.get("epochs")  # guided models do not follow it
    epochs = sum(
        schedule if schedule and not isinstance(one, GuidedVariant) else one.pace.epochs
        for one in todo
    )
    until = "by the recipe's schedule" if schedule else "until its dev score stops rising"
    existing = f" ({trained} exist already)" if trained else ""
    return (
        f"{len(todo)} models are retrained{existing}, each {until}, at most {epochs} epochs in "
        f"total; {min(workers, len(todo))} at a time, kept in {variant_store.folder}."
    )


def describe_epoch_cost(history: Mapping[str, Any]) -> str:
    """How long an epoch of the base model took, if its history records it."""
    seconds, scores = history.get("cpu_seconds"), history.get("dev_scores")
    if not seconds or not scores:
        return ""
    return f" An epoch of this model took about {seconds / len(scores):.2g} CPU seconds."


def _refused_result(name: str, reason: str) -> JobResult:
    """The result of a check that could not run: every measure is missing."""
    measures = check_registry.spec(name).measures
    missing = tuple(MissingMeasure(one.name, reason) for one in measures if one.averaged)
    return JobResult((), {}, {}, JobSummary({name: missing}))


def _run_check(
    name: str, check: RetrainingCheck, context: RetrainingContext, records: Sequence[dict[str, Any]]
) -> JobResult:
    """Run a check; `records` are those of the training of each variant it needs."""
    clock, encoded = Clock(), context.texts.encoded
    try:
        with clock(name), torch.no_grad():
            findings = check.examine(context)
    except NotApplicable as reason:
        return _refused_result(name, str(reason))
    instances = [one.index for one in encoded]
    classes = context.texts.base_predictions.probabilities.argmax(-1).tolist()
    return JobResult(
        tuple(to_measure_columns(name, instances, findings.measurements)),
        dict(zip(instances, classes, strict=True)),
        {one.index: one.label for one in encoded},
        JobSummary(
            {name: findings.missing},
            clock.seconds(),
            retrained={one["key"]: one for one in records},
        ),
    )
