"""The hidden states of a model: find its layers, and record what enters and leaves them."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
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


def find_layers(model: nn.Module, attentions: Iterable[str]) -> dict[str, nn.Module | None]:
    """For each attention, the innermost element of a ModuleList that contains it, or None."""
    return {name: _find_layer(model, name) for name in attentions}


def _find_layer(model: nn.Module, name: str) -> nn.Module | None:
    while name:
        parent = name.rpartition(".")[0]
        if isinstance(model.get_submodule(parent), nn.ModuleList):
            return model.get_submodule(name)
        name = parent
    return None


def find_attention_layers(
    subject: HasAttentionCalls, method: str, *, turned: bool = False
) -> list[nn.Module]:
    """The layers that contain the attentions, one attention each.

    Layers with (T, B, D) states are refused unless the caller transposes them (`turned`).
    """
    if subject.access.tokens_first and not turned:
        raise NotApplicable(f"{method} needs layers that are given one state per token.")
    layers: dict[nn.Module, None] = {}
    for name, layer in find_layers(subject.model, subject.access.modules).items():
        if layer is None or layer in layers:
            raise NotApplicable(
                f"{method} needs layers of one attention each, in a ModuleList; "
                f"{name} is in none, or shares its layer with another attention."
            )
        layers[layer] = None
    return list(layers)


def find_text_layers(
    model: nn.Module, attentions: Iterable[str], encoder: nn.Module
) -> list[nn.Module]:
    """The layers that contain the attentions inside `encoder`, each once."""
    inside = set(encoder.modules())
    names = [name for name in attentions if model.get_submodule(name) in inside]
    layers: dict[nn.Module, None] = {}
    for name, layer in find_layers(model, names).items():
        if layer is None:
            raise NotApplicable(
                f"The layers of this model are not found: {name} is in no ModuleList."
            )
        layers[layer] = None
    return list(layers)


class StateRecorder:
    """Records inputs and outputs of layers, in the order of the pass, and may replace inputs.

    A layer that is applied several times is recorded each time.

    Args:
        batch: The texts of the pass.
        method: Named in errors.
        tokens_first: The layers use (T, B, D) states; records are (B, T, D).
        given: States to put in place of the layers' inputs.
    """

    def __init__(
        self,
        batch: Batch,
        method: str,
        *,
        tokens_first: bool = False,
        given: Sequence[Float[Tensor, "B T D"]] | None = None,
    ) -> None:
        self.batch, self.method, self.tokens_first = batch, method, tokens_first
        self.given = given
        self.layer_inputs: list[Tensor] = []
        self.layer_outputs: list[Tensor] = []

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
