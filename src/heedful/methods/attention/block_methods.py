"""Attention weighed by what it carries: the size of the parts, and what is lost without them."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.errors import NotApplicable
from heedful.core.values import Explanation, LinearDecoder
from heedful.methods.attention.layer_stack import row_on_words
from heedful.methods.base import Join, Kind, methods, on_words
from heedful.models.batch_context import Sitting
from heedful.models.protocols import HasBlocks
from heedful.numerics.tensor.attention_maps import product
from heedful.numerics.tensor.vector_parts import rows_of_one


@methods.register("attention_norm")
@dataclass(frozen=True)
class AttentionNorm:
    """‖α f(x)‖ (Kobayashi et al., 2020): how much each token adds, not only how much it is weighed.

    In a transformer f(x) is the value behind the output map, heads added up, in the layer under
    audit (the mean over layers where all are); with one attention over states it is what a state
    adds to the logits. That all parts make up the block's output is seen at run time.
    """

    kind: ClassVar[Kind] = "attention"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = False

    def __call__(
        self,
        sitting: Sitting,
        target: Int[Tensor, "B"],  # noqa: ARG002 - the same for every target
    ) -> Explanation:
        if isinstance(sitting.subject, HasBlocks):
            sizes = torch.stack(sitting.subject.part_sizes(sitting.batch)).mean(0)
            return row_on_words("attention_norm", sitting, sizes)
        if not isinstance(sitting.decode, LinearDecoder):
            raise NotApplicable(
                "attention_norm needs a linear decoder, which says what each state adds; this one "
                "is not linear."
            )
        scores = sitting.forward.attention * sitting.decode.influence
        return on_words("attention_norm", sitting, scores)


@methods.register("value_zeroing")
@dataclass(frozen=True)
class ValueZeroing:
    """How far states turn when a token's value is zeroed (Mohebbi et al., 2023), through layers.

    C = 1 − cos(state, state without the value) in each layer, rows summing to 1, multiplied
    last · … · first without a residual, which the states hold already. A pass for every token.
    """

    kind: ClassVar[Kind] = "attention"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = False

    def __call__(
        self,
        sitting: Sitting,
        target: Int[Tensor, "B"],  # noqa: ARG002 - the same for every target
    ) -> Explanation:
        return row_on_words("value_zeroing", sitting, product(sitting.once(Zeroed())))


@dataclass(frozen=True)
class Zeroed:
    """For each layer how far the value of each token (column) turns each state (row)."""

    def __call__(self, sitting: Sitting) -> list[Float[Tensor, "B T T"]]:
        if not isinstance(sitting.subject, HasBlocks):
            raise NotApplicable(
                "value_zeroing compares the states of layers; this model has one attention."
            )
        with sitting.clock("value_zeroing"):
            changes = sitting.subject.zeroed_values(sitting.batch, max_batch_tokens=sitting.budget)
        both = zip(changes, sitting.forward.maps, strict=True)
        return [mixing(one, weights) for one, weights in both]


def mixing(changes: Tensor, weights: Tensor) -> Tensor:
    """Rows that sum to 1, on keys that were attended to; a state that nothing turns is its own."""
    return rows_of_one(changes.to(weights.dtype) * (weights.sum(1) > 0))
