"""What a model knows of each token, layer by layer: its word vectors, then its states."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.errors import NotApplicable
from heedful.models.attention_access.layer_hooks import (
    input_states,
    layer_hooks,
    output_states,
    replace_input_states,
)
from heedful.models.protocols import HasHiddenStates, Subject
from heedful.models.transformer.last_layer_replay import ReplayableSubject

LogitsAndStates = tuple[Float[Tensor, "B C"], list[Float[Tensor, "B T _"]]]
"""The output of a pass, and the states of its layers."""


def read_hidden_states(
    subject: Subject, batch: Batch, embedded: Float[Tensor, "B T E"]
) -> LogitsAndStates:
    """The output and every layer's states: of one attention over states, the vectors and those."""
    if isinstance(subject, HasHiddenStates):
        return subject.read_states(batch, embedded)
    forward = subject.forward(batch, embedded)
    return forward.logits, [embedded, forward.states]


def find_enclosing_layer(model: nn.Module, name: str) -> str | None:
    """The innermost member of a list of modules that a module is in, or None."""
    parts = name.split(".")
    for depth in range(len(parts), 0, -1):
        around = ".".join(parts[:depth])
        if isinstance(model.get_submodule(around.rpartition(".")[0]), nn.ModuleList):
            return around
    return None


def find_attention_layers(
    subject: ReplayableSubject, method: str, *, turned: bool = False
) -> list[nn.Module]:
    """The layers around the attentions, of one attention each.

    Those with tokens on their first axis only for who can turn that round.
    """
    if subject.access.tokens_first and not turned:
        raise NotApplicable(f"{method} needs layers that are given one state per token.")
    found: dict[str, str] = {}
    for name in dict.fromkeys(subject.access.modules):
        around = find_enclosing_layer(subject.model, name)
        if around is None or around in found:
            raise NotApplicable(
                f"{method} needs layers of one attention each, in a list; "
                f"{name} is in none, or shares its layer with another attention."
            )
        found[around] = name
    return [subject.model.get_submodule(one) for one in found]


def find_text_layers(
    model: nn.Module, attentions: tuple[str, ...], reader: nn.Module
) -> list[nn.Module]:
    """The layers that read the text, those around the attentions in `reader`, each once."""
    inside = {id(one) for one in reader.modules()}
    found: dict[str, None] = {}
    for name in attentions:
        if id(model.get_submodule(name)) in inside:
            around = find_enclosing_layer(model, name)
            if around is None:
                raise NotApplicable(f"The layers of this model cannot be found: {name} is in none.")
            found[around] = None
    return [model.get_submodule(one) for one in found]


class StateRecorder:
    """What enters and what leaves each layer, in order of the pass; other states may be put in.

    A layer that is used over and over is met as often. `method` is who asks; with `tokens_first`
    the layers have tokens on their first axis, and what is kept has texts there.
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
        self.entered: list[Tensor] = []
        self.left: list[Tensor] = []

    def on(self, layers: Iterable[nn.Module]) -> AbstractContextManager[None]:
        """Inside the block these layers are watched."""
        return layer_hooks(layers, self._enter, self._leave)

    def _enter(self, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.entered.append(self._state_per_token(input_states(args, kwargs)))
        if self.given is None:
            return None
        return replace_input_states(args, kwargs, self.given[len(self.entered) - 1])

    def _leave(self, _: nn.Module, output: Any) -> None:
        self.left.append(self._state_per_token(output_states(output)))

    def _state_per_token(self, states: Any) -> Tensor:
        if isinstance(states, Tensor) and states.dim() == 3 and self.tokens_first:
            states = states.transpose(0, 1)
        require_states(states, self.batch, self.method)
        kept: Tensor = states
        return kept


def require_states(states: Any, batch: Batch, method: str) -> None:
    """Refuse what is not one state for each token of each text."""
    if not isinstance(states, Tensor) or states.shape[:2] != batch.ids.shape:
        raise NotApplicable(f"{method} needs layers that are given one state per token.")
