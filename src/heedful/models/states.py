"""What a model knows of each token, layer by layer: its word vectors, then its states."""

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.errors import NotApplicable
from heedful.models.base import ShowsStates, Subject

Read = tuple[Float[Tensor, "B C"], list[Float[Tensor, "B T _"]]]
"""The output of a pass, and the states of its layers."""


def read_layers(subject: Subject, batch: Batch, embedded: Float[Tensor, "B T E"]) -> Read:
    """The output and every layer's states: of one attention over states, the vectors and those."""
    if isinstance(subject, ShowsStates):
        return subject.read_states(batch, embedded)
    forward = subject.forward(batch, embedded)
    return forward.logits, [embedded, forward.states]


def layer_around(model: nn.Module, name: str) -> str | None:
    """The innermost member of a list of modules that a module is in, or None."""
    parts = name.split(".")
    for depth in range(len(parts), 0, -1):
        around = ".".join(parts[:depth])
        if isinstance(model.get_submodule(around.rpartition(".")[0]), nn.ModuleList):
            return around
    return None


def text_layers(
    model: nn.Module, attentions: tuple[str, ...], reader: nn.Module
) -> list[nn.Module]:
    """The layers that read the text, those around the attentions in `reader`, each once."""
    inside = {id(one) for one in reader.modules()}
    found: dict[str, None] = {}
    for name in attentions:
        if id(model.get_submodule(name)) in inside:
            around = layer_around(model, name)
            if around is None:
                raise NotApplicable(f"The layers of this model cannot be found: {name} is in none.")
            found[around] = None
    return [model.get_submodule(one) for one in found]


class Watch:
    """Hooks on layers that keep what enters the first and what leaves each, in order of the pass.

    A layer that is used over and over is met as often.
    """

    def __init__(self, batch: Batch, *, tokens_first: bool) -> None:
        self.batch, self.tokens_first = batch, tokens_first
        self.states: list[Tensor] = []

    def on(self, layers: list[nn.Module]) -> list[Any]:
        """The handles of the hooks."""
        before = [one.register_forward_pre_hook(self._enter, with_kwargs=True) for one in layers]
        return before + [one.register_forward_hook(self._leave) for one in layers]

    def _enter(self, _: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not self.states:
            self._keep(args[0] if args else kwargs.get("hidden_states"))

    def _leave(self, _: object, __: object, output: Any) -> None:
        self._keep(output[0] if isinstance(output, tuple) else output)

    def _keep(self, states: Any) -> None:
        if isinstance(states, Tensor) and states.dim() == 3 and self.tokens_first:
            states = states.transpose(0, 1)
        if not isinstance(states, Tensor) or states.shape[:2] != self.batch.ids.shape:
            raise NotApplicable("This model's layers do not show one state per token.")
        self.states.append(states.detach())
