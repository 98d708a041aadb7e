"""Gradient at the one-hot input (Jain & Wallace, 2019): |⟨x_t, ∂p/∂x_t⟩| for each token t."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from jaxtyping import Int
from torch import Tensor

from heedful.core.errors import ConfigError
from heedful.core.values import Explanation
from heedful.methods.base import Kind, methods
from heedful.models.sitting import Sitting


@methods.register("one_hot_gradient")
@dataclass(frozen=True)
class OneHotGradient:
    """|⟨x, ∂p/∂x⟩|, attention held fixed (as published) or free to move with the input.

    This is the derivative along the word's own one-hot coordinate. Held fixed, the gradient of a
    word-wise model carries the factor α itself; `agreement` measures how much of its agreement
    with attention is only that.
    """

    attention: Literal["fixed", "free"] = "fixed"
    kind: ClassVar[Kind] = "saliency"
    signed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.attention not in ("fixed", "free"):
            raise ConfigError(f"attention must be fixed or free, not {self.attention!r}.")

    def __call__(self, sitting: Sitting, target: Int[Tensor, "B"]) -> Explanation:
        held = sitting.rows if self.attention == "fixed" else None
        with sitting.clock("gradient"):
            gradient = sitting.gradient(target, attention=held)
        scores = (sitting.embedded.detach() * gradient).sum(-1).abs()
        mask = sitting.batch.mask
        return Explanation("one_hot_gradient", scores.masked_fill(~mask, 0.0), mask)
