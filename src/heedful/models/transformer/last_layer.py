"""Shortcuts through the last layer of a transformer: compute one position instead of all.

`LastLayerReplay`: if only the pooled position's row of the last layer changes, nothing before that
layer changes, and its other positions do not matter. So the last layer runs on that one position,
with the outputs Σ weights · values of its heads given.

`FirstPositionOnly`: a classifier that pools [CLS] needs no other position behind its last attention
block; with six layers, a tenth of the work.

Neither is assumed for a family: a shortcut is used only if it reproduces the model's own logits.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.errors import NotApplicable
from heedful.core.values import Forward
from heedful.models.attention_access.access import AttentionAccess, model_lock
from heedful.models.attention_access.layer_hooks import (
    forward_hooks,
    input_states,
    output_count,
    output_states,
    replace_input_states,
    skipped_layers,
)
from heedful.models.attention_access.recorder import HeadOutput
from heedful.models.internals.closeness import is_close
from heedful.models.internals.hidden_states import find_layers
from heedful.models.protocols import HasAttentionCalls

SHORTCUT_TOLERANCE = 1e-5  # largest difference of the logits, relative to the largest logit


@dataclass(frozen=True, eq=False)
class LastLayerReplay:
    """A decoder of the rows at the pooled position of the last layer."""

    subject: HasAttentionCalls
    last: nn.Module
    skipped: dict[nn.Module, int]  # the layers before, with the lengths of their outputs
    state: Float[Tensor, "B D"]  # input of the last layer at the position
    weights: Float[Tensor, "B H T"]  # of the position, in the last layer
    values: Float[Tensor, "B H T d"]
    single: Batch  # only the token at the position

    @classmethod
    def build(
        cls, subject: HasAttentionCalls, batch: Batch, forward: Forward
    ) -> "LastLayerReplay | None":
        """Return the replay if it applies to this model and is exact, else None."""
        position, count = subject.position(batch), len(forward.maps)
        if subject.access.path != "interface" or position is None or forward.rows is None:
            return None
        if subject.scope.layer != count - 1 or subject.access.calls != count:  # encoder–decoder
            return None
        replay = _record_last_layer(subject, batch, position)
        if replay is None:
            return None
        with torch.no_grad():
            replayed = replay(forward.rows.detach())
        logits, tolerance = forward.logits.detach(), 0.1 * subject.tolerance
        return replay if is_close(logits, replayed, tolerance=tolerance) else None

    def __call__(self, weights: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        many = weights.reshape(-1, *weights.shape[-3:])
        size = max(1, self.subject.max_batch_tokens // len(self.single))
        logits = [self._decode(some) for some in torch.split(many, size)]
        return torch.cat(logits).reshape(*weights.shape[:-3], len(self.single), -1)

    def _decode(self, rows: Float[Tensor, "K B R T"]) -> Float[Tensor, "K B C"]:
        mixed = self._head_outputs(rows).flatten(0, 1)[:, :, None]
        batch = self.single.repeat_texts(len(rows))
        states = self.state.expand(len(rows), -1, -1).flatten(0, 1)[:, None]
        access = AttentionAccess(self.subject.model, "interface")

        def enter(_: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return replace_input_states(args, kwargs, states)

        with (
            access.patched(lambda _: HeadOutput(mixed), keep=False) as recorder,
            forward_hooks([self.last], enter),
            skipped_layers(self.skipped),
            torch.autocast(states.device.type, torch.bfloat16, enabled=self.subject.bfloat16),
        ):
            logits = self.subject.logits(batch).to(rows.dtype)
        if recorder.count != 1:
            raise RuntimeError(f"The replay of one layer computed {recorder.count} attentions.")
        return logits.reshape(len(rows), len(self.single), -1)

    def _head_outputs(self, rows: Float[Tensor, "K B R T"]) -> Float[Tensor, "K B H D"]:
        values, head = self.values, self.subject.scope.head
        rows = rows.to(values)
        if head is None:
            return torch.einsum("kbht,bhtd->kbhd", rows, values)
        own = self.weights.to(values)  # heads that are not edited keep their rows
        mixed = torch.einsum("bht,bhtd->bhd", own, values).expand(len(rows), -1, -1, -1)
        edited = torch.einsum("kbt,btd->kbd", rows[:, :, 0], values[:, head])
        which = torch.arange(values.shape[1], device=values.device) == head
        return torch.where(which[:, None], edited[:, :, None], mixed)


def _record_last_layer(
    subject: HasAttentionCalls, batch: Batch, position: Int[Tensor, "B"]
) -> LastLayerReplay | None:
    """Record the input and the attention of the last layer in one pass."""
    layers = _distinct_layers(subject.access)
    if layers is None:
        return None
    entered: list[Any] = []
    counts: dict[nn.Module, int] = {}

    def enter(_: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        entered.append(input_states(args, kwargs))

    def leave(layer: nn.Module, _: object, __: object, output: Any) -> None:
        counts[layer] = output_count(output)

    with (
        model_lock(subject.model),
        forward_hooks(layers[-1:], enter),
        forward_hooks(layers[:-1], leave=leave),
        torch.no_grad(),
    ):
        _, recorder = subject.run(batch)
    states, call = entered[0], recorder.calls[-1]
    if not isinstance(states, Tensor) or states.shape[:2] != batch.ids.shape or call.values is None:
        return None
    texts = torch.arange(len(batch))
    state, weights = states[texts, position], call.weights[texts, :, position]
    single = batch.keep_tokens(texts, torch.arange(batch.ids.shape[1]) == position[:, None])
    return LastLayerReplay(subject, layers[-1], counts, state, weights, call.values, single)


def _distinct_layers(access: AttentionAccess) -> list[nn.Module] | None:
    """The layers in order if each attention has one of its own, else None."""
    try:
        layers = find_layers(access.model, access.modules)
    except NotApplicable:
        return None
    return layers if len(layers) == len(access.modules) else None


@dataclass(frozen=True, eq=False)
class FirstPositionOnly:
    """The last layer, and the block inside it that holds its attention."""

    layer: nn.Module
    block: nn.Module

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Compute only the first position behind the block, in this thread's passes."""
        width: list[int] = []

        def cut(_: nn.Module, __: object, ___: object, output: Any) -> Any:
            width.append(output_states(output).shape[1])
            return _with_changed_states(output, lambda states: states[:, :1])

        def widen(_: nn.Module, __: object, ___: object, output: Any) -> Any:
            return _with_changed_states(output, lambda states: states.expand(-1, width.pop(), -1))

        with forward_hooks([self.block], leave=cut), forward_hooks([self.layer], leave=widen):
            yield


def find_first_position_only(
    access: AttentionAccess, run: Callable[[], Float[Tensor, "B C"]]
) -> FirstPositionOnly | None:
    """Return the shortcut if it leaves the logits of this model unchanged, else None.

    `run` passes texts of several tokens through the model and returns their logits.
    """
    layers = _distinct_layers(access)
    if layers is None or access.tokens_first:
        return None
    attention = access.model.get_submodule(access.modules[-1])
    blocks = [child for child in layers[-1].children() if attention in child.modules()]
    if not blocks:
        return None
    shortcut = FirstPositionOnly(layers[-1], blocks[0])
    with model_lock(access.model), torch.no_grad():
        before = run()
        with shortcut.applied():
            after = run()
    return shortcut if is_close(after, before, tolerance=SHORTCUT_TOLERANCE) else None


def _with_changed_states(output: Any, change: Callable[[Tensor], Tensor]) -> Any:
    states = change(output_states(output))
    return (states, *output[1:]) if isinstance(output, tuple) else states
