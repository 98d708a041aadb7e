"""The hidden states of a model: find its layers, and record what enters and leaves them."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.errors import NotApplicable
from heedful.models.attention_access.layer_hooks import (
    forward_hooks,
    input_states,
    output_states,
    replace_input_states,
)
from heedful.models.protocols import HasAttentionCalls, HasHiddenStates, Subject

LogitsAndStates = tuple[Float[Tensor, "B C"], list[Float[Tensor, "B T _"]]]
"""The logits of a pass and the hidden states of its layers."""


def read_hidden_states(
    subject: Subject, batch: Batch, embedded: Float[Tensor, "B T E"]
) -> LogitsAndStates:
    """Logits and hidden states by layer; of a recurrent model, its embeddings and states."""
    if isinstance(subject, HasHiddenStates):
        return subject.read_states(batch, embedded)
    forward = subject.forward(batch, embedded)
    return forward.logits, [embedded, forward.states]


def find_layers(model: nn.Module, attentions: Iterable[str]) -> list[nn.Module]:
    """The innermost elements of ModuleLists that contain the attentions, in order, each once."""
    layers: dict[nn.Module, None] = {}
    for name in attentions:
        parts = name.split(".")
        modules = [model.get_submodule(".".join(parts[:depth])) for depth in range(len(parts) + 1)]
        inside = [one for around, one in pairwise(modules) if isinstance(around, nn.ModuleList)]
        if not inside:
            raise NotApplicable(
                f"The layers of this model are not found: {name} is in no ModuleList."
            )
        layers[inside[-1]] = None
    return list(layers)


def find_attention_layers(
    subject: HasAttentionCalls, method: str, *, turned: bool = False
) -> list[nn.Module]:
    """The layers that contain the attentions, one attention each.

    Layers with (T, B, D) states are refused unless the caller transposes them (`turned`).
    """
    if subject.access.tokens_first and not turned:
        raise NotApplicable(f"{method} needs layers that are given one state per token.")
    attentions = set(subject.access.modules)  # a layer may be applied several times
    layers = find_layers(subject.model, subject.access.modules)
    if len(layers) != len(attentions):
        raise NotApplicable(
            f"{method} needs layers of one attention each; {len(layers)} layers of this model hold "
            f"{len(attentions)} attentions."
        )
    return layers


@dataclass(eq=False)
class StateRecorder:
    """Records inputs and outputs of layers, in the order of the pass, and may replace inputs.

    A layer that is applied several times is recorded each time.
    """

    batch: Batch
    method: str  # named in errors
    tokens_first: bool = False  # the layers use (T, B, D) states; records are (B, T, D)
    given: Sequence[Float[Tensor, "B T D"]] | None = None  # in place of the layers' inputs
    layer_inputs: list[Tensor] = field(default_factory=list)
    layer_outputs: list[Tensor] = field(default_factory=list)

    def recording(self, layers: Iterable[nn.Module]) -> AbstractContextManager[None]:
        """Record these layers inside the block."""
        return forward_hooks(layers, self._enter, self._leave)

    def _enter(self, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.layer_inputs.append(self._state_per_token(input_states(args, kwargs)))
        if self.given is None:
            return None
        return replace_input_states(args, kwargs, self.given[len(self.layer_inputs) - 1])

    def _leave(self, _: nn.Module, __: object, ___: object, output: Any) -> None:
        self.layer_outputs.append(self._state_per_token(output_states(output)))

    def _state_per_token(self, states: Any) -> Tensor:
        if isinstance(states, Tensor) and states.dim() == 3 and self.tokens_first:
            states = states.transpose(0, 1)
        return require_states(states, self.batch, self.method)


def require_states(states: Any, batch: Batch, method: str) -> Tensor:
    """Return the states; raise NotApplicable unless there is one per token of each text."""
    if not isinstance(states, Tensor) or states.shape[:2] != batch.ids.shape:
        raise NotApplicable(f"{method} needs layers that are given one state per token.")
    return states
