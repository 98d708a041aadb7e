"""Attention weights, and attention weights times their gradient."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, autograd

from heedful.core.values import Explanation
from heedful.methods.attention.layer_stack import (
    HeadReduction,
    layer_and_head,
    read_row,
    reduce_heads,
    require_layers,
)
from heedful.methods.base import explanation_from_scores, methods
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.gradients import compute_gradients
from heedful.models.protocols import HasLayers
from heedful.numerics.tensor.distributions import normalise_weights
from heedful.numerics.tensor.target import TargetValue, target_value


@methods.register("attention", kind="attention")
@dataclass(frozen=True)
class Attention:
    """The attention weights of the model; the same for every target.

    By default these are the weights under audit, which the subject selects; `layer`, `head` and
    `heads` (how heads are reduced) select others, renormalised over the words.
    """

    layer: int | None = None
    head: int | None = None
    heads: HeadReduction = "mean"

    def __call__(self, context: BatchContext, _target: Int[Tensor, "B"]) -> Explanation:
        if self == Attention():
            return explanation_from_scores("attention", context, context.forward.attention)
        require_layers(context, "attention of a chosen layer or head")
        maps = context.forward.maps
        layer, head = layer_and_head(maps, self.layer, self.head)
        row = read_row(context, "attention", reduce_heads(maps[layer], self.heads, head=head))
        weights = normalise_weights(row * context.batch.mask)
        return explanation_from_scores("attention", context, weights)


@methods.register("attention_x_gradient", kind="attention", signed=True)
@dataclass(frozen=True)
class AttentionXGradient:
    """α · ∂f/∂α: what each weight under audit adds to the output, to first order.

    Heads, layers and positions under audit are summed.
    """

    of: TargetValue = "probability"

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        scores = context.rows * self._slope(context, target)
        if scores.dim() == 3:
            scores = scores.sum(1)
        return explanation_from_scores("attention_x_gradient", context, scores)

    def _slope(self, context: BatchContext, target: Int[Tensor, "B"]) -> Float[Tensor, "B *R T"]:
        if isinstance(context.subject, HasLayers) and context.forward.maps:
            maps = compute_gradients(context, target, self.of).maps
            return context.subject.select_rows(context.batch, maps)
        with torch.enable_grad():
            leaf = context.rows.clone().requires_grad_()
            value = target_value(context.decode(leaf), target, self.of)
            (slope,) = autograd.grad(value.sum(), leaf)
        return slope
