"""Attention rollout (Abnar & Zuidema, 2020)."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.errors import ConfigError
from heedful.core.values import Explanation
from heedful.methods.attention.layer_stack import (
    HEAD_REDUCTIONS,
    ROW_NORMALISATIONS,
    HeadReduction,
    LayerStack,
    RowNormalisation,
    explanation_from_row,
    stack_layers,
)
from heedful.methods.base import Join, ScoreKind, methods, require_one_of
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.attention_maps import add_residual, cross_rollout, multiply_layers


@methods.register("rollout")
@dataclass(frozen=True)
class Rollout:
    """Attention multiplied through the layers, last · … · first, residual connections included.

    Each layer is (1 − residual) · A + residual · I with its heads taken together. Rows that sum to
    1 keep doing so; those of a model with sinks sum to less, and are divided by their sum only
    where asked (normalise="row"). The same for every target.
    """

    heads: HeadReduction = "mean"
    residual: float = 0.5
    normalise: RowNormalisation = "none"
    start_layer: int = 0
    kind: ClassVar[ScoreKind] = "attention"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_one_of("heads", self.heads, HEAD_REDUCTIONS)
        require_one_of("normalise", self.normalise, ROW_NORMALISATIONS)
        if not 0.0 <= self.residual <= 1.0:
            raise ConfigError(f"residual must lie between 0 and 1, not {self.residual}.")

    def __call__(
        self,
        context: BatchContext,
        target: Int[Tensor, "B"],  # noqa: ARG002 - attention knows no target
    ) -> Explanation:
        stack = stack_layers(context, "rollout", heads=self.heads, start=self.start_layer)
        return explanation_from_row("rollout", context, self.rolled(stack))

    def rolled(self, stack: LayerStack) -> Float[Tensor, "B Q K"]:
        """The whole matrix: for every position the input tokens behind it."""
        text = multiply_layers(self._layers(stack.within))
        if not stack.across:
            return text
        within = self._layers(stack.decoder)
        return cross_rollout(text, within, stack.across, residual=self.residual)

    def _layers(self, maps: tuple[Tensor, ...]) -> list[Float[Tensor, "B T T"]]:
        rows = self.normalise == "row"
        return [add_residual(one, residual=self.residual, normalise=rows) for one in maps]
