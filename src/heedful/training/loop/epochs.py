"""Epoch after epoch until the dev score has stopped rising, from wherever it was cut off."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

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
    """When to stop: after `epochs` at the latest, or `patience` of them without a better score.

    Where `ceiling` is the best that score and accuracy can be, nothing better is waited for there:
    the first epoch to reach it is the one that is kept.
    """

    epochs: int
    patience: int | None = None
    ceiling: float | None = None

    def __post_init__(self) -> None:
        if self.epochs < 1 or (self.patience is not None and self.patience < 1):
            raise ConfigError(f"epochs and patience start at 1; got {self}.")

    def plateau(self, state: TrainingState) -> bool:
        """Whether the last `patience` epochs brought nothing better, or nothing better can come."""
        if self.patience is None or not state.scores:
            return False
        if self.ceiling is not None and state.marks[state.best_epoch] >= (self.ceiling,) * 2:
            return True
        return len(state.scores) - 1 - state.best_epoch >= self.patience

    def should_stop(self, state: TrainingState) -> bool:
        """Whether training ends here."""
        return len(state.scores) >= self.epochs or self.plateau(state)


@runtime_checkable
class EpochTrainer(Protocol):
    """What an epoch consists of."""

    def epoch(self, number: int, state: TrainingState, progress: Progress) -> None:
        """Every training text once, then the dev score, told to the state."""
        ...


@dataclass(frozen=True)
class CheckpointFolder:
    """Where a training keeps what it needs to go on, and what it is."""

    folder: Path
    identity: TrainingIdentity


def run_epochs(
    course: EpochTrainer,
    state: TrainingState,
    stopping: EarlyStopping,
    *,
    kept: CheckpointFolder | None,
    progress: Progress,
) -> None:
    """Train; with `kept`, each epoch is safe once it is over, and done once."""
    started = time.process_time()
    if kept is not None:
        remove_drafts(kept.folder)
        load_checkpoint(state, kept.folder, kept.identity)
    while not stopping.should_stop(state):
        course.epoch(len(state.scores), state, progress)
        now = time.process_time()
        state.seconds, started = state.seconds + now - started, now
        if kept is not None:
            save_checkpoint(state, kept.folder, kept.identity)


def summarise_training(state: TrainingState, stopping: EarlyStopping) -> dict[str, Any]:
    """What came of a training, for its history."""
    return {
        "dev_scores": list(state.scores),
        "dev_accuracies": list(state.accuracies),
        "best_epoch": state.best_epoch + 1,
        "epochs": len(state.scores),
        "plateau": stopping.plateau(state),
        "cpu_seconds": round(state.seconds, 1),
        "sittings": state.sessions,
    }
