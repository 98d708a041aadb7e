"""Relevance handed down through a transformer, layer by layer, from its logits to its words.

All rules in one backward pass through the model made linear where it is (`linearised`):
relevance is then input × gradient. What does not reach the words belongs to biases, positions and
whatever else is no word: it is what the same linear model says of a text of zeros. Both together
must be the value explained; where they are not, some part is not linear, and the model is refused.

- `cp`: attention weights are constants too, so that relevance goes by the values alone (Ali et al.,
  2022).
- `attn`: it goes by the weights as well, half of every product to each of its factors, softmax by
  its tangent (Achtibat et al., 2024).
"""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor, autograd

from heedful.core.errors import NotApplicable
from heedful.models.attention_access.edits import detach_as_leaf
from heedful.models.attention_access.recorder import AttentionCall
from heedful.models.batch_context import BatchContext
from heedful.models.internals.linearised import freeze_attention, linearised, replay_attention
from heedful.models.perturbed.perturbed_embeddings import unwrap_perturbed
from heedful.models.transformer.subject import TransformerSubject
from heedful.numerics.tensor.target import LinearTargetValue, logit_direction

LRPRule = Literal["cp", "attn"]
LRP_RULES: tuple[LRPRule, ...] = get_args(LRPRule)
CONSERVATION_TOLERANCE = 1e-3  # the share of all relevance that may be lost to rounding
SMALLEST_TOTAL = 1e-9


@dataclass(frozen=True, eq=False)
class Relevance:
    """How much of a value each number of each word vector has, and how much all else together.

    `maps` is the relevance of the attention weights themselves, where it goes by them.
    """

    inputs: Float[Tensor, "B T E"]
    rest: Float[Tensor, "B"]
    value: Float[Tensor, "B"]
    maps: tuple[Float[Tensor, "B H _ _"], ...] = ()

    @property
    def gap(self) -> Float[Tensor, "B"]:
        """What was lost or made up on the way; 0 where relevance is conserved."""
        return self.inputs.sum((-1, -2)) + self.rest - self.value

    def require_conserved(self, tolerance: float) -> "Relevance":
        """Itself, if no more than such a share is lost of all that there is on both sides."""
        there = self.value.abs() + self.rest.abs() + self.inputs.sum(-1).abs().sum(-1)
        lost = float((self.gap.abs() / there.clamp(min=SMALLEST_TOTAL)).max())
        if not lost <= tolerance:
            raise NotApplicable(
                f"Relevance is not conserved on its way through this model ({lost:.1%} is lost): "
                "some part of it is neither linear nor known, as the choice among experts."
            )
        return self


@dataclass(frozen=True)
class RelevanceComputation:
    """Relevance for one target class per text, computed once however many methods ask."""

    target: tuple[int, ...]
    of: LinearTargetValue
    rule: LRPRule

    def __call__(self, context: BatchContext) -> Relevance:
        subject = unwrap_perturbed(context.subject)
        if not isinstance(subject, TransformerSubject):
            raise RuntimeError(f"{type(subject).__name__} is no transformer.")
        with context.clock("relevance"):
            exact: TransformerSubject = subject.full_precision()
            return self._propagate(exact, context).require_conserved(
                max(CONSERVATION_TOLERANCE, 2 * exact.tolerance)
            )

    def _propagate(self, subject: TransformerSubject, context: BatchContext) -> Relevance:
        batch, held = context.batch, self.rule == "cp"
        vectors = context.embedded.detach().clone().requires_grad_()
        with linearised(subject.model) as parts:
            logits, heard = subject.run(
                batch, freeze_attention if held else _leaf_weights, embedded=vectors
            )
        maps = () if held else tuple(call.weights for call in heard.calls)
        weights = logit_direction(
            logits.detach(), torch.tensor(self.target).to(logits.device), self.of
        )
        slope, *slopes = autograd.grad(
            logits, (vectors, *maps), weights, allow_unused=True, materialize_grads=True
        )
        again = replay_attention(heard.calls) if held else _leaf_weights
        with torch.no_grad(), parts.replayed():
            none, _ = subject.run(batch, again, embedded=torch.zeros_like(vectors), keep=False)
        return Relevance(
            (vectors * slope).detach(),
            (weights * none).sum(-1),
            (weights * logits.detach()).sum(-1),
            tuple((one * down).detach() for one, down in zip(maps, slopes, strict=True)),
        )


def compute_relevance(
    context: BatchContext, target: Int[Tensor, "B"], *, of: LinearTargetValue, rule: LRPRule
) -> Relevance:
    """What of the explained value each word has, in a transformer."""
    return context.cached(RelevanceComputation(tuple(target.tolist()), of, rule))


def _leaf_weights(call: AttentionCall) -> Tensor:
    """The weights themselves, as what the next product is made of."""
    leaf = detach_as_leaf(call)
    return leaf if isinstance(leaf, Tensor) else call.weights
