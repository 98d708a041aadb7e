"""Attention weighed by what it carries: the size of the parts, and what is lost without them."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.errors import NotApplicable
from heedful.core.values import Explanation, LinearDecoder
from heedful.methods.attention.layer_stack import explanation_from_row
from heedful.methods.base import Join, ScoreKind, explanation_from_scores, methods
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import HasAttentionBlocks
from heedful.numerics.tensor.attention_maps import multiply_layers
from heedful.numerics.tensor.vector_parts import normalise_rows


@methods.register("attention_norm")
@dataclass(frozen=True)
class AttentionNorm:
    """‖α f(x)‖ (Kobayashi et al., 2020): how much each token adds, not only how much it is weighed.

    In a transformer f(x) is the value behind the output map, heads added up, in the layer under
    audit (the mean over layers where all are); with one attention over states it is what a state
    adds to the logits. That all parts make up the block's output is seen at run time.
    """

    kind: ClassVar[ScoreKind] = "attention"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = False

    def __call__(
        self,
        context: BatchContext,
        target: Int[Tensor, "B"],  # noqa: ARG002 - the same for every target
    ) -> Explanation:
        if isinstance(context.subject, HasAttentionBlocks):
            sizes = torch.stack(context.subject.contribution_norms(context.batch)).mean(0)
            return explanation_from_row("attention_norm", context, sizes)
        if not isinstance(context.decode, LinearDecoder):
            raise NotApplicable(
                "attention_norm needs a linear decoder, which says what each state adds; this one "
                "is not linear."
            )
        scores = context.forward.attention * context.decode.influence
        return explanation_from_scores("attention_norm", context, scores)


@methods.register("value_zeroing")
@dataclass(frozen=True)
class ValueZeroing:
    """How far states turn when a token's value is zeroed (Mohebbi et al., 2023), through layers.

    C = 1 − cos(state, state without the value) in each layer, rows summing to 1, multiplied
    last · … · first without a residual, which the states hold already. A pass for every token.
    """

    kind: ClassVar[ScoreKind] = "attention"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = False

    def __call__(
        self,
        context: BatchContext,
        target: Int[Tensor, "B"],  # noqa: ARG002 - the same for every target
    ) -> Explanation:
        return explanation_from_row(
            "value_zeroing", context, multiply_layers(context.cached(ValueZeroingChanges()))
        )


@dataclass(frozen=True)
class ValueZeroingChanges:
    """For each layer how far the value of each token (column) turns each state (row)."""

    def __call__(self, context: BatchContext) -> list[Float[Tensor, "B T T"]]:
        if not isinstance(context.subject, HasAttentionBlocks):
            raise NotApplicable(
                "value_zeroing compares the states of layers; this model has one attention."
            )
        with context.clock("value_zeroing"):
            changes = context.subject.value_zeroing(context.batch, max_batch_tokens=context.budget)
        both = zip(changes, context.forward.maps, strict=True)
        return [normalise_changes(one, weights) for one, weights in both]


def normalise_changes(changes: Tensor, weights: Tensor) -> Tensor:
    """Rows that sum to 1, on keys that were attended to; a state that nothing turns is its own."""
    return normalise_rows(changes.to(weights.dtype) * (weights.sum(1) > 0))
