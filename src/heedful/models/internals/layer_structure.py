"""How a layer is built, seen in a pass: what is added to what, and which norms it goes through.

No family is asked for by name. A layer adds what its attention gives to its states (perhaps behind
a norm), and to that what a feed-forward part gives; norms stand behind the sums (post-norm, as in
BERT) or only before the parts (pre-norm, as in GPT-2 and Llama). Which of them it is shows in the
states that the layer's modules were given and gave. What shows as none of them is refused.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.core.errors import NotApplicable
from heedful.models.internals.attention_blocks import RECONSTRUCTION_TOLERANCE, AttentionBlock
from heedful.numerics.tensor.vector_parts import VectorParts

EPSILON_ATTRIBUTES = ("eps", "variance_epsilon", "epsilon")


@dataclass(frozen=True, eq=False)
class ModuleCall:
    """A module of a layer that gave a state per token, and what it was given if states too."""

    module: nn.Module
    given: Float[Tensor, "B T D"] | None
    output: Float[Tensor, "B T D"]


@dataclass(frozen=True, eq=False)
class LinearisedNorm:
    """A norm in a pass, its scales held: v ↦ gain · scale · (v − mean(v)) + bias, mean if centred.

    The scale of a position is 1/sqrt(var + eps) of what the norm was given there.
    """

    gain: Float[Tensor, "D"]
    scale: Float[Tensor, "B T 1"]
    bias: Float[Tensor, "D"] | float
    centred: bool

    def unscaled(self, vectors: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        """The linear part but for the scale, which belongs to a position."""
        if self.centred:
            vectors = vectors - vectors.mean(-1, keepdim=True)
        return vectors * self.gain

    def linear(self, vectors: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """The linear part."""
        return self.unscaled(vectors) * self.scale

    def after(self, parts: VectorParts) -> VectorParts:
        """Parts as they leave the norm."""
        heads = self.scale[:, None]  # (B, 1, T, 1): of the position that attends
        return VectorParts(
            parts.weights * heads,
            self.unscaled(parts.added),
            self.linear(parts.residual),
            self.linear(parts.bias) + self.bias,
        )


@dataclass(frozen=True, eq=False)
class LayerStructure:
    """One layer of a pass: what entered and left it, its attention's block, and all its steps."""

    name: str
    entered: Float[Tensor, "B T D"]
    left: Float[Tensor, "B T D"]
    block: AttentionBlock
    steps: Sequence[ModuleCall]
    present: Bool[Tensor, "B T"]

    def mixed(self) -> tuple[VectorParts, Float[Tensor, "B T D"]]:
        """Parts and whole of the states behind attention: after its norm in a post-norm layer."""
        added, norms, whole = self._residual_structure
        parts = VectorParts(added.weights, added.added, self.entered, added.bias)
        for norm in norms[:1]:
            parts = norm.after(parts)
        self._require(parts, whole)
        return parts, whole

    def passed(self) -> VectorParts:
        """The same behind the layer's last norm, the feed-forward part itself left out.

        The scale of that norm is the model's own, of states with the feed-forward part in them. In
        a pre-norm layer no norm follows: the same as `mixed`.
        """
        parts, _ = self.mixed()
        for norm in self._residual_structure[1][1:]:
            parts = norm.after(parts)
        return parts

    @cached_property
    def _residual_structure(
        self,
    ) -> tuple[VectorParts, tuple[LinearisedNorm, ...], Float[Tensor, "B T D"]]:
        """What attention adds, the norms that states go through, and the states behind attention.

        No norm in a pre-norm layer; in a post-norm layer one behind each sum.
        """
        for added, told in self._attention_additions():
            whole = self.entered + told
            if self._adds(whole, self.left):
                return added, (), whole
            for first, step in self._norms(whole):
                if self._near(step.output, self.left):
                    return added, (first,), step.output
                ends = [one for one in self.steps if self._near(one.output, self.left)]
                for last, end in self._norms(among=ends):
                    if self._adds(step.output, end.given):
                        return added, (first, last), step.output
        raise NotApplicable(
            f"what {self.name} adds to its states is not seen: neither sums alone nor sums behind "
            "norms make up what it gives out."
        )

    def _attention_additions(self) -> Iterator[tuple[VectorParts, Float[Tensor, "B T D"]]]:
        """What attention adds to the states: as its block gives it, or behind a norm of its own."""
        added, bias = self.block.added()
        output = self.block.output
        nothing = torch.zeros_like(output)
        parts = VectorParts(self.block.call.weights, added, nothing, bias.expand_as(output))
        yield parts, output
        for norm, step in self._norms(output):
            yield norm.after(parts), step.output

    def _norms(
        self, given: Tensor | None = None, *, among: Sequence[ModuleCall] | None = None
    ) -> Iterator[tuple[LinearisedNorm, ModuleCall]]:
        """The steps that are norms, of any states or of these."""
        for step in self.steps if among is None else among:
            if step.given is None or not (given is None or self._near(step.given, given)):
                continue
            norm = self._norm(step, step.given)
            if norm is not None:
                yield norm, step

    def _norm(self, step: ModuleCall, given: Float[Tensor, "B T D"]) -> LinearisedNorm | None:
        """The step as a norm, if one of the usual forms makes exactly its output."""
        known = [
            getattr(step.module, name) for name in EPSILON_ATTRIBUTES if hasattr(step.module, name)
        ]
        if not known:
            return None
        weight, bias = (getattr(step.module, name, None) for name in ("weight", "bias"))
        gain = torch.ones_like(given[0, 0]) if weight is None else weight.detach()
        shift = 0.0 if bias is None else bias.detach()
        for centred in (True, False):
            middle = given.mean(-1, keepdim=True) if centred else 0.0
            spread = (given - middle).square().mean(-1, keepdim=True)
            for one in (gain, 1 + gain):  # some families keep what their gain is beyond 1
                norm = LinearisedNorm(one, (spread + known[0]).rsqrt(), shift, centred)
                if self._near(norm.linear(given) + shift, step.output):
                    return norm
        return None

    def _adds(self, states: Tensor, total: Tensor | None) -> bool:
        """Whether a total is these states, alone or with what one of the steps gave."""
        if total is None:
            return False
        if self._near(states, total):
            return True
        rest = total - states
        return any(self._near(step.output, rest, among=total) for step in self.steps)

    def _near(self, one: Tensor, other: Tensor, *, among: Tensor | None = None) -> bool:
        """Whether both are the same, for tokens that are no padding, to rounding."""
        if one.shape != other.shape:
            return False
        limit = RECONSTRUCTION_TOLERANCE * max(
            1.0, float((other if among is None else among).abs().max())
        )
        first = self.present[0].int().argmax()
        if not float((one[0, first] - other[0, first]).abs().max()) <= limit:  # most end here
            return False
        return self._gap(one, other) <= limit

    def _gap(self, one: Tensor, other: Tensor) -> float:
        return float((one - other)[self.present].abs().max())

    def _require(self, parts: VectorParts, whole: Tensor) -> None:
        gap = self._gap(parts.total(), whole)
        if not gap <= RECONSTRUCTION_TOLERANCE * max(1.0, float(whole[self.present].abs().max())):
            raise NotApplicable(
                f"the parts of {self.name} and its biases do not make up its states "
                f"(difference {gap:.2g})."
            )
