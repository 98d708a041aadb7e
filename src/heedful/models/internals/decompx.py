"""DecompX: decompose states into the contributions of tokens, through all layers to the logits.

Modarressi et al. (2023), for any family. With attention weights, scales of norms and slopes of
activations fixed at their values in the text's own pass, a layer is affine in its states (see
`linearised`). So the output of a layer for one token's part, minus its output for zeros, is that
token's part of the output. The output for zeros is the bias of the layer; it is distributed over
the tokens before the next layer. One text at a time.
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
from heedful.core.errors import NotApplicable, is_out_of_memory
from heedful.models.attention_access.access import AttentionAccess, model_lock
from heedful.models.attention_access.layer_hooks import (
    forward_hooks,
    input_states,
    output_count,
    output_states,
    replace_input_states,
    skipped_layers,
)
from heedful.models.attention_access.recorder import AttentionCall, freeze_attention
from heedful.models.internals.closeness import require_close
from heedful.models.internals.hidden_states import find_attention_layers, require_states
from heedful.models.internals.linearised import LinearisedModel, linearised, replay_attention
from heedful.models.transformer.subject import TransformerSubject

METHOD = "decompx"
SIZES = re.compile(r"\b(sizes?|shapes?)\b", re.IGNORECASE)  # in torch's errors of unequal sizes
MAX_ELEMENTS = 2**27  # of the parts of one text: half a gigabyte in single precision


@dataclass(eq=False)
class _RecordedLayer:
    """A call of a layer: inputs and output, and the range of its linearised parts."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    begin: int
    end: int = 0
    returns: int = 0
    output: Tensor = field(init=False)
    weights: Tensor = field(init=False)

    @property
    def layer_input(self) -> Float[Tensor, "..."]:
        """The hidden states the layer was given."""
        states: Tensor = input_states(self.args, self.kwargs)
        return states


@dataclass(frozen=True, eq=False)
class LinearisedPass:
    """The linearised pass of one text, ready to be decomposed."""

    subject: TransformerSubject
    single: Batch
    layers: list[_RecordedLayer]
    linear_model: LinearisedModel
    logits: Float[Tensor, "1 C"]

    @classmethod
    def record(
        cls, subject: TransformerSubject, single: Batch, vectors: Float[Tensor, "1 T E"]
    ) -> "LinearisedPass":
        """Run one text without padding and linearise all its non-linear parts."""
        calls: list[_RecordedLayer] = []
        vectors = vectors.detach().clone().requires_grad_()
        with linearised(subject.model) as parts:

            def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
                begin = len(parts.linear_parts)
                calls.append(_RecordedLayer(module, *_detach_inputs(args, kwargs), begin=begin))
                require_states(calls[-1].layer_input, single, METHOD)

            def leave(_: nn.Module, __: object, ___: object, output: Any) -> None:
                calls[-1].end = len(parts.linear_parts)
                calls[-1].output = output_states(output).detach()
                calls[-1].returns = output_count(output)

            with forward_hooks(find_attention_layers(subject, METHOD), enter, leave):
                logits, recorder = subject.run(single, freeze_attention, embedded=vectors)
        if len(recorder.calls) != len(calls):
            raise NotApplicable("decompx needs one attention in every layer.")
        for layer, call in zip(calls, recorder.calls, strict=True):
            layer.weights = call.weights.detach()
        return cls(subject, single, calls, parts, logits.detach())

    def decompose(self, weights: Float[Tensor, "C"], *, size: int) -> Float[Tensor, "T"]:
        """The contribution of each token to the weighted logits, biases distributed.

        `size` parts are run at once.
        """
        states = self.layers[0].layer_input[0]
        length, width = states.shape
        if length * states.numel() > MAX_ELEMENTS:
            raise NotApplicable(
                f"decompx with shared biases keeps {length} × {length} × {width} numbers of this "
                f'text, more than {MAX_ELEMENTS}; biases="apart" keeps none of them.'
            )
        parts = states.new_zeros(length, length, width)
        parts[torch.arange(length), torch.arange(length)] = states
        for layer in self.layers:
            _require_sum(parts.sum(0), layer.layer_input[0], "the input of a layer")
            bias = self._run(layer, torch.zeros_like(parts[:1]))
            for some in torch.split(parts, size):
                some.copy_(self._run(layer, some) - bias)
            distribute_bias(parts, bias[0])
        _require_sum(parts.sum(0), self.layers[-1].output[0], "the output of the last layer")
        with self._head_after_layers() as head:
            bias = head(torch.zeros_like(parts[:1])) @ weights
            scores = torch.cat([head(some) @ weights - bias for some in torch.split(parts, size)])
        distribute_bias(scores[:, None], bias)
        _require_sum(scores.sum(), self.logits[0] @ weights, "the logits")
        return scores

    def _run(self, layer: _RecordedLayer, states: Float[Tensor, "N T D"]) -> Float[Tensor, "N T D"]:
        """Run a layer on several variants of its states, or one by one if it takes no batch.

        Bloom's position biases depend on the number of texts: more of them do not fit in size.
        """
        try:
            return self._at_once(layer, states)
        except RuntimeError as reason:
            if is_out_of_memory(reason) or not SIZES.search(str(reason)):
                raise
            if len(states) == 1:
                raise NotApplicable(
                    f"decompx with shared biases runs {type(layer.module).__name__} on other "
                    f'states than its own, which failed ({reason}); try biases="apart".'
                ) from reason
        return torch.cat([self._run(layer, one) for one in torch.split(states, 1)])

    def _at_once(self, layer: _RecordedLayer, states: Tensor) -> Float[Tensor, "N T D"]:
        args, kwargs = replace_input_states(layer.args, layer.kwargs, states)
        inside = self.linear_model.linear_parts[layer.begin : layer.end]
        parts = LinearisedModel(layer.module, inside)
        access = AttentionAccess(self.subject.model, self.subject.access.path)

        def keep_weights(call: AttentionCall) -> Tensor:
            return layer.weights.expand_as(call.weights)

        with (
            torch.no_grad(),
            model_lock(self.subject.model),
            parts.replayed(),
            access.patched(keep_weights, keep=False),
        ):
            output: Tensor = output_states(layer.module(*args, **kwargs))
        return output

    @contextmanager
    def _head_after_layers(self) -> Iterator[Callable[[Tensor], Tensor]]:
        """The part of the model behind the last layer, as a map from its states to the logits."""
        given: list[Tensor] = []
        inside = {at for layer in self.layers for at in range(layer.begin, layer.end)}
        rest = [part for at, part in enumerate(self.linear_model.linear_parts) if at not in inside]
        parts = LinearisedModel(self.subject.model, rest)

        def head(states: Float[Tensor, "N T D"]) -> Float[Tensor, "N C"]:
            given[:] = [states]
            with torch.no_grad(), parts.replayed():
                return self.subject.logits(self.single.repeat_texts(len(states)))

        def enter(_: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return replace_input_states(args, kwargs, given[0])

        skipped = {layer.module: layer.returns for layer in self.layers}
        with (
            model_lock(self.subject.model),
            forward_hooks([self.layers[0].module], enter),
            skipped_layers(skipped),
        ):
            yield head


def distribute_bias(parts: Float[Tensor, "K *N D"], bias: Float[Tensor, "*N D"]) -> None:
    """Add a bias to the parts in place, in proportion to |⟨bias, part⟩|; equally if all are 0.

    >>> parts = torch.tensor([[1.0, 0.0], [3.0, 0.0]])
    >>> distribute_bias(parts, torch.tensor([4.0, 8.0]))
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
    """The contributions of tokens to their text's weighted logits, and that of the biases.

    The linearised pass is affine, so that the parts carried through all layers are the input of
    the first layer times the gradient there. `weighted` maps the logits to their weights.
    """
    inputs: list[Tensor] = []
    zeros: list[Tensor] = []

    def enter(_: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # a module may serve as several layers: only the first call counts
        inputs.append(require_states(input_states(args, kwargs), batch, METHOD))
        return replace_input_states(args, kwargs, zeros.pop()) if zeros else None

    layers = find_attention_layers(subject, METHOD)
    vectors = vectors.detach().clone().requires_grad_()
    with model_lock(subject.model), forward_hooks(layers[:1], enter):
        with linearised(subject.model) as parts:
            logits, recorder = subject.run(batch, freeze_attention, embedded=vectors)
        weights = weighted(logits.detach())  # outside the block, which would linearise its products
        (gradient,) = torch.autograd.grad(logits, inputs[0], weights)
        zeros.append(torch.zeros_like(inputs[0].detach()))
        with torch.no_grad(), parts.replayed():
            frozen = replay_attention(recorder.calls)
            at_zeros, _ = subject.run(batch, frozen, embedded=vectors.detach())
    bias = (at_zeros * weights).sum(-1)
    scores = (inputs[0].detach() * gradient).sum(-1)
    _require_sum(scores.sum(-1) + bias, (logits.detach() * weights).sum(-1), "the logits")
    return scores, bias


def _require_sum(made: Tensor, wanted: Tensor, what: str) -> None:
    why = "some part is not linearised, as the parts do not add up to"
    require_close(made, wanted, f"{METHOD} is refused: {why} {what}")


def _detach_inputs(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The inputs of a layer, detached and without key–value caches."""

    def detach(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.detach()
        return None if hasattr(value, "get_seq_length") else value

    return tuple(map(detach, args)), {name: detach(value) for name, value in kwargs.items()}
