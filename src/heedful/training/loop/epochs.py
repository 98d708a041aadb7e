"""The epoch loop: early stopping, and a checkpoint after each epoch to resume from."""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from heedful.core.atomic_files import remove_drafts, remove_file
from heedful.core.batch import Encoded
from heedful.core.errors import ConfigError, RunError
from heedful.core.rng import generator
from heedful.core.settings import Repeats, check_on_init
from heedful.core.timing import Progress
from heedful.models.recurrent.model_folder import save_tensors

CHECKPOINT_FILE = "checkpoint.safetensors"
CHECKPOINT_SCHEMA = 1
TrainingIdentity = Mapping[str, Any]  # everything that the result depends on, as JSON


@dataclass(eq=False)
class TrainingState:
    """Everything that training changes; random draws are not part of it: seed and epoch fix them.

    `sessions` counts the processes that worked on this run: 1 plus the number of resumptions.
    """

    model: nn.Module
    optimiser: torch.optim.Optimizer
    scores: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    best: dict[str, Tensor] = field(default_factory=dict)
    seconds: float = 0.0
    sessions: int = 1

    @property
    def selection_keys(self) -> list[tuple[float, float]]:
        """The keys that epochs are compared by: score, then accuracy to break ties.

        ROC-AUC reaches 1 once the classes are separated, long before the accuracy does.
        """
        return list(zip(self.scores, self.accuracies, strict=True))

    @property
    def best_epoch(self) -> int:
        """The first of the best epochs, counted from 0."""
        return self.selection_keys.index(max(self.selection_keys))

    def summary(self) -> dict[str, Any]:
        """Scores and cost, as recorded in a model's history."""
        return {
            "dev_scores": list(self.scores),
            "dev_accuracies": list(self.accuracies),
            "best_epoch": self.best_epoch + 1,
            "cpu_seconds": round(self.seconds, 1),
            "sittings": self.sessions,
        }

    def record_epoch(self, score: float, accuracy: float) -> None:
        """Append the scores of a finished epoch; copy its weights if it is the best so far."""
        self.scores.append(score)
        self.accuracies.append(accuracy)
        if self.best_epoch == len(self.scores) - 1:
            self.best = _copy_weights(self.model)


@check_on_init
@dataclass(frozen=True)
class EarlyStopping:
    """Stop after `epochs`, or after `patience` epochs without a better dev score.

    `ceiling` is the best value that score and accuracy can take; an epoch that reaches it ends
    training, since no later epoch can be better. Without `patience` all epochs run.
    """

    epochs: Repeats
    patience: Repeats | None = None
    ceiling: float | None = None

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


@dataclass(frozen=True)
class Checkpoint:
    """A file that an interrupted training run resumes from, with the identity of that run."""

    folder: Path
    identity: TrainingIdentity

    @property
    def path(self) -> Path:
        """The checkpoint file."""
        return self.folder / CHECKPOINT_FILE

    def save(self, state: TrainingState) -> None:
        """Write the state atomically: the previous file stays until the new one is complete."""
        tensors = {f"model.{name}": one for name, one in _copy_weights(state.model).items()}
        if state.best_epoch != len(state.scores) - 1:
            tensors |= {f"best.{name}": one for name, one in state.best.items()}
        for number, own in state.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{number}.{name}": one.clone() for name, one in own.items()}
        header = {
            "schema": CHECKPOINT_SCHEMA,
            "identity": self.identity,
            "scores": state.scores,
            "accuracies": state.accuracies,
            "seconds": state.seconds,
            "sittings": state.sessions,
        }
        save_tensors(self.path, tensors, {"training": json.dumps(header)})

    def restore(self, state: TrainingState) -> None:
        """Restore the state from the file, if there is one."""
        if not self.path.exists():
            return
        try:
            with safe_open(self.path, framework="pt") as file:
                header = json.loads(file.metadata()["training"])
                if header["schema"] != CHECKPOINT_SCHEMA:
                    raise ValueError(f"its schema is {header['schema']!r}, not {CHECKPOINT_SCHEMA}")
                self._require_same_run(header["identity"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            _restore_state(state, header, tensors)
        except (SafetensorError, OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
            raise RunError(
                f"Training cannot resume from {self.path}: {error}. Remove the file to start again."
            ) from error

    def delete(self) -> None:
        """Remove the file of a finished training run."""
        remove_file(self.path)

    def _require_same_run(self, saved: TrainingIdentity) -> None:
        expected = json.loads(json.dumps(self.identity))
        differing = [
            key for key in dict.fromkeys((*expected, *saved)) if saved.get(key) != expected.get(key)
        ]
        if differing:
            raise RunError(
                f"{self.path} belongs to another training run: it differs in "
                f"{', '.join(differing)}. Give the same settings to resume that run, choose "
                "another --out, or remove the file."
            )


def _restore_state(
    state: TrainingState, header: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> None:
    parts = _group_by_prefix(tensors)
    state.model.load_state_dict(parts["model"])
    own = {int(number): one for number, one in _group_by_prefix(parts["optimiser"]).items()}
    groups = state.optimiser.state_dict()["param_groups"]
    state.optimiser.load_state_dict({"state": own, "param_groups": groups})
    state.scores, state.accuracies = list(header["scores"]), list(header["accuracies"])
    state.best = parts["best"] or _copy_weights(state.model)
    state.seconds, state.sessions = float(header["seconds"]), int(header["sittings"]) + 1


def _group_by_prefix(tensors: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    groups = defaultdict[str, dict[str, Tensor]](dict)
    for name, one in tensors.items():
        prefix, _, rest = name.partition(".")
        groups[prefix][rest] = one
    return groups


def _copy_weights(model: nn.Module) -> dict[str, Tensor]:
    """Copies, because safetensors refuses two tensors that share memory."""
    return {name: one.detach().clone() for name, one in model.state_dict().items()}


def run_epochs(
    epoch: Callable[[int, TrainingState, Progress], None],
    state: TrainingState,
    stopping: EarlyStopping,
    *,
    checkpoint: Checkpoint | None,
    progress: Progress,
) -> None:
    """Train until `stopping` ends it; with `checkpoint`, resume and save after each epoch.

    `epoch` visits every training text once, then records the dev score in the state.
    """
    started = time.process_time()
    if checkpoint is not None:
        remove_drafts(checkpoint.folder)
        checkpoint.restore(state)
    while not stopping.should_stop(state):
        epoch(len(state.scores), state, progress)
        now = time.process_time()
        state.seconds, started = state.seconds + now - started, now
        if checkpoint is not None:
            checkpoint.save(state)


def shuffled_batches(
    encoded: Sequence[Encoded], epoch: int, *, batch: int, seed: int
) -> Iterator[list[int]]:
    """Batches of similar length: texts sorted with ± 10 % noise on lengths, batches shuffled."""
    draw = generator(seed, f"training epoch {epoch}")
    lengths = np.array([len(one.ids) for one in encoded])
    order = np.argsort(lengths * draw.uniform(0.9, 1.1, len(encoded)), kind="stable")
    cuts = [order[at : at + batch] for at in range(0, len(order), batch)]
    for index in draw.permutation(len(cuts)):
        yield cuts[index].tolist()


def require_finite(value: Tensor, name: str, *, rate: float) -> None:
    """Raise ConfigError if a loss or a gradient is NaN or infinite."""
    if not bool(value.isfinite().all()):
        raise ConfigError(
            f"Training diverged: {name} is not finite. Choose a learning rate below {rate:g}."
        )
