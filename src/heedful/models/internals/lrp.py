"""Layer-wise relevance propagation in transformers, from the logits to the words.

All rules in one backward pass through the linearised model (`linearised`), where relevance is
input × gradient. The rest belongs to biases, positions and other inputs that are not words: it is
the output of the same linear model for a text of zeros. Both must sum to the explained value;
otherwise some part is not linear, and the model is refused.

- `cp`: attention weights are constant, so that relevance flows through the values only (Ali et al.,
  2022).
- `attn`: relevance flows through the weights as well, half of every product to each factor, softmax
  by its tangent (Achtibat et al., 2024).
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, autograd

from heedful.core.errors import NotApplicable
from heedful.models.attention_access.recorder import AttentionCall, detach_as_leaf, freeze_attention
from heedful.models.batch_context import BatchContext
from heedful.models.internals.linearised import linearised, replay_attention
from heedful.models.perturbed.perturbed_embeddings import unwrap_perturbed
from heedful.models.transformer.subject import TransformerSubject
from heedful.numerics.tensor.target import LinearTargetValue, logit_direction

LRPRule = Literal["cp", "attn"]
CONSERVATION_TOLERANCE = 1e-3  # largest share of all relevance lost to rounding
SMALLEST_TOTAL = 1e-9


@dataclass(frozen=True, eq=False)
class Relevance:
    """The relevance of each input dimension for a value, and that of all other inputs (`rest`).

    `maps` is the relevance of the attention weights, for the rule `attn`.
    """

    inputs: Float[Tensor, "B T E"]
    rest: Float[Tensor, "B"]
    value: Float[Tensor, "B"]
    maps: tuple[Float[Tensor, "B H _ _"], ...] = ()

    @property
    def gap(self) -> Float[Tensor, "B"]:
        """Relevance lost or gained; 0 where relevance is conserved."""
        return self.inputs.sum((-1, -2)) + self.rest - self.value

    def require_conserved(self, tolerance: float) -> "Relevance":
        """Return self; raise NotApplicable if a larger share of all relevance is lost."""
        total = self.value.abs() + self.rest.abs() + self.inputs.sum(-1).abs().sum(-1)
        lost = float((self.gap.abs() / total.clamp(min=SMALLEST_TOTAL)).max())
        if not lost <= tolerance:
            raise NotApplicable(
                f"Relevance is not conserved in this model ({lost:.1%} is lost): some part cannot "
                "be linearised, such as routing to experts."
            )
        return self


def compute_relevance(
    context: BatchContext, target: Int[Tensor, "B"], *, of: LinearTargetValue, rule: LRPRule
) -> Relevance:
    """The relevance of each input of a transformer for the explained value, computed once."""
    return context.cached(_propagate, tuple(target.tolist()), of, rule)


def _propagate(
    context: BatchContext, classes: tuple[int, ...], of: LinearTargetValue, rule: LRPRule
) -> Relevance:
    subject, batch, frozen = unwrap_perturbed(context.subject), context.batch, rule == "cp"
    if not isinstance(subject, TransformerSubject):
        raise RuntimeError(f"{type(subject).__name__} is not a transformer.")
    exact: TransformerSubject = subject.full_precision()
    vectors = context.embedded.detach().clone().requires_grad_()
    with context.clock("relevance"):
        with linearised(exact.model) as parts:
            edit = freeze_attention if frozen else _leaf_weights
            logits, recorder = exact.run(batch, edit, embedded=vectors)
        maps = () if frozen else tuple(call.weights for call in recorder.calls)
        weights = logit_direction(logits.detach(), torch.tensor(classes).to(logits.device), of)
        gradient, *map_gradients = autograd.grad(
            logits, (vectors, *maps), weights, allow_unused=True, materialize_grads=True
        )
        again = replay_attention(recorder.calls) if frozen else _leaf_weights
        with torch.no_grad(), parts.replayed():
            at_zeros, _ = exact.run(batch, again, embedded=torch.zeros_like(vectors), keep=False)
        return Relevance(
            (vectors * gradient).detach(),
            (weights * at_zeros).sum(-1),
            (weights * logits.detach()).sum(-1),
            tuple((a * g).detach() for a, g in zip(maps, map_gradients, strict=True)),
        ).require_conserved(max(CONSERVATION_TOLERANCE, 2 * exact.tolerance))


def _leaf_weights(call: AttentionCall) -> Tensor:
    """The weights, as a leaf where they depend on none."""
    leaf = detach_as_leaf(call)
    return leaf if isinstance(leaf, Tensor) else call.weights
