"""A text's states taken apart into what each token gave, through all layers, to the logits.

As DecompX does (Modarressi et al., 2023), for any family: with attention weights, the scales of
norms and the slopes of activations held at what they are in the text's own pass, a layer is affine
in its states (see `linearised`). So a layer that is given one token's part alone gives,
less what it makes of zeros, that token's part of its output. What it makes of zeros are its biases;
they are shared out among the tokens before the next layer. One text at a time.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.errors import NotApplicable
from heedful.core.oom import is_out_of_memory
from heedful.models.attention_access.access import AttentionAccess
from heedful.models.attention_access.layer_hooks import (
    input_states,
    layer_hooks,
    output_count,
    output_states,
    replace_input_states,
    skipped_layers,
)
from heedful.models.attention_access.recorder import AttentionCall
from heedful.models.internals.attention_blocks import RECONSTRUCTION_TOLERANCE
from heedful.models.internals.hidden_states import find_attention_layers, require_states
from heedful.models.internals.linearised import (
    LinearisedModel,
    freeze_attention,
    linearised,
    replay_attention,
)
from heedful.models.transformer.subject import TransformerSubject

METHOD = "decompx"
SIZES = re.compile(r"\b(sizes?|shapes?)\b", re.IGNORECASE)
"""What torch speaks of where tensors do not fit each other."""
MAX_ELEMENTS = 2**27  # numbers in the parts of one text: half a gigabyte in single precision


@dataclass(eq=False)
class _RecordedLayer:
    """A layer as it was called: with what, what it gave, and which held parts are its own."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    begin: int
    end: int = 0
    returns: int = 0
    left: Tensor = field(default_factory=lambda: torch.empty(0))
    weights: Tensor = field(default_factory=lambda: torch.empty(0))

    def attend(self, call: AttentionCall) -> Tensor:
        """The layer's own weights, for every variant of its states."""
        return self.weights.expand_as(call.weights)

    @property
    def entered(self) -> Float[Tensor, "..."]:
        """The states that it was given."""
        states: Tensor = input_states(self.args, self.kwargs)
        return states


@dataclass(frozen=True, eq=False)
class LinearisedPass:
    """One text whose pass has been held, ready to be taken apart."""

    subject: TransformerSubject
    single: Batch
    layers: list[_RecordedLayer]
    held: LinearisedModel
    logits: Float[Tensor, "1 C"]

    @classmethod
    def of(
        cls, subject: TransformerSubject, single: Batch, vectors: Float[Tensor, "1 T E"]
    ) -> "LinearisedPass":
        """The pass of one text without padding, everything that is not linear in it held."""
        found: list[_RecordedLayer] = []
        vectors = vectors.detach().clone().requires_grad_()
        with linearised(subject.model) as held:

            def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
                found.append(
                    _RecordedLayer(module, *_detach_inputs(args, kwargs), begin=len(held.kept))
                )
                require_states(found[-1].entered, single, METHOD)

            def leave(_: object, output: Any) -> None:
                found[-1].end, found[-1].left = len(held.kept), output_states(output).detach()
                found[-1].returns = output_count(output)

            with layer_hooks(find_attention_layers(subject, METHOD), enter, leave):
                logits, recorder = subject.run(single, freeze_attention, embedded=vectors)
        if len(recorder.calls) != len(found):
            raise NotApplicable("decompx needs one attention in every layer.")
        for layer, call in zip(found, recorder.calls, strict=True):
            layer.weights = call.weights.detach()
        return cls(subject, single, found, held, logits.detach())

    def parts(self, weights: Float[Tensor, "C"], *, size: int) -> Float[Tensor, "T"]:
        """What each token gives to the weighted logits, biases shared out; `size` run at once."""
        states = self.layers[0].entered[0]
        length, width = states.shape
        if length * states.numel() > MAX_ELEMENTS:
            raise NotApplicable(
                f"decompx with shared biases keeps {length} × {length} × {width} numbers of this "
                f'text, more than {MAX_ELEMENTS}; biases="apart" keeps none of them.'
            )
        parts = states.new_zeros(length, length, width)
        parts[torch.arange(length), torch.arange(length)] = states
        for layer in self.layers:
            _require_sum(parts.sum(0), layer.entered[0], "what enters a layer")
            distribute_bias(parts, self._parts_through_layer(layer, parts, size=size))
        _require_sum(parts.sum(0), self.layers[-1].left[0], "what the last layer gives")
        with self._head_after_layers() as head:
            bias = head(torch.zeros_like(parts[:1])) @ weights
            scores = torch.cat([head(some) @ weights - bias for some in torch.split(parts, size)])
        distribute_bias(scores[:, None], bias)
        _require_sum(scores.sum(), self.logits[0] @ weights, "the logits")
        return scores

    def _parts_through_layer(
        self, layer: _RecordedLayer, parts: Float[Tensor, "T T D"], *, size: int
    ) -> Tensor:
        """Every part as it leaves the layer, in its place; what the layer makes of zeros."""
        bias = self._run(layer, torch.zeros_like(parts[:1]))
        for some in torch.split(parts, size):
            some.copy_(self._run(layer, some) - bias)
        return bias[0]

    def _run(self, layer: _RecordedLayer, states: Float[Tensor, "N T D"]) -> Float[Tensor, "N T D"]:
        """The layer on several variants of its states; one by one where it takes no more.

        Bloom's positions know how many texts there are: more of them do not fit in size.
        """
        try:
            return self._at_once(layer, states)
        except RuntimeError as reason:
            if is_out_of_memory(reason) or not SIZES.search(str(reason)):
                raise
            if len(states) == 1:
                raise NotApplicable(
                    f"decompx with shared biases runs {type(layer.module).__name__} on other "
                    f'states than its own, which it does not take ({reason}); try biases="apart".'
                ) from reason
        return torch.cat([self._run(layer, one) for one in torch.split(states, 1)])

    def _at_once(
        self, layer: _RecordedLayer, states: Float[Tensor, "N T D"]
    ) -> Float[Tensor, "N T D"]:
        args, kwargs = replace_input_states(layer.args, layer.kwargs, states)
        held = LinearisedModel(layer.module, self.held.kept[layer.begin : layer.end])
        access = AttentionAccess(self.subject.model, self.subject.access.path)
        with torch.no_grad(), held.replayed(), access.open(layer.attend, keep=False):
            left: Tensor = output_states(layer.module(*args, **kwargs))
        return left

    @contextmanager
    def _head_after_layers(self) -> Iterator[Callable[[Tensor], Tensor]]:
        """What follows the last layer, as a map from its states to the logits."""
        given: list[Tensor] = []
        inside = {at for layer in self.layers for at in range(layer.begin, layer.end)}
        rest = [part for at, part in enumerate(self.held.kept) if at not in inside]
        held = LinearisedModel(self.subject.model, rest)

        def head(states: Float[Tensor, "N T D"]) -> Float[Tensor, "N C"]:
            given[:] = [states]
            with torch.no_grad(), held.replayed():
                return self.subject.logits(self.single.repeat_texts(len(states)))

        def enter(_: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return replace_input_states(args, kwargs, given[0])

        skipped = {layer.module: layer.returns for layer in self.layers}
        with layer_hooks([self.layers[0].module], enter), skipped_layers(skipped):
            yield head


def distribute_bias(parts: Float[Tensor, "K *N D"], bias: Float[Tensor, "*N D"]) -> None:
    """A bias added to the parts, in proportion to |⟨bias, part⟩|; equally where all those are 0.

    >>> parts = torch.tensor([[1.0, 0.0], [3.0, 0.0]])
    >>> shared_out(parts, torch.tensor([4.0, 8.0]))
    >>> parts
    tensor([[2., 2.],
            [6., 6.]])
    """
    weights = torch.einsum("k...d,...d->k...", parts, bias).abs()
    total = weights.sum(0)
    shares = torch.where(total > 0, weights / torch.where(total > 0, total, 1.0), 1 / len(parts))
    parts.addcmul_(shares[..., None], bias)


def decompose_with_separate_bias(
    subject: TransformerSubject,
    batch: Batch,
    vectors: Float[Tensor, "B T E"],
    weighted: Callable[[Float[Tensor, "B C"]], Float[Tensor, "B C"]],
) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B"]]:
    """What each token gives to its text's weighted logits, and what the biases give.

    The pass with everything held is affine, so that the parts of states carried through all layers
    are the states that enter the first layer times the slope with them. `weighted` says from the
    logits which weights they have.
    """
    entered: list[Tensor] = []
    empty: list[Tensor] = []

    def enter(_: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        states = input_states(args, kwargs)
        require_states(states, batch, METHOD)
        entered.append(states)  # one module may be several layers: only the first is meant
        return replace_input_states(args, kwargs, empty.pop()) if empty else None

    vectors = vectors.detach().clone().requires_grad_()
    with layer_hooks(find_attention_layers(subject, METHOD)[:1], enter):
        with linearised(subject.model) as held:
            logits, recorder = subject.run(batch, freeze_attention, embedded=vectors)
        weights = weighted(logits.detach())  # behind the block, which would meet its products
        (slope,) = torch.autograd.grad(logits, entered[0], weights)
        empty.append(torch.zeros_like(entered[0].detach()))
        with torch.no_grad(), held.replayed():
            none, _ = subject.run(
                batch, replay_attention(recorder.calls), embedded=vectors.detach()
            )
    bias = (none * weights).sum(-1)
    parts = (entered[0].detach() * slope).sum(-1)
    _require_sum(parts.sum(-1) + bias, (logits.detach() * weights).sum(-1), "the logits")
    return parts, bias


def _require_sum(made: Tensor, wanted: Tensor, what: str) -> None:
    gap = float((made - wanted).abs().max())
    if not gap <= RECONSTRUCTION_TOLERANCE * max(1.0, float(wanted.abs().max())):
        raise NotApplicable(
            f"decompx is refused: the parts of the tokens do not make up {what} (difference "
            f"{gap:.2g}); something in the model is not linear and is not seen."
        )


def _detach_inputs(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a layer was given, without the graph and without any memory of past keys."""

    def plain(one: Any) -> Any:
        if isinstance(one, Tensor):
            return one.detach()
        return None if hasattr(one, "get_seq_length") else one

    return tuple(map(plain, args)), {name: plain(one) for name, one in kwargs.items()}
