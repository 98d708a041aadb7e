"""Gradient at the one-hot input (Jain & Wallace, 2019): |⟨x_t, ∂p/∂x_t⟩| for each token t."""

from dataclasses import dataclass
from typing import Literal

from jaxtyping import Int
from torch import Tensor

from heedful.core.values import Explanation
from heedful.methods.base import explanation_from_scores, methods
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.gradients import input_gradient


@methods.register("one_hot_gradient", kind="saliency")
@dataclass(frozen=True)
class OneHotGradient:
    """|⟨x, ∂p/∂x⟩|, with attention held fixed (as published) or free to change with the input.

    This is the derivative along the word's one-hot coordinate. With attention fixed, the gradient
    of a model that reads words independently contains the factor α; the check `agreement` measures
    how much of its agreement with attention is due to that.
    """

    attention: Literal["fixed", "free"] = "fixed"

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        if self.attention == "free":
            gradient = input_gradient(context, target, "probability")
        else:
            with context.clock("gradient"):
                gradient = context.gradient(target, attention=context.rows)
        scores = (context.embedded.detach() * gradient).sum(-1).abs()
        return explanation_from_scores("one_hot_gradient", context, scores)
