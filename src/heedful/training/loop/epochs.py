"""The epoch loop: early stopping, and a checkpoint after each epoch to resume from."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from heedful.core.atomic_files import remove_drafts
from heedful.core.errors import ConfigError
from heedful.core.timing import Progress
from heedful.training.loop.checkpoint import (
    TrainingIdentity,
    TrainingState,
    load_checkpoint,
    save_checkpoint,
)


@dataclass(frozen=True)
class EarlyStopping:
    """Stop after `epochs`, or after `patience` epochs without a better dev score.

    `ceiling` is the best value that score and accuracy can take; an epoch that reaches it ends
    training, since no later epoch can be better. Without `patience` all epochs run.
    """

    epochs: int
    patience: int | None = None
    ceiling: float | None = None

    def __post_init__(self) -> None:
        if self.epochs < 1 or (self.patience is not None and self.patience < 1):
            raise ConfigError(f"epochs and patience must be at least 1; got {self}.")

    @property
    def doubled(self) -> "EarlyStopping":
        """The limits of an adversary, given those of other seeds: twice as long, as published."""
        return EarlyStopping(2 * self.epochs, self.patience and 2 * self.patience)

    @property
    def halved(self) -> "EarlyStopping":
        """The limits of other seeds, given those of an adversary."""
        return EarlyStopping(max(1, self.epochs // 2), self.patience and max(1, self.patience // 2))

    def has_plateaued(self, state: TrainingState) -> bool:
        """Whether the last `patience` epochs brought nothing better, or the ceiling is reached."""
        if self.patience is None or not state.scores:
            return False
        best = state.selection_keys[state.best_epoch]
        if self.ceiling is not None and best >= (self.ceiling, self.ceiling):
            return True
        return len(state.scores) - 1 - state.best_epoch >= self.patience

    def should_stop(self, state: TrainingState) -> bool:
        """Whether training ends after the epochs recorded so far."""
        return len(state.scores) >= self.epochs or self.has_plateaued(state)


@runtime_checkable
class EpochTrainer(Protocol):
    """Runs single epochs."""

    def epoch(self, number: int, state: TrainingState, progress: Progress) -> None:
        """Visit every training text once, then record the dev score in the state."""
        ...


@dataclass(frozen=True)
class CheckpointFolder:
    """Where checkpoints are written, and the identity of the training run they belong to."""

    folder: Path
    identity: TrainingIdentity


def run_epochs(
    trainer: EpochTrainer,
    state: TrainingState,
    stopping: EarlyStopping,
    *,
    checkpoint: CheckpointFolder | None,
    progress: Progress,
) -> None:
    """Train until `stopping` ends it; with `checkpoint`, resume and save after each epoch."""
    started = time.process_time()
    if checkpoint is not None:
        remove_drafts(checkpoint.folder)
        load_checkpoint(state, checkpoint.folder, checkpoint.identity)
    while not stopping.should_stop(state):
        trainer.epoch(len(state.scores), state, progress)
        now = time.process_time()
        state.seconds, started = state.seconds + now - started, now
        if checkpoint is not None:
            save_checkpoint(state, checkpoint.folder, checkpoint.identity)


def require_finite(value: Tensor, name: str, *, rate: float) -> None:
    """Raise ConfigError if a loss or a gradient is NaN or infinite."""
    if not bool(value.isfinite().all()):
        raise ConfigError(
            f"Training diverged: {name} is not finite. Choose a learning rate below {rate:g}."
        )


def summarise_training(state: TrainingState, stopping: EarlyStopping) -> dict[str, Any]:
    """The history of a training run; `plateau` is None where no early stopping was asked for."""
    return {
        "dev_scores": list(state.scores),
        "dev_accuracies": list(state.accuracies),
        "best_epoch": state.best_epoch + 1,
        "epochs": len(state.scores),
        "plateau": None if stopping.patience is None else stopping.has_plateaued(state),
        "cpu_seconds": round(state.seconds, 1),
        "sittings": state.sessions,
    }
