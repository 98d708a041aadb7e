"""ALTI and GlobEnc: how much each token contributes to each state of a layer, in one pass.

Ferrando et al. (2022) and Modarressi et al. (2022). Layers are analysed one by one while the pass
runs, so that the states of one layer only are kept.

The structure of a layer is read off the pass, not from the name of its family. A layer adds the
output of its attention to its states (perhaps behind a norm), and to that the output of a
feed-forward part. Norms stand behind the sums (post-norm, as in BERT) or only before the parts
(pre-norm, as in GPT-2 and Llama). Inputs and outputs of the layer's modules show which; a layer
that matches no such structure is refused.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.errors import NotApplicable
from heedful.models.attention_access.access import model_lock
from heedful.models.attention_access.layer_hooks import forward_hooks
from heedful.models.attention_access.recorder import AttentionCall
from heedful.models.attention_access.supported_families import NORM_EPSILONS
from heedful.models.batch_context import BatchContext
from heedful.models.internals.attention_blocks import (
    AttentionBlock,
    is_linear_map,
    match_attention_block,
)
from heedful.models.internals.closeness import is_close, require_close
from heedful.models.internals.hidden_states import find_attention_layers, require_states
from heedful.models.perturbed.perturbed_embeddings import unwrap_perturbed
from heedful.models.transformer.subject import TransformerSubject
from heedful.numerics.tensor.vector_parts import VectorParts

ContributionMethod = Literal["alti", "globenc"]


def contributions_by_layer(
    context: BatchContext, method: ContributionMethod
) -> list[Float[Tensor, "B T T"]]:
    """For each layer, how much each token (column) contributes to each state (row).

    `alti`: max(0, ‖y‖₁ − ‖y − part‖₁) of the states behind attention. `globenc`: ‖part‖₂ of those
    behind the layer's last norm, without the feed-forward part.
    """
    subject = unwrap_perturbed(context.subject)
    if not isinstance(subject, TransformerSubject):
        raise NotApplicable(
            f"{method} follows states through layers; this model has one attention."
        )
    if context.forward.decoder_maps:
        raise NotApplicable(
            f"{method} follows one stack of layers; this model has an encoder and a decoder."
        )
    exact = subject.full_precision()
    recorder = _ContributionRecorder(method, exact, context.batch, context.budget)
    with context.clock(method):
        return recorder.run(context.embedded.detach())


class _ContributionRecorder:
    """What is recorded of the running layer, and the contributions of the layers before it."""

    def __init__(
        self, method: ContributionMethod, subject: TransformerSubject, batch: Batch, budget: int
    ) -> None:
        self.method, self.subject, self.batch, self.budget = method, subject, batch, budget
        self.contributions: list[Float[Tensor, "B T T"]] = []
        self.steps: list[ModuleCall] = []
        self.call: AttentionCall | None = None
        self.block: AttentionBlock | None = None
        self.layer_input: Tensor | None = None
        self.last_output: Tensor | None = None

    def run(self, vectors: Float[Tensor, "B T E"]) -> list[Float[Tensor, "B T T"]]:
        """Run one pass with hooks on all layers and their modules."""
        layers = find_attention_layers(self.subject, self.method)
        inside = [one for layer in layers for one in layer.modules() if one is not layer]
        with (
            model_lock(self.subject.model),
            forward_hooks(inside, leave=self._step),
            forward_hooks(layers, self._enter, self._leave),
            torch.no_grad(),
        ):
            self.subject.run(self.batch, self._record_attention, embedded=vectors, keep=False)
        return self.contributions

    def _record_attention(self, call: AttentionCall) -> None:
        if self.layer_input is None:
            raise NotApplicable(
                f"{self.method} needs attention in layers; {call.module} is in none."
            )
        self.call = call

    def _enter(self, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        states = _first_tensor((*args, *kwargs.values()))
        states = require_states(states, self.batch, self.method)
        if self.last_output is not None:
            message = f"{self.method} is refused: states change between two layers"
            present = self.batch.present
            require_close(self.last_output[present], states[present], message)
        self.layer_input, self.steps, self.call, self.block = states, [], None, None

    def _step(self, module: nn.Module, args: Any, kwargs: dict[str, Any], output: Any) -> None:
        given, gave = _first_tensor((*args, *kwargs.values())), _first_tensor(output)
        layer_input = self.layer_input
        if layer_input is None or given is None or gave is None:
            return
        if self.block is None and self.call is not None and is_linear_map(module):
            self.block = match_attention_block(self.call, module, given, gave)
        if gave.numel() == layer_input.numel():
            same = given.numel() == gave.numel()
            states = given.reshape(layer_input.shape) if same else None
            self.steps.append(ModuleCall(module, states, gave.reshape(layer_input.shape)))

    def _leave(self, layer: nn.Module, _: object, __: object, output: Any) -> None:
        left, entered = _first_tensor(output), self.layer_input
        name = f"layer {len(self.contributions)} ({type(layer).__name__})"
        if self.block is None or entered is None or left is None or left.shape != entered.shape:
            raise NotApplicable(
                f"{self.method} needs the values of the heads and a linear map behind them; {name} "
                "exposes none."
            )
        self.layer_input = None  # module calls from here on are not steps of the layer
        structure = LayerStructure(name, entered, left, self.block, self.steps, self.batch.present)
        try:
            if self.method == "globenc":
                contributions = structure.layer_parts().norms()
            else:
                parts, whole = structure.attention_parts()
                contributions = parts.nearness(whole, vectors=self.budget)
        except NotApplicable as reason:
            raise NotApplicable(f"{self.method} is refused: {reason}") from None
        self.contributions.append(contributions)
        self.last_output, self.steps = left, []


@dataclass(frozen=True, eq=False)
class ModuleCall:
    """A module of a layer that returned a state per token, and its input if that is states too."""

    module: nn.Module
    given: Float[Tensor, "B T D"] | None
    output: Float[Tensor, "B T D"]


@dataclass(frozen=True, eq=False)
class LinearisedNorm:
    """A norm with fixed scales: v ↦ gain · scale · (v − mean(v)) + bias, the mean if `centred`.

    The scale of a position is 1/sqrt(var + eps) of the norm's input there.
    """

    gain: Float[Tensor, "D"]
    scale: Float[Tensor, "B T 1"]
    bias: Float[Tensor, "D"] | float
    centred: bool

    def unscaled(self, vectors: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        """The linear part without the scale, which belongs to a position."""
        if self.centred:
            vectors = vectors - vectors.mean(-1, keepdim=True)
        return vectors * self.gain

    def linear(self, vectors: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """The linear part."""
        return self.unscaled(vectors) * self.scale

    def apply(self, parts: VectorParts) -> VectorParts:
        """Parts behind the norm."""
        return VectorParts(
            parts.weights * self.scale[:, None],  # (B, 1, T, 1): of the position that attends
            self.unscaled(parts.added),
            self.linear(parts.residual),
            self.linear(parts.bias) + self.bias,
        )


@dataclass(frozen=True, eq=False)
class LayerStructure:
    """One layer in a pass: its input and output, its attention block, and its module calls."""

    name: str
    layer_input: Float[Tensor, "B T D"]
    layer_output: Float[Tensor, "B T D"]
    block: AttentionBlock
    steps: Sequence[ModuleCall]
    present: Bool[Tensor, "B T"]

    def attention_parts(self) -> tuple[VectorParts, Float[Tensor, "B T D"]]:
        """The states behind attention, as parts and whole; behind its norm if post-norm."""
        added, norms, whole = self._residual_structure
        parts = replace(added, residual=self.layer_input)
        for norm in norms[:1]:
            parts = norm.apply(parts)
        message = f"the parts of {self.name} and its biases do not add up to its states"
        require_close(parts.total()[self.present], whole[self.present], message)
        return parts, whole

    def layer_parts(self) -> VectorParts:
        """The same parts behind the layer's last norm, without the feed-forward part.

        The scale of that norm is the model's own, of states that include the feed-forward part. In
        a pre-norm layer no norm follows: the result is that of `attention_parts`.
        """
        parts, _ = self.attention_parts()
        for norm in self._residual_structure[1][1:]:
            parts = norm.apply(parts)
        return parts

    @cached_property
    def _residual_structure(
        self,
    ) -> tuple[VectorParts, tuple[LinearisedNorm, ...], Float[Tensor, "B T D"]]:
        """What attention adds, the norms on the residual stream, and the states behind attention.

        There is no norm in a pre-norm layer, and one behind each sum in a post-norm layer.
        """
        for added, output in self._attention_additions():
            whole = self.layer_input + output
            if self._adds(whole, self.layer_output):
                return added, (), whole
            for first, step in self._norms_of(whole):
                if self._near(step.output, self.layer_output):
                    return added, (first,), step.output
                for last, end in self._norms:
                    ends = self._near(end.output, self.layer_output)
                    if ends and self._adds(step.output, end.given):
                        return added, (first, last), step.output
        raise NotApplicable(
            f"the structure of {self.name} is not recognised: neither sums alone nor sums behind "
            "norms reproduce its output."
        )

    def _attention_additions(self) -> Iterator[tuple[VectorParts, Float[Tensor, "B T D"]]]:
        """What attention adds to the states: the block's output, or that behind its own norm."""
        added, bias = self.block.projected_values()
        output = self.block.output
        nothing = torch.zeros_like(output)
        parts = VectorParts(self.block.call.weights, added, nothing, bias.expand_as(output))
        yield parts, output
        for norm, step in self._norms_of(output):
            yield norm.apply(parts), step.output

    def _norms_of(self, states: Tensor) -> Iterator[tuple[LinearisedNorm, ModuleCall]]:
        """The norms of these states."""
        return ((norm, step) for norm, step in self._norms if self._near(step.given, states))

    @cached_property
    def _norms(self) -> list[tuple[LinearisedNorm, ModuleCall]]:
        """The steps that are norms: one of the usual formulas reproduces their output."""
        found = ((self._norm(step), step) for step in self.steps)
        return [(norm, step) for norm, step in found if norm is not None]

    def _norm(self, step: ModuleCall) -> LinearisedNorm | None:
        module, given = step.module, step.given
        eps = next((getattr(module, a) for a in NORM_EPSILONS if hasattr(module, a)), None)
        if eps is None or given is None:
            return None
        weight, bias = (getattr(module, name, None) for name in ("weight", "bias"))
        gain = torch.ones_like(given[0, 0]) if weight is None else weight.detach()
        if gain.shape != given.shape[-1:]:  # a norm of each head
            return None
        shift = 0.0 if bias is None else bias.detach()
        for centred in (True, False):
            mean = given.mean(-1, keepdim=True) if centred else 0.0
            variance = (given - mean).square().mean(-1, keepdim=True)
            for factor in (gain, 1 + gain):  # some families store gain − 1
                norm = LinearisedNorm(factor, (variance + eps).rsqrt(), shift, centred)
                if self._near(norm.linear(given) + shift, step.output):
                    return norm
        return None

    def _adds(self, states: Tensor, total: Tensor | None) -> bool:
        """Whether a total is these states, alone or plus the output of one step."""
        if total is None:
            return False
        if self._near(states, total):
            return True
        rest = total - states
        return any(self._near(step.output, rest, scale=total) for step in self.steps)

    def _near(self, made: Tensor | None, wanted: Tensor, *, scale: Tensor | None = None) -> bool:
        """Whether both are equal up to rounding, except at padding."""
        if made is None or made.shape != wanted.shape:
            return False
        scale = wanted if scale is None else scale
        first = self.present[0].int().argmax()
        if not is_close(made[0, first], wanted[0, first], scale=scale):  # cheap: most end here
            return False
        return is_close(made[self.present], wanted[self.present], scale=scale)


def _first_tensor(given: Any) -> Tensor | None:
    """The first tensor, by convention the hidden states."""
    if isinstance(given, Tensor):
        return given
    if isinstance(given, tuple | list):
        return next((one for one in given if isinstance(one, Tensor)), None)
    return None
