"""The gradient at the word embeddings: its norm, and its product with the embeddings."""

from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.values import Explanation
from heedful.methods.base import Join, explanation_from_scores, methods
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.gradients import input_gradient
from heedful.numerics.tensor.target import TargetValue

Norm = Literal["l1", "l2"]


def vector_norm(vectors: Float[Tensor, "*K E"], norm: Norm) -> Float[Tensor, "*K"]:
    """The L1 or L2 norm of vectors."""
    return vectors.abs().sum(-1) if norm == "l1" else vectors.square().sum(-1).sqrt()


@methods.register("gradient", kind="sensitivity")
@dataclass(frozen=True)
class Gradient:
    """‖∂f/∂x_t‖: how fast the output changes with a word's embedding, in any direction.

    A word of several pieces gets the norm of all its pieces' gradients.
    """

    norm: Norm = "l2"
    of: TargetValue = "probability"

    @property
    def join(self) -> Join:
        """L1 norms of pieces add up; L2 norms add as squares."""
        return "sum" if self.norm == "l1" else "norm"

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        slope = input_gradient(context, target, self.of)
        return explanation_from_scores("gradient", context, vector_norm(slope, self.norm))


@methods.register("input_x_gradient", kind="saliency", signed=True)
@dataclass(frozen=True)
class InputXGradient:
    """⟨x_t, ∂f/∂x_t⟩: what the word's embedding adds to the output, to first order."""

    of: TargetValue = "probability"

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        slope = input_gradient(context, target, self.of)
        return explanation_from_scores(
            "input_x_gradient", context, (context.embedded.detach() * slope).sum(-1)
        )
