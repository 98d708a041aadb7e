"""Attention rollout (Abnar & Zuidema, 2020)."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.errors import ConfigError
from heedful.core.values import Explanation
from heedful.methods.attention.layer_stack import (
    HEADS,
    NORMALISE,
    Heads,
    Normalise,
    Stack,
    row_on_words,
    stacked,
)
from heedful.methods.base import Join, Kind, methods, require_one_of
from heedful.models.batch_context import Sitting
from heedful.numerics.tensor.attention_maps import product, rolled_across, with_residual


@methods.register("rollout")
@dataclass(frozen=True)
class Rollout:
    """Attention multiplied through the layers, last · … · first, residual connections included.

    Each layer is (1 − residual) · A + residual · I with its heads taken together. Rows that sum to
    1 keep doing so; those of a model with sinks sum to less, and are divided by their sum only
    where asked (normalise="row"). The same for every target.
    """

    heads: Heads = "mean"
    residual: float = 0.5
    normalise: Normalise = "none"
    start_layer: int = 0
    kind: ClassVar[Kind] = "attention"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_one_of("heads", self.heads, HEADS)
        require_one_of("normalise", self.normalise, NORMALISE)
        if not 0.0 <= self.residual <= 1.0:
            raise ConfigError(f"residual must lie between 0 and 1, not {self.residual}.")

    def __call__(
        self,
        sitting: Sitting,
        target: Int[Tensor, "B"],  # noqa: ARG002 - attention knows no target
    ) -> Explanation:
        stack = stacked(sitting, "rollout", heads=self.heads, start=self.start_layer)
        return row_on_words("rollout", sitting, self.rolled(stack))

    def rolled(self, stack: Stack) -> Float[Tensor, "B Q K"]:
        """The whole matrix: for every position the input tokens behind it."""
        text = product(self._layers(stack.within))
        if not stack.across:
            return text
        within = self._layers(stack.decoder)
        return rolled_across(text, within, stack.across, residual=self.residual)

    def _layers(self, maps: tuple[Tensor, ...]) -> list[Float[Tensor, "B T T"]]:
        rows = self.normalise == "row"
        return [with_residual(one, residual=self.residual, normalise=rows) for one in maps]
