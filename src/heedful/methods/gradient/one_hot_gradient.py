"""Gradient at the one-hot input (Jain & Wallace, 2019): |⟨x_t, ∂p/∂x_t⟩| for each token t."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from jaxtyping import Int
from torch import Tensor

from heedful.core.values import Explanation
from heedful.methods.base import Join, ScoreKind, explanation_from_scores, methods, require_one_of
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.gradients import input_gradient


@methods.register("one_hot_gradient")
@dataclass(frozen=True)
class OneHotGradient:
    """|⟨x, ∂p/∂x⟩|, attention held fixed (as published) or free to move with the input.

    This is the derivative along the word's own one-hot coordinate. Held fixed, the gradient of a
    word-wise model carries the factor α itself; `agreement` measures how much of its agreement
    with attention is only that.
    """

    attention: Literal["fixed", "free"] = "fixed"
    kind: ClassVar[ScoreKind] = "saliency"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_one_of("attention", self.attention, ("fixed", "free"))

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        if self.attention == "free":
            gradient = input_gradient(context, target, "probability")
        else:
            with context.clock("gradient"):
                gradient = context.gradient(target, attention=context.rows)
        scores = (context.embedded.detach() * gradient).sum(-1).abs()
        return explanation_from_scores("one_hot_gradient", context, scores)
