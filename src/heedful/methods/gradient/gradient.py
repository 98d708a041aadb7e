"""The gradient at the word vectors, as a size and times the vectors."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.values import Explanation
from heedful.methods.base import Join, ScoreKind, explanation_from_scores, methods, require_one_of
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.gradients import input_gradient
from heedful.numerics.tensor.target import TARGET_VALUES, TargetValue

Norm = Literal["l1", "l2"]
NORMS: tuple[Norm, ...] = ("l1", "l2")


def vector_norm(vectors: Float[Tensor, "*K E"], norm: Norm) -> Float[Tensor, "*K"]:
    """The L1 or L2 norm of vectors."""
    return vectors.abs().sum(-1) if norm == "l1" else vectors.square().sum(-1).sqrt()


@methods.register("gradient")
@dataclass(frozen=True)
class Gradient:
    """‖∂f/∂x_t‖: how fast the output moves with a word's vector, whichever way.

    A word of several pieces has the norm of all its pieces' gradients.
    """

    norm: Norm = "l2"
    of: TargetValue = "probability"
    kind: ClassVar[ScoreKind] = "sensitivity"
    signed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_one_of("norm", self.norm, NORMS)
        require_one_of("of", self.of, TARGET_VALUES)

    @property
    def join(self) -> Join:
        """Absolute values add up, squares under a root."""
        return "sum" if self.norm == "l1" else "norm"

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        slope = input_gradient(context, target, self.of)
        return explanation_from_scores("gradient", context, vector_norm(slope, self.norm))


@methods.register("input_x_gradient")
@dataclass(frozen=True)
class InputXGradient:
    """⟨x_t, ∂f/∂x_t⟩: what the word's vector adds to the output, as far as that is linear."""

    of: TargetValue = "probability"
    kind: ClassVar[ScoreKind] = "saliency"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_one_of("of", self.of, TARGET_VALUES)

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        slope = input_gradient(context, target, self.of)
        return explanation_from_scores(
            "input_x_gradient", context, (context.embedded.detach() * slope).sum(-1)
        )
