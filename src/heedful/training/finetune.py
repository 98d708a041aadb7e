"""Make a classifier of a pretrained transformer: a plain loop, seeded, which can be continued."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from torch.nn import CrossEntropyLoss

from heedful.core.timing import Progress, no_progress
from heedful.data.dataset import Dataset
from heedful.models.transformer.new_classifier import new_classifier, save_classifier
from heedful.models.transformer.subject import TransformerSubject
from heedful.training.fit import align_dev_labels, describe_data, require_every_class, split_dev
from heedful.training.loop.checkpoint import TrainingIdentity, TrainingState, delete_checkpoint
from heedful.training.loop.dev_scores import require_dev
from heedful.training.loop.epochs import CheckpointFolder, EarlyStopping, run_epochs
from heedful.training.loop.transformer_trainer import (
    FineTuning,
    TransformerTrainer,
    build_transformer_optimiser,
)
from heedful.training.variants.objectives import TaskObjective

HISTORY_FILE = "training.json"
IDENTITY_PACKAGES = ("heedful", "torch", "transformers", "tokenizers")


def finetune(
    train: Dataset,
    dev: Dataset | None,
    recipe: FineTuning,
    *,
    out: str | Path,
    progress: Progress = no_progress,
) -> TransformerSubject:
    """Fine-tune, write the model folder `out`, and return the subject of the best epoch (float32).

    Dev data and score are those of `fit`. After each epoch a checkpoint is written to `out`, which
    belongs to one process at a time: the same call again goes on from there to the same weights.
    """
    started, folder = time.process_time(), Path(out)
    dev = align_dev_labels(train, dev)
    course, new = _start_training(train, dev, recipe)
    state = TrainingState(
        course.subject.model, build_transformer_optimiser(course.subject.model, recipe)
    )
    state.seconds = time.process_time() - started
    kept = CheckpointFolder(folder, _identity(course.subject, train, dev, recipe))
    run_epochs(course, state, EarlyStopping(recipe.epochs), kept=kept, progress=progress)
    course.subject.model.load_state_dict(state.best)
    course.subject.model.eval().requires_grad_(False)
    history = {**_origin(course, new, train, dev), **_outcome(state)}
    save_classifier(
        course.subject, folder, extra_files={HISTORY_FILE: json.dumps(history, indent=1)}
    )
    delete_checkpoint(folder)
    return course.subject


def _start_training(
    train: Dataset, dev: Dataset | None, recipe: FineTuning
) -> tuple[TransformerTrainer, Sequence[str]]:
    """Everything that can be refused is refused here, before the first step."""
    texts, held = split_dev(train, dev)
    subject, new = new_classifier(
        recipe.encoder, train.labels, seed=recipe.seed, max_tokens=recipe.max_tokens
    )
    known = [subject.encode(one) for one in texts]
    judged = [subject.encode(one) for one in held]
    require_every_class(known, train.labels)
    require_dev(judged, len(train.labels))
    train_objective, dev_objective = (
        TaskObjective([one.label for one in texts], CrossEntropyLoss()) for texts in (known, judged)
    )
    return TransformerTrainer(subject, recipe, known, judged, train_objective, dev_objective), new


def _identity(
    subject: TransformerSubject, train: Dataset, dev: Dataset | None, recipe: FineTuning
) -> TrainingIdentity:
    """All that the weights depend on; a checkpoint of another training must not be taken up."""
    return {
        **asdict(recipe),
        "train": train.origin(),
        "dev": None if dev is None else dev.origin(),
        "labels": list(train.labels),
        "model": subject.fingerprint(),
        **{name: version(name) for name in IDENTITY_PACKAGES},
    }


def _origin(
    course: TransformerTrainer, new: Sequence[str], train: Dataset, dev: Dataset | None
) -> dict[str, Any]:
    """Of what the model was made, as `fit` tells it."""
    known, judged = course.known, course.judged
    source = "dev split" if dev is not None else "a tenth of train, by hash"
    return {
        "recipe": asdict(course.recipe),
        "data": describe_data(train, len(known)),
        "dev": {"texts": len(judged), "source": source},
        "labels": list(train.labels),
        "truncated": {
            "train": sum(one.truncated for one in known),
            "dev": sum(one.truncated for one in judged),
        },
        "new_weights": list(new),
        "versions": {name: version(name) for name in IDENTITY_PACKAGES},
    }


def _outcome(state: TrainingState) -> dict[str, Any]:
    return {
        "dev_scores": state.scores,
        "dev_accuracies": state.accuracies,
        "best_epoch": state.best_epoch + 1,
        "cpu_seconds": round(state.seconds, 1),
        "sittings": state.sessions,
    }
