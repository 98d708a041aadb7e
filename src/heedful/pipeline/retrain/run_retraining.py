"""The part of an audit that has models made anew: what is to be made, then the checks that look."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch

from heedful.checks import Retrains, Trial, mark
from heedful.core.errors import ConfigError, DataError, ModelError, NotApplicable
from heedful.core.timing import Clock, Progress, silent
from heedful.data.dataset import Dataset
from heedful.models.protocols import Fingerprinted, Subject
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.pipeline.audit.job import Beside, JobResult, blocks_of
from heedful.pipeline.audit.run_lock import locked
from heedful.pipeline.audit.run_store import Named, Store, WholeJob
from heedful.pipeline.plan.plan import Plan
from heedful.pipeline.plan.retraining_settings import Retraining
from heedful.pipeline.retrain.announcement import cost_told, epoch_told
from heedful.pipeline.retrain.process_pool import Worker, cores, teach_all, teach_here
from heedful.pipeline.retrain.training_data import (
    Training,
    files_of,
    history_of,
    retraining_checks,
    tuning_of,
)
from heedful.pipeline.retrain.worker_input import new_school, write_room
from heedful.training.fit import split_dev
from heedful.training.variants.context import Texts, recipe_of
from heedful.training.variants.variant_store import School, in_order
from heedful.training.variants.variants import Lesson

RETRAINED = "retrained"
REFUSALS = (NotApplicable, ConfigError, DataError, ModelError)
"""Reasons why one model cannot be made; the checks that do not need it go on."""


@dataclass(frozen=True)
class Front:
    """Whom an audit tells what: how far it is, and what it is about to do."""

    progress: Progress = silent
    announce: Callable[[str], None] = lambda _: None


QUIET = Front()


@dataclass(frozen=True, eq=False)
class Audit:
    """What is audited, on what, how, and what its like is trained on."""

    subject: Subject
    data: Dataset
    plan: Plan
    training: Training | None
    folder: Path  # of the run


def whole_jobs_of(
    plan: Plan, total: int, *, origin: Mapping[str, Any], training: Training | None
) -> list[WholeJob]:
    """A job for each check that looks at all texts."""
    found = []
    for name in retraining_checks(plan):
        settled = {
            "settings": dict(plan.settings[name]),
            "retraining": Retraining.of(plan.retraining).binding(),
            "training": None if training is None else training.origin(),
            "seed": plan.seed,
            "min_words": plan.min_words,
            "texts": total,
            **origin,
        }
        content = json.dumps(settled, sort_keys=True)
        found.append(WholeJob(name, blake2b(content.encode(), digest_size=10).hexdigest()))
    return found


def retrain(store: Store, jobs: Sequence[Named], audit: Audit, front: Front) -> None:
    """Have made what the checks ask for, and let them look; what is done is not done again."""
    todo = [job for job in jobs if isinstance(job, WholeJob) and not store.done(job)]
    if not todo:
        return
    plan, checks, labels = audit.plan, retraining_checks(audit.plan), audit.subject.labels
    try:
        school, own_seed = _school(audit)
    except NotApplicable as reason:
        for job in todo:
            store.put_whole_job(job, _without(job.check, checks[job.check], str(reason)), labels)
        return
    texts = Texts(audit.subject, list(audit.data), plan.min_words, mark)
    trial = Trial(
        audit.subject,
        texts,
        school.dev,
        school.taught,
        plan.seed,
        plan.max_batch_tokens,
        own_seed=own_seed,
    )
    asked, refused = _asked({job.check: checks[job.check] for job in todo}, trial)
    impossible = _teach(
        school, in_order([one for many in asked.values() for one in many]), audit, front
    )
    for name, lessons in asked.items():
        if why := next((impossible[one] for one in lessons if one in impossible), None):
            refused[name] = why
    for job in todo:
        check = checks[job.check]
        if job.check in refused:
            result = _without(job.check, check, refused[job.check])
        else:
            front.progress(0, 1, f"looking at what was made: {job.check}")
            result = _examined(job.check, check, trial, asked[job.check])
        store.put_whole_job(job, result, labels)


def _asked(
    checks: Mapping[str, Retrains], trial: Trial
) -> tuple[dict[str, Sequence[Lesson]], dict[str, str]]:
    """What each check wants made, or why it cannot be put."""
    asked: dict[str, Sequence[Lesson]] = {}
    refused: dict[str, str] = {}
    for name, check in checks.items():
        try:
            asked[name] = check.lessons(trial)
        except NotApplicable as reason:
            refused[name] = str(reason)
    return asked, refused


def _school(audit: Audit) -> tuple[School, int]:
    """Where this base model's like is made, and its own seed; NotApplicable says why it cannot be.

    What the base model's recipe holds, and the files it names, is part of what all depends on.
    """
    training, subject = audit.training, audit.subject
    chosen = Retraining.of(audit.plan.retraining)
    if isinstance(subject, RecurrentSubject):
        recipe, tuning = asdict(recipe_of(subject)), dict[str, Any]()
    else:
        recipe = tuning = tuning_of(subject, audit.plan)
    if training is None:
        raise NotApplicable(
            "the data has no training split, and none was given: models cannot be made anew"
        )
    training.require_apart(audit.data)
    assert isinstance(subject, Fingerprinted)  # noqa: S101 - both kinds are
    origin = {
        "model": subject.fingerprint(),
        "recipe": recipe,
        "files": files_of(recipe),
        **training.origin(),
    }
    texts = split_dev(training.train, training.dev)
    where = Path(chosen.folder) if chosen.folder else audit.folder / RETRAINED
    least = recipe.get("min_words", 1)
    school = new_school(where, subject, texts, min_words=least, origin=origin, tuning=tuning)
    return school, int(recipe.get("seed", 0))


def _teach(
    school: School, lessons: Sequence[Lesson], audit: Audit, front: Front
) -> dict[Lesson, str]:
    """Make what is not there yet, on as many processes as asked for."""
    if all(map(school.done, lessons)):
        return {}
    if school.folder.resolve() == audit.folder.resolve():
        raise ConfigError(f"--retrained and --out are both {school.folder}; they must differ.")
    with locked(school.folder, "--retrained"):
        todo = [one for one in lessons if not school.done(one)]  # another may have been quicker
        wanted = Retraining.of(audit.plan.retraining).workers or cores()
        there, history = len(lessons) - len(todo), history_of(school.base, audit.plan)
        front.announce(cost_told(school, todo, there, wanted) + epoch_told(history))
        # what takes longest first, so that nobody waits for it at the end
        todo.sort(key=lambda one: -one.pace.epochs)
        return _taught(school, todo, min(wanted, len(todo)), audit.plan, front.progress)


def _taught(
    school: School, todo: Sequence[Lesson], wanted: int, plan: Plan, progress: Progress
) -> dict[Lesson, str]:
    """On processes where there is more than one and they can open the room; else here."""
    room = write_room(school, model=plan.model, choices=plan.subject) if wanted > 1 else None
    if room is None:
        return teach_here(in_order(todo), partial(_here, school), progress)
    workers = [Worker(room) for _ in range(wanted)]
    try:
        return teach_all(todo, workers, progress)
    finally:
        for worker in workers:
            worker.end()


def _here(school: School, lesson: Lesson, tell: Callable[[str], None]) -> str | None:
    """A lesson in this process."""
    try:
        school.teach(lesson, lambda done, total, words: tell(words))  # noqa: ARG005
    except REFUSALS as reason:
        return str(reason)
    return None


def _without(name: str, check: Retrains, reason: str) -> JobResult:
    """A check that could not be put."""
    missing = {name: dict.fromkeys(check.measures, reason)}
    return JobResult((), {}, {}, Beside(missing))


def _examined(name: str, check: Retrains, trial: Trial, lessons: Sequence[Lesson]) -> JobResult:
    """What a check finds, now that all is there."""
    clock, encoded = Clock(), trial.texts.encoded
    try:
        with clock(name), torch.no_grad():
            findings = check.examine(trial)
    except NotApplicable as reason:
        return _without(name, check, str(reason))
    instances = [one.index for one in encoded]
    classes = trial.texts.outlook.probabilities.argmax(-1).tolist()
    taught = {one.told["key"]: one.told for one in map(trial.taught, in_order(lessons))}
    return JobResult(
        tuple(blocks_of(name, instances, findings.measurements)),
        dict(zip(instances, classes, strict=True)),
        {one.index: one.label for one in encoded},
        Beside({name: dict(findings.missing)}, clock.seconds(), taught=taught),
    )
