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
from heedful.core.timing import Progress, no_progress
from heedful.core.values import Example
from heedful.data.dataset import Dataset
from heedful.models.diffmask import (
    Explainer,
    GateNetwork,
    load_explainer,
    model_identity,
    save_explainer,
)
from heedful.models.protocols import HasMaskEmbedding, Subject
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.training.diffmask_trainer import (
    DiffMaskTrainer,
    FrozenPass,
    LagrangianGates,
    Masking,
    build_diffmask_optimiser,
)
from heedful.training.fit import describe_data, split_dev
from heedful.training.loop.checkpoint import TrainingIdentity, TrainingState, delete_checkpoint
from heedful.training.loop.epochs import CheckpointFolder, EarlyStopping, run_epochs

OPEN_GATE_TOLERANCE = 1e-4  # KL between the model and itself with every gate open


def fit_diffmask(
    subject: Subject,
    train: Dataset,
    recipe: Masking | None = None,
    *,
    out: str | Path,
    dev: Dataset | None = None,
    progress: Progress = no_progress,
) -> Explainer:
    """Train gates for a subject on texts of its own kind, write the folder `out`, return them.

    No labels are read: what counts is the model's own output. Kept is the epoch that hides most
    among those within the budget on the dev texts, or the nearest to it. Without dev texts a tenth
    of the others serves. After each epoch a checkpoint is written to `out`, which belongs to one
    process at a time: the same call again goes on from there to the same weights.
    """
    started, folder = time.process_time(), Path(out)
    recipe = recipe or Masking()
    course = _start_training(subject, split_dev(train, dev), recipe)
    state = TrainingState(course.lagrangian, build_diffmask_optimiser(course.lagrangian, recipe))
    state.seconds = time.process_time() - started
    kept = CheckpointFolder(folder, _identity(subject, train, dev, recipe))
    run_epochs(course, state, EarlyStopping(recipe.epochs), kept=kept, progress=progress)
    course.lagrangian.load_state_dict(state.best)
    record = {
        "recipe": asdict(recipe),
        "data": describe_data(train, len(course.known)),
        "dev": {
            "texts": len(course.judged),
            "source": "dev" if dev else "a tenth of train, by hash",
        },
        **_outcome(course, state),
    }
    explainer = Explainer(course.lagrangian.gates, model_identity(subject), subject.family, record)
    save_explainer(explainer, folder)
    delete_checkpoint(folder)
    return load_explainer(folder)


def evaluate_gates(
    explainer: Explainer, subject: Subject, texts: Iterable[Example], *, seed: int = 0
) -> tuple[list[float], list[float]]:
    """By layer, on other texts: mean KL of the output under drawn gates, mean share left open."""
    explainer.require_model(subject)
    lagrangian = LagrangianGates(copy.deepcopy(explainer.gates).float())
    frozen = _as_float32(subject)
    judged = _encode_texts(frozen, texts)
    return DiffMaskTrainer(frozen, Masking(seed=seed), lagrangian, (), judged).measured()


def _start_training(
    subject: Subject, texts: tuple[Sequence[Example], Sequence[Example]], recipe: Masking
) -> DiffMaskTrainer:
    """Everything that can be refused is refused here, before the first step."""
    frozen = _as_float32(subject)
    known, judged = (_encode_texts(frozen, some) for some in texts)
    if not known or not judged:
        raise DataError("No text has a word to hide; an explainer cannot be trained on them.")
    page = FrozenPass.of(frozen, frozen.batch(known[: recipe.batch]))
    blank = page.embedded.new_zeros(page.embedded.shape[-1])
    if isinstance(frozen, HasMaskEmbedding):
        blank = frozen.mask_embedding().vector
    with torch.no_grad():
        gap = float(page.moved(torch.ones(page.batch.ids.shape), blank.float()).max())
    if not gap <= OPEN_GATE_TOLERANCE:
        raise ModelError(
            f"{subject.family} says something else of its own word vectors than of its words "
            f"(KL {gap:.2g}), so hiding words by their vectors would not be heard."
        )
    with torch.random.fork_rng(devices=[]):  # torch initialises layers from its global stream
        torch.manual_seed(recipe.seed)
        gates = GateNetwork([one.shape[-1] for one in page.states], blank.float().cpu())
        lagrangian = LagrangianGates(gates, recipe.begin(len(gates.widths)))
    return DiffMaskTrainer(frozen, recipe, lagrangian, known, judged)


def _as_float32(subject: Subject) -> Subject:
    """Own models are audited in float64; to train on them float32 does, at half the time."""
    if not isinstance(subject, RecurrentSubject):
        return subject
    return replace(subject, network=copy.deepcopy(subject.network).float())


def _encode_texts(subject: Subject, texts: Iterable[Example]) -> list[Encoded]:
    encoded = (subject.encode(one) for one in texts)
    return [one for one in encoded if one.explained_tokens]


def _identity(
    subject: Subject, train: Dataset, dev: Dataset | None, recipe: Masking
) -> TrainingIdentity:
    """All that the weights depend on; a checkpoint of another training must not be taken up."""
    return {
        **asdict(recipe),
        "train": train.origin(),
        "dev": None if dev is None else dev.origin(),
        "model": model_identity(subject),
        **{name: version(name) for name in ("heedful", "torch")},
    }


def _outcome(course: DiffMaskTrainer, state: TrainingState) -> dict[str, Any]:
    """What came of it, layer by layer, on the dev texts."""
    moved, kept = course.measured()
    return {
        "kl": moved,
        "open": kept,
        "kl_all_hidden": course.hidden(),
        "multipliers": course.lagrangian.multipliers.tolist(),
        "within_budget": max(moved) <= course.recipe.epsilon,
        "best_epoch": state.best_epoch + 1,
        "cpu_seconds": round(state.seconds, 1),
        "sittings": state.sessions,
    }
