"""Other attention rows in the last layer, at the cost of one position instead of the whole model.

If only the pooled position's row of the last layer changes, nothing before that layer changes, and
no other position's state of it matters. So the last layer is run on that one position, its heads'
outputs Σ weights · values given from outside, and what follows it as always. That this is the
model's own output is not assumed of a family but seen: under the model's own rows it must be.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.values import Forward
from heedful.models.attention_access.access import AttentionAccess, model_lock
from heedful.models.attention_access.layer_hooks import (
    input_states,
    layer_hooks,
    output_count,
    replace_input_states,
    skipped_layers,
)
from heedful.models.attention_access.recorder import (
    AttentionCall,
    AttentionRecorder,
    Edit,
    HeadOutput,
)
from heedful.models.attention_access.scope import Scope


@runtime_checkable
class ReplayableSubject(Protocol):
    """What of a subject the replay needs."""

    @property
    def model(self) -> Any: ...

    @property
    def scope(self) -> Scope: ...

    @property
    def access(self) -> AttentionAccess: ...

    @property
    def max_batch_tokens(self) -> int: ...

    @property
    def half(self) -> bool: ...

    @property
    def tolerance(self) -> float: ...

    def position(self, batch: Batch) -> Int[Tensor, "B"] | None: ...

    def logits(self, batch: Batch) -> Float[Tensor, "B C"]: ...

    def run(
        self,
        batch: Batch,
        edit: Edit | None = None,
        *,
        embedded: Float[Tensor, "B T E"] | None = None,
        keep: bool = True,
    ) -> tuple[Float[Tensor, "B C"], AttentionRecorder]: ...


@dataclass(frozen=True, eq=False)
class LastLayerReplay:
    """Decodes rows of the last layer's pooled position."""

    subject: ReplayableSubject
    layers: nn.ModuleList
    returns: tuple[int, ...]  # how many things each layer gives back; 0 for a bare tensor
    state: Float[Tensor, "B D"]  # what enters the last layer at the position
    call: AttentionCall  # the attention of the last layer
    single: Batch  # the position's token alone

    @classmethod
    def of(
        cls, subject: ReplayableSubject, batch: Batch, forward: Forward
    ) -> "LastLayerReplay | None":
        """The short cut, where this model takes it and it is exact; else None."""
        position = subject.position(batch)
        last = subject.scope.layer == len(forward.maps) - 1
        if subject.access.path != "interface" or position is None or not last or not forward.maps:
            return None
        if subject.access.calls != len(forward.maps):  # an encoder–decoder
            return None
        replay = _record_last_layer(subject, batch, position)
        if replay is None or forward.rows is None:
            return None
        with torch.no_grad():
            again = replay(forward.rows.detach())
        gap = float((again - forward.logits.detach()).abs().max())
        return (
            replay if gap <= 0.1 * subject.tolerance * max(1.0, float(again.abs().max())) else None
        )

    def __call__(self, weights: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        many = weights.reshape(-1, *weights.shape[-3:])
        size = max(1, self.subject.max_batch_tokens // len(self.single))
        found = [self._decode(some) for some in torch.split(many, size)]
        return torch.cat(found).reshape(*weights.shape[:-3], len(self.single), -1)

    def _decode(self, rows: Float[Tensor, "K B R T"]) -> Float[Tensor, "K B C"]:
        mixed = self._head_outputs(rows).flatten(0, 1)[:, :, None]
        batch = self.single.repeat_texts(len(rows))
        states = self.state.expand(len(rows), -1, -1).flatten(0, 1)[:, None]
        access = AttentionAccess(self.subject.model, "interface")
        half = torch.autocast(states.device.type, torch.bfloat16, enabled=self.subject.half)
        with (
            access.open(lambda _: HeadOutput(mixed), keep=False) as recorder,
            self._only_last_layer(states),
            half,
        ):
            logits = self.subject.logits(batch).to(rows.dtype)
        if recorder.count != 1:
            raise RuntimeError(f"The replay of one layer heard {recorder.count} attentions.")
        return logits.reshape(len(rows), len(self.single), -1)

    def _head_outputs(self, rows: Float[Tensor, "K B R T"]) -> Float[Tensor, "K B H D"]:
        values, head = self.call.values, self.subject.scope.head
        if values is None:
            raise RuntimeError("The replay was made without values.")
        rows = rows.to(values)
        if head is None:
            return torch.einsum("kbht,bhtd->kbhd", rows, values)
        own = self.call.weights.to(values)  # heads that are not edited stay as they are
        mixed = torch.einsum("bht,bhtd->bhd", own[:, :, 0], values).expand(len(rows), -1, -1, -1)
        edited = torch.einsum("kbt,btd->kbd", rows[:, :, 0], values[:, head])
        which = torch.arange(values.shape[1], device=values.device) == head
        return torch.where(which[:, None], edited[:, :, None], mixed)

    @contextmanager
    def _only_last_layer(self, states: Float[Tensor, "N 1 D"]) -> Iterator[None]:
        """All layers but the last pass on what they get; the last one gets the given states."""

        def enter(_: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return replace_input_states(args, kwargs, states)

        before = dict(zip(list(self.layers)[:-1], self.returns, strict=False))
        with layer_hooks(self.layers[-1:], enter), skipped_layers(before):
            yield


def _record_last_layer(
    subject: ReplayableSubject, batch: Batch, position: Int[Tensor, "B"]
) -> LastLayerReplay | None:
    """One pass that keeps what enters the last layer, and what its attention is made of."""
    found: dict[str, Any] = {}
    returns: list[int] = []
    layers = find_layer_list(subject.model, subject.access.modules)
    if layers is None:
        return None

    def entered(layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if layer is layers[-1]:
            found["states"] = input_states(args, kwargs)

    def left(_: object, output: Any) -> None:
        returns.append(output_count(output))

    with model_lock(subject.model), layer_hooks(layers, entered, left), torch.no_grad():
        _, recorder = subject.run(batch)
    states, call = found.get("states"), recorder.calls[-1]
    if not isinstance(states, Tensor) or states.shape[:2] != batch.ids.shape or call.values is None:
        return None
    texts = torch.arange(len(batch))
    own = call.weights[texts, :, position][:, :, None]
    call = AttentionCall(call.module, call.order, own, call.values)
    return LastLayerReplay(
        subject,
        layers,
        tuple(returns),
        states[texts, position],
        call,
        _single_token_batch(batch, position),
    )


def find_layer_list(model: nn.Module, modules: Sequence[str]) -> nn.ModuleList | None:
    """The list of layers that hold the attentions, one each, in order."""
    if len(set(modules)) != len(modules):  # one layer used over and over
        return None
    parts = modules[-1].split(".")
    for depth in range(len(parts)):
        module = model.get_submodule(".".join(parts[:depth]))
        if isinstance(module, nn.ModuleList) and len(module) == len(modules):
            return module
    return None


def _single_token_batch(batch: Batch, position: Int[Tensor, "B"]) -> Batch:
    place = position[:, None]
    ones = torch.ones_like(place, dtype=torch.bool)
    types = None if batch.types is None else batch.types.gather(1, place)
    return Batch(batch.ids.gather(1, place), ones, ones, batch.instances, types)
