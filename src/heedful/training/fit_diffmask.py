"""Train an explainer that foresees which words a frozen model can do without."""

import copy
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from heedful.core.batch import Encoded
from heedful.core.errors import DataError, ModelError
from heedful.core.timing import Progress, silent
from heedful.core.values import Example
from heedful.data.dataset import Dataset
from heedful.models.diffmask.explainer_folder import (
    Explainer,
    identity_of,
    load_explainer,
    save_explainer,
)
from heedful.models.diffmask.gate_network import Gates
from heedful.models.protocols import HasBlank, Subject
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.training.diffmask_trainer import MaskCourse, Masking, Page, Student, optimiser_for
from heedful.training.fit import data_told, split_dev
from heedful.training.loop.checkpoint import Identity, State, drop
from heedful.training.loop.epochs import Kept, Until, run_epochs

NEAR = 1e-4  # KL between the model and itself with every gate open


def fit_diffmask(
    subject: Subject,
    train: Dataset,
    recipe: Masking | None = None,
    *,
    out: str | Path,
    dev: Dataset | None = None,
    progress: Progress = silent,
) -> Explainer:
    """Train gates for a subject on texts of its own kind, write the folder `out`, return them.

    No labels are read: what counts is the model's own output. Kept is the epoch that hides most
    among those within the budget on the dev texts, or the nearest to it. Without dev texts a tenth
    of the others serves. After each epoch a checkpoint is written to `out`, which belongs to one
    process at a time: the same call again goes on from there to the same weights.
    """
    started, folder = time.process_time(), Path(out)
    recipe = recipe or Masking()
    course = _begin(subject, split_dev(train, dev), recipe)
    state = State(course.student, optimiser_for(course.student, recipe))
    state.seconds = time.process_time() - started
    kept = Kept(folder, _identity(subject, train, dev, recipe))
    run_epochs(course, state, Until(recipe.epochs), kept=kept, progress=progress)
    course.student.load_state_dict(state.best)
    told = {
        "recipe": asdict(recipe),
        "data": data_told(train, len(course.known)),
        "dev": {
            "texts": len(course.judged),
            "source": "dev" if dev else "a tenth of train, by hash",
        },
        **_outcome(course, state),
    }
    explainer = Explainer(course.student.gates, identity_of(subject), subject.family, told)
    save_explainer(explainer, folder)
    drop(folder)
    return load_explainer(folder)


def measure(
    explainer: Explainer, subject: Subject, texts: Iterable[Example], *, seed: int = 0
) -> tuple[list[float], list[float]]:
    """By layer, on other texts: mean KL of the output under drawn gates, mean share left open."""
    explainer.require(subject)
    student = Student(copy.deepcopy(explainer.gates).float())
    frozen = _quicker(subject)
    judged = _explained(frozen, texts)
    return MaskCourse(frozen, Masking(seed=seed), student, (), judged).measured()


def _begin(
    subject: Subject, texts: tuple[Sequence[Example], Sequence[Example]], recipe: Masking
) -> MaskCourse:
    """Everything that can be refused is refused here, before the first step."""
    frozen = _quicker(subject)
    known, judged = (_explained(frozen, some) for some in texts)
    if not known or not judged:
        raise DataError("No text has a word to hide; an explainer cannot be trained on them.")
    page = Page.of(frozen, frozen.batch(known[: recipe.batch]))
    blank = page.embedded.new_zeros(page.embedded.shape[-1])
    if isinstance(frozen, HasBlank):
        blank = frozen.blank().vector
    with torch.no_grad():
        gap = float(page.moved(torch.ones(page.batch.ids.shape), blank.float()).max())
    if not gap <= NEAR:
        raise ModelError(
            f"{subject.family} says something else of its own word vectors than of its words "
            f"(KL {gap:.2g}), so hiding words by their vectors would not be heard."
        )
    with torch.random.fork_rng(devices=[]):  # torch initialises layers from its global stream
        torch.manual_seed(recipe.seed)
        gates = Gates([one.shape[-1] for one in page.states], blank.float().cpu())
        student = Student(gates, recipe.begin(len(gates.widths)))
    return MaskCourse(frozen, recipe, student, known, judged)


def _quicker(subject: Subject) -> Subject:
    """Own models are audited in float64; to train on them float32 does, at half the time."""
    if not isinstance(subject, RecurrentSubject):
        return subject
    return replace(subject, network=copy.deepcopy(subject.network).float())


def _explained(subject: Subject, texts: Iterable[Example]) -> list[Encoded]:
    encoded = (subject.encode(one) for one in texts)
    return [one for one in encoded if one.explained]


def _identity(subject: Subject, train: Dataset, dev: Dataset | None, recipe: Masking) -> Identity:
    """All that the weights depend on; a checkpoint of another training must not be taken up."""
    return {
        **asdict(recipe),
        "train": train.origin(),
        "dev": None if dev is None else dev.origin(),
        "model": identity_of(subject),
        **{name: version(name) for name in ("heedful", "torch")},
    }


def _outcome(course: MaskCourse, state: State) -> dict[str, Any]:
    """What came of it, layer by layer, on the dev texts."""
    moved, kept = course.measured()
    return {
        "kl": moved,
        "open": kept,
        "kl_all_hidden": course.hidden(),
        "multipliers": course.student.multipliers.tolist(),
        "within_budget": max(moved) <= course.recipe.epsilon,
        "best_epoch": state.best_epoch + 1,
        "cpu_seconds": round(state.seconds, 1),
        "sittings": state.sittings,
    }
