"""Attention rollout (Abnar & Zuidema, 2020)."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.settings import Fraction
from heedful.core.values import Explanation
from heedful.methods.attention.layer_stack import (
    HeadReduction,
    LayerStack,
    RowNormalisation,
    explanation_from_row,
    stack_layers,
)
from heedful.methods.base import methods
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.attention_maps import add_residual, cross_rollout, multiply_layers


@methods.register("rollout", kind="attention")
@dataclass(frozen=True)
class Rollout:
    """Attention multiplied through the layers, last · … · first, residual connections included.

    Each layer is (1 − residual) · A + residual · I with its heads reduced. Rows that sum to 1 keep
    that sum; rows of a model with attention sinks sum to less and are normalised only with
    normalise="row". The same for every target.
    """

    heads: HeadReduction = "mean"
    residual: Fraction = 0.5
    normalise: RowNormalisation = "none"
    start_layer: int = 0

    def __call__(self, context: BatchContext, _target: Int[Tensor, "B"]) -> Explanation:
        stack = stack_layers(context, "rollout", heads=self.heads, start=self.start_layer)
        return explanation_from_row("rollout", context, self.rolled(stack))

    def rolled(self, stack: LayerStack) -> Float[Tensor, "B Q K"]:
        """The whole matrix: for every position, its weights on the input tokens."""
        text = multiply_layers(self._layers(stack.encoder_layers))
        if not stack.across:
            return text
        within = self._layers(stack.decoder)
        return cross_rollout(text, within, stack.across, residual=self.residual)

    def _layers(self, maps: tuple[Tensor, ...]) -> list[Float[Tensor, "B T T"]]:
        rows = self.normalise == "row"
        return [add_residual(layer, residual=self.residual, normalise=rows) for layer in maps]
