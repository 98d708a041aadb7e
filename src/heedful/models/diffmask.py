"""DiffMask: gates predicted from a model's hidden states, and the folder of a trained explainer.

De Cao et al. (2020). For each layer a small network reads a token's input embedding and its state
in that layer, and predicts whether the token can be masked. A token is open at a layer if the gates
of all layers up to that one are open, so that deeper layers mask more.

A gate has the hard concrete distribution (Louizos et al., 2018): a sigmoid of noisy logits,
stretched to (−0.2, 1) and clipped at 0. It has mass at exactly 0 and none at exactly 1.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from heedful.core.atomic_files import remove_file, write_atomic
from heedful.core.batch import Batch
from heedful.core.errors import ConfigError, ModelError, NotApplicable
from heedful.models.internals.hidden_states import read_hidden_states
from heedful.models.protocols import HasFingerprint, Subject
from heedful.models.recurrent.model_folder import save_tensors

LOGIT_SCALE, INITIAL_LOGIT = 10.0, 5.0  # logits are initial ± scale: nearly all gates start open
MIN_PROBE_WIDTH = 16
EXPLAINER_WEIGHTS_FILE, EXPLAINER_SETTINGS_FILE = "explainer.safetensors", "explainer.json"
EXPLAINER_KIND, EXPLAINER_SCHEMA = "diffmask", 1
TRAIN_COMMAND = "heedful diffmask MODEL DATA --out DIR"

TEMPERATURE = 0.2
LOW, HIGH = -0.2, 1.0
SHIFT = TEMPERATURE * math.log(-LOW / HIGH)

_weight_digests: WeakKeyDictionary[nn.Module, tuple[tuple[int, ...], str]] = WeakKeyDictionary()


def hard_concrete(logits: Float[Tensor, "*K"], uniform: Float[Tensor, "*K"]) -> Float[Tensor, "*K"]:
    """Gates sampled from uniform numbers in (0, 1), differentiable in the logits.

    >>> hard_concrete(torch.tensor([-5.0, 0.0, 5.0]), torch.full((3,), 0.5))
    tensor([0.0000, 0.4000, 1.0000])
    """
    soft = ((uniform.logit() + logits) / TEMPERATURE).sigmoid()
    return (LOW + (HIGH - LOW) * soft).clamp(min=0.0, max=1.0)


def log_open_probability(logits: Float[Tensor, "*K"]) -> Float[Tensor, "*K"]:
    """log P(g > 0) = log σ(logit − τ log(−low/high)), in (−∞, 0).

    >>> log_open_probability(torch.tensor([0.0])).exp()
    tensor([0.5798])
    """
    return torch.nn.functional.logsigmoid(logits - SHIFT)


def blend_with_blank(
    vectors: Float[Tensor, "*K T E"], gates: Float[Tensor, "*K T"], blank: Float[Tensor, "E"]
) -> Float[Tensor, "*K T E"]:
    """g · x + (1 − g) · b: the vector where the gate is 1, the mask embedding where it is 0.

    >>> vectors, blank = torch.tensor([[4.0], [4.0]]), torch.tensor([0.0])
    >>> blend_with_blank(vectors, torch.tensor([1.0, 0.25]), blank)
    tensor([[4.],
            [1.]])
    """
    return gates[..., None] * vectors + (1 - gates[..., None]) * blank


class GateNetwork(nn.Module):
    """A network for every layer, and the vector that replaces a masked token.

    `widths` are those of the states by layer, starting with the input embeddings.
    """

    def __init__(self, widths: Sequence[int], blank: Float[Tensor, "E"]) -> None:
        super().__init__()
        self.widths = tuple(widths)
        self.blank = nn.Parameter(blank.detach().clone())
        self.probes = nn.ModuleList(_probe(self.widths[0] + width) for width in self.widths)

    def forward(self, states: Sequence[Float[Tensor, "B T _"]]) -> Float[Tensor, "L B T"]:
        """Gate logits for as many layers as there are states."""
        first, probes = states[0], list(self.probes)[: len(states)]
        both = zip(probes, states, strict=True)
        outputs = [probe(torch.cat([first, state], dim=-1)) for probe, state in both]
        return INITIAL_LOGIT + LOGIT_SCALE * torch.stack(outputs).squeeze(-1).tanh()

    def open_probability(self, states: Sequence[Float[Tensor, "B T _"]]) -> Float[Tensor, "L B T"]:
        """The probability that each token is open at each layer.

        Gates are drawn independently, so that their product is above 0 with the product of their
        probabilities.
        """
        return log_open_probability(self(states)).cumsum(0).exp()

    def layer_index(self, number: int) -> int:
        """The index of a layer; negative numbers count from the end."""
        count = len(self.widths)
        if not -count <= number < count:
            raise ConfigError(
                f"layer must be between {-count} and {count - 1}, not {number}: 0 is the input of "
                "the model."
            )
        return number % count


def _probe(width: int) -> nn.Module:
    """Two weight-normalised linear maps with tanh between them."""
    inner = max(MIN_PROBE_WIDTH, width // 8)
    return nn.Sequential(
        weight_norm(nn.Linear(width, inner)), nn.Tanh(), weight_norm(nn.Linear(inner, 1))
    )


@dataclass(frozen=True, eq=False)
class Explainer:
    """Gates, the identity of the model they were trained for, and the training history."""

    gates: GateNetwork
    model: str
    family: str
    history: Mapping[str, Any]

    def open_probability(
        self, subject: Subject, batch: Batch, embedded: Float[Tensor, "B T E"]
    ) -> Float[Tensor, "L B T"]:
        """The probability that each token is open at each layer."""
        self.require_model(subject)
        with torch.no_grad():
            _, states = read_hidden_states(subject, batch, embedded)
            return self.gates.open_probability([state.double().cpu() for state in states])

    def require_model(self, subject: Subject) -> None:
        """Raise NotApplicable for another model than the one it was trained for."""
        if model_identity(subject) != self.model:
            raise NotApplicable(
                f"The explainer was trained for another model ({self.family}) than this one "
                f"({subject.family}), or for other weights or classes of it. Train one for this "
                f"model: {TRAIN_COMMAND}."
            )


def save_explainer(explainer: Explainer, folder: Path) -> None:
    """Write the folder, settings last: an interruption never leaves a mixture of two explainers."""
    gates = explainer.gates.state_dict()
    weights = {name: one.detach().float().clone() for name, one in gates.items()}
    settings = {
        "schema": EXPLAINER_SCHEMA,
        "kind": EXPLAINER_KIND,
        "model": explainer.model,
        "family": explainer.family,
        "widths": explainer.gates.widths,
        "history": explainer.history,
    }
    remove_file(folder / EXPLAINER_SETTINGS_FILE)
    save_tensors(folder / EXPLAINER_WEIGHTS_FILE, weights)
    write_atomic(folder / EXPLAINER_SETTINGS_FILE, json.dumps(settings, indent=1))


def load_explainer(folder: str | Path) -> Explainer:
    """Load an explainer; cached until its settings file changes."""
    path = Path(folder) / EXPLAINER_SETTINGS_FILE
    try:
        stat = path.stat()
    except OSError as error:
        raise ModelError(
            f"No explainer at {folder}: {EXPLAINER_SETTINGS_FILE} is missing. Train one: "
            f"{TRAIN_COMMAND}."
        ) from error
    return _load(path.parent.absolute(), stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=4)
def _load(folder: Path, *_: int) -> Explainer:
    try:
        settings = json.loads((folder / EXPLAINER_SETTINGS_FILE).read_text(encoding="utf-8"))
        if (settings["kind"], settings["schema"]) != (EXPLAINER_KIND, EXPLAINER_SCHEMA):
            raise ValueError(f"it is {settings['kind']!r}, schema {settings['schema']!r}")
        weights = load_file(folder / EXPLAINER_WEIGHTS_FILE)
        with torch.random.fork_rng(devices=[]):  # new layers draw from torch's global generator
            gates = GateNetwork([int(width) for width in settings["widths"]], weights["blank"])
        gates.load_state_dict(weights)
        model, family = str(settings["model"]), str(settings["family"])
        history = dict(settings["history"])
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise ModelError(f"{folder} holds no usable explainer: {error}. Retrain it.") from error
    if not all(bool(one.isfinite().all()) for one in weights.values()):
        raise ModelError(
            f"{folder / EXPLAINER_WEIGHTS_FILE} holds values that are not finite. Retrain it."
        )
    return Explainer(gates.double().eval().requires_grad_(False), model, family, history)


def model_identity(subject: Subject) -> str:
    """A digest of a model's weights and classes, independent of precision and audited attention.

    For a subject without a torch module, a digest of its fingerprint or family.
    """
    for name in ("network", "model"):
        if isinstance(module := getattr(subject, name, None), nn.Module):
            return sha256((repr(subject.labels) + _digest_weights(module)).encode()).hexdigest()
    own = subject.fingerprint() if isinstance(subject, HasFingerprint) else subject.family
    return sha256(repr((own, subject.labels)).encode()).hexdigest()


def _digest_weights(module: nn.Module) -> str:
    """Digest of all weights, cached until they are modified."""
    weights = module.state_dict()
    versions = tuple(one._version for one in weights.values())
    if module not in _weight_digests or _weight_digests[module][0] != versions:
        digest = sha256()
        for name, one in sorted(weights.items()):
            digest.update(name.encode())
            digest.update(one.detach().float().cpu().contiguous().numpy().tobytes())
        _weight_digests[module] = versions, digest.hexdigest()
    return _weight_digests[module][1]
