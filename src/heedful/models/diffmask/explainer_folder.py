"""The folder of a trained explainer: weights as safetensors, what it is for as JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from heedful.core.atomic_files import remove_file, save_atomic, write_atomic
from heedful.core.batch import Batch
from heedful.core.errors import ModelError, NotApplicable
from heedful.models.diffmask.gate_network import GateNetwork
from heedful.models.internals.hidden_states import read_hidden_states
from heedful.models.protocols import HasFingerprint, Subject

EXPLAINER_WEIGHTS_FILE, EXPLAINER_SETTINGS_FILE = "explainer.safetensors", "explainer.json"
EXPLAINER_KIND, EXPLAINER_SCHEMA = "diffmask", 1
TRAIN_COMMAND = "heedful diffmask MODEL DATA --out DIR"

_weight_digests: WeakKeyDictionary[nn.Module, tuple[tuple[int, ...], str]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Explainer:
    """Gates, the model that they were trained for, and how they came about."""

    gates: GateNetwork
    model: str
    family: str
    history: Mapping[str, Any]

    def open(
        self, subject: Subject, batch: Batch, embedded: Float[Tensor, "B T E"]
    ) -> Float[Tensor, "L B T"]:
        """The probability that each token is open at each layer of its model."""
        self.require(subject)
        with torch.no_grad():
            _, states = read_hidden_states(subject, batch, embedded)
            return self.gates.open([one.double().cpu() for one in states])

    def require(self, subject: Subject) -> None:
        """Refuse another model than the one that it was trained for."""
        if model_identity(subject) != self.model:
            raise NotApplicable(
                f"The explainer was trained for another model ({self.family}) than this one "
                f"({subject.family}), or for other weights or classes of it. Train one for this "
                f"model: {TRAIN_COMMAND}."
            )


def save_explainer(explainer: Explainer, folder: Path) -> None:
    """Write the folder; without its settings it is none, so it is never half old, half new."""
    weights = {
        name: one.detach().float().clone() for name, one in explainer.gates.state_dict().items()
    }
    told = {
        "schema": EXPLAINER_SCHEMA,
        "kind": EXPLAINER_KIND,
        "model": explainer.model,
        "family": explainer.family,
        "widths": explainer.gates.widths,
        "history": explainer.history,
    }
    remove_file(folder / EXPLAINER_SETTINGS_FILE)
    save_atomic(folder / EXPLAINER_WEIGHTS_FILE, partial(_save, weights))
    write_atomic(folder / EXPLAINER_SETTINGS_FILE, json.dumps(told, indent=1))


def load_explainer(folder: str | Path) -> Explainer:
    """Read the folder of an explainer; read once, as long as it is the same."""
    path = Path(folder) / EXPLAINER_SETTINGS_FILE
    try:
        told = path.stat()
    except OSError as error:
        raise ModelError(
            f"No explainer at {folder}: {EXPLAINER_SETTINGS_FILE} is missing. Train one: {TRAIN_COMMAND}."
        ) from error
    return _load(path.parent.absolute(), told.st_mtime_ns, told.st_size)


@lru_cache(maxsize=4)
def _load(folder: Path, *_: int) -> Explainer:
    try:
        told = json.loads((folder / EXPLAINER_SETTINGS_FILE).read_text(encoding="utf-8"))
        if (told["kind"], told["schema"]) != (EXPLAINER_KIND, EXPLAINER_SCHEMA):
            raise ValueError(f"it is {told['kind']!r}, schema {told['schema']!r}")
        weights = load_file(folder / EXPLAINER_WEIGHTS_FILE)
        with torch.random.fork_rng(devices=[]):  # new layers draw from torch's own stream
            gates = GateNetwork([int(one) for one in told["widths"]], weights["blank"])
        gates.load_state_dict(weights)
        model, family, history = str(told["model"]), str(told["family"]), dict(told["history"])
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise ModelError(f"{folder} holds no usable explainer: {error}. Train it anew.") from error
    if not all(bool(one.isfinite().all()) for one in weights.values()):
        raise ModelError(
            f"{folder / EXPLAINER_WEIGHTS_FILE} holds values that are not finite. Train it anew."
        )
    return Explainer(gates.double().eval().requires_grad_(False), model, family, history)


def model_identity(subject: Subject) -> str:
    """Which model this is, whatever attention of it is under audit and in whatever precision.

    Weights and classes; of a subject that shows no module what it says itself.
    """
    for name in ("network", "model"):
        if isinstance(module := getattr(subject, name, None), nn.Module):
            return _sha256_hex(repr(subject.labels).encode(), _digest_weights(module).encode())
    own = subject.fingerprint() if isinstance(subject, HasFingerprint) else subject.family
    return _sha256_hex(repr((own, subject.labels)).encode())


def _digest_weights(module: nn.Module) -> str:
    """Digest of all weights, computed again only after they were written to."""
    weights = module.state_dict()
    versions = tuple(one._version for one in weights.values())
    if module not in _weight_digests or _weight_digests[module][0] != versions:
        parts = (
            part
            for name, one in sorted(weights.items())
            for part in (name.encode(), one.detach().float().cpu().contiguous().numpy().tobytes())
        )
        _weight_digests[module] = versions, _sha256_hex(*parts)
    return _weight_digests[module][1]


def _sha256_hex(*parts: bytes) -> str:
    found = sha256()
    for one in parts:
        found.update(one)
    return found.hexdigest()


def _save(weights: dict[str, Tensor], draft: str) -> None:
    try:
        save_file(weights, draft)
    except SafetensorError as error:  # its word for a full disk, too
        raise OSError(str(error)) from error
