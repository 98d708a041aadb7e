"""The state of a training run, and the checkpoint file from which an interrupted run resumes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from heedful.core.atomic_files import remove_file, save_atomic
from heedful.core.errors import RunError

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

    def record_epoch(self, score: float, accuracy: float) -> None:
        """Append the scores of a finished epoch; copy its weights if it is the best so far."""
        self.scores.append(score)
        self.accuracies.append(accuracy)
        if self.best_epoch == len(self.scores) - 1:
            self.best = _copy_weights(self.model)


def save_checkpoint(state: TrainingState, folder: Path, identity: TrainingIdentity) -> None:
    """Write the state atomically: the previous checkpoint stays until the new one is complete."""
    tensors = {f"model.{name}": one for name, one in _copy_weights(state.model).items()}
    if state.best_epoch != len(state.scores) - 1:
        tensors |= {f"best.{name}": one for name, one in state.best.items()}
    for number, own in state.optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{number}.{name}": one.clone() for name, one in own.items()}
    header = {
        "schema": CHECKPOINT_SCHEMA,
        "identity": identity,
        "scores": state.scores,
        "accuracies": state.accuracies,
        "seconds": state.seconds,
        "sittings": state.sessions,
    }
    save_atomic(folder / CHECKPOINT_FILE, partial(_write_safetensors, tensors, json.dumps(header)))


def load_checkpoint(state: TrainingState, folder: Path, identity: TrainingIdentity) -> None:
    """Restore the state from the folder's checkpoint, if there is one."""
    path = folder / CHECKPOINT_FILE
    if not path.exists():
        return
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads(file.metadata()["training"])
            if header["schema"] != CHECKPOINT_SCHEMA:
                raise ValueError(f"its schema is {header['schema']!r}, not {CHECKPOINT_SCHEMA}")
            _require_same(header["identity"], identity, path)
            _restore_state(state, header, {name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise RunError(
            f"Training cannot resume from {path}: {error}. Remove the file to start again."
        ) from error


def delete_checkpoint(folder: Path) -> None:
    """Remove the checkpoint of a finished training run."""
    remove_file(folder / CHECKPOINT_FILE)


def _restore_state(
    state: TrainingState, header: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> None:
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "optimiser": {}}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        parts[part][rest] = tensor
    state.model.load_state_dict(parts["model"])
    own: dict[int, dict[str, Tensor]] = {}
    for name, tensor in parts["optimiser"].items():
        number, _, rest = name.partition(".")
        own.setdefault(int(number), {})[rest] = tensor
    groups = state.optimiser.state_dict()["param_groups"]
    state.optimiser.load_state_dict({"state": own, "param_groups": groups})
    state.scores, state.accuracies = list(header["scores"]), list(header["accuracies"])
    state.best = parts["best"] or _copy_weights(state.model)
    state.seconds, state.sessions = float(header["seconds"]), int(header["sittings"]) + 1


def _require_same(saved: TrainingIdentity, identity: TrainingIdentity, path: Path) -> None:
    expected = json.loads(json.dumps(identity))
    keys = (*expected, *(key for key in saved if key not in expected))
    if differing := [key for key in keys if saved.get(key) != expected.get(key)]:
        raise RunError(
            f"{path} belongs to another training run: it differs in {', '.join(differing)}. Give "
            "the same settings to resume that run, choose another --out, or remove the file."
        )


def _copy_weights(model: nn.Module) -> dict[str, Tensor]:
    """Copies, because safetensors refuses two tensors that share memory."""
    return {name: one.detach().clone() for name, one in model.state_dict().items()}


def _write_safetensors(tensors: dict[str, Tensor], header: str, draft: str) -> None:
    try:
        save_file(tensors, draft, metadata={"training": header})
    except SafetensorError as error:  # safetensors raises this for a full disk, too
        raise OSError(str(error)) from error
