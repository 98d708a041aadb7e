"""Fine-tune a pretrained transformer as a classifier, seeded and resumable."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from heedful.core.timing import Progress, no_progress
from heedful.data.dataset import Dataset
from heedful.models.transformer.new_classifier import new_classifier, save_classifier
from heedful.models.transformer.subject import TransformerSubject
from heedful.training.fit import (
    align_dev_labels,
    describe_data,
    describe_dev,
    require_every_class,
    split_dev,
    training_identity,
)
from heedful.training.loop.checkpoint import TrainingState, delete_checkpoint
from heedful.training.loop.dev_scores import require_dev
from heedful.training.loop.epochs import CheckpointFolder, EarlyStopping
from heedful.training.loop.trainer import Trainer
from heedful.training.loop.transformer_trainable import TransformerTrainable
from heedful.training.recipe import FineTuning

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

    Dev data and score are those of `fit`. A checkpoint is written to `out` after each epoch; the
    same call resumes from it to the same weights. Only one process may use `out` at a time.
    """
    started, folder = time.process_time(), Path(out)
    dev = align_dev_labels(train, dev)
    trainer, subject, new_weights = _start_training(train, dev, recipe)
    versions = {name: version(name) for name in IDENTITY_PACKAGES}
    identity = training_identity(
        recipe, train, dev, labels=list(train.labels), model=subject.fingerprint(), **versions
    )
    state = trainer.train(
        checkpoint=CheckpointFolder(folder, identity),
        progress=progress,
        seconds=time.process_time() - started,
    )
    history = {
        "recipe": asdict(recipe),
        "data": describe_data(train, len(trainer.train_texts)),
        "dev": describe_dev(dev, len(trainer.dev_texts)),
        "labels": list(train.labels),
        "truncated": {
            "train": sum(one.truncated for one in trainer.train_texts),
            "dev": sum(one.truncated for one in trainer.dev_texts),
        },
        "new_weights": list(new_weights),
        "versions": versions,
        **_outcome(state),
    }
    save_classifier(subject, folder, extra_files={HISTORY_FILE: json.dumps(history, indent=1)})
    delete_checkpoint(folder)
    return subject


def _start_training(
    train: Dataset, dev: Dataset | None, recipe: FineTuning
) -> tuple[Trainer, TransformerSubject, Sequence[str]]:
    """Build the trainer; every input error is raised here, before the first step."""
    train_examples, dev_examples = split_dev(train, dev)
    subject, new_weights = new_classifier(
        recipe.encoder, train.labels, seed=recipe.seed, max_tokens=recipe.max_tokens
    )
    train_texts = [subject.encode(one) for one in train_examples]
    dev_texts = [subject.encode(one) for one in dev_examples]
    require_every_class(train_texts, train.labels)
    require_dev(dev_texts, len(train.labels))
    trainable = TransformerTrainable(subject, recipe)
    objectives = trainable.task_objective(train_texts), trainable.task_objective(dev_texts)
    stopping = EarlyStopping(recipe.epochs)
    trainer = Trainer(trainable, train_texts, dev_texts, *objectives, stopping)
    return trainer, subject, new_weights


def _outcome(state: TrainingState) -> dict[str, Any]:
    return {
        "dev_scores": state.scores,
        "dev_accuracies": state.accuracies,
        "best_epoch": state.best_epoch + 1,
        "cpu_seconds": round(state.seconds, 1),
        "sittings": state.sessions,
    }
