"""Attention weighted by the vectors it carries: attention norms and value zeroing."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.errors import NotApplicable
from heedful.core.values import Explanation, LinearDecoder
from heedful.methods.attention.layer_stack import explanation_from_row
from heedful.methods.base import explanation_from_scores, methods
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import HasAttentionBlocks
from heedful.numerics.tensor.attention_maps import multiply_layers
from heedful.numerics.tensor.vector_parts import normalise_rows


@methods.register("attention_norm", kind="attention")
@dataclass(frozen=True)
class AttentionNorm:
    """‖α f(x)‖ (Kobayashi et al., 2020): the norm of what each token adds, not only its weight.

    In a transformer f(x) is the value vector after the output projection, summed over heads, in the
    layer under audit (the mean over layers where all are audited); with one attention over states
    it is what a state adds to the logits. That the parts sum to the block's output is verified at
    run time.
    """

    def __call__(self, context: BatchContext, _target: Int[Tensor, "B"]) -> Explanation:
        if isinstance(context.subject, HasAttentionBlocks):
            sizes = torch.stack(context.subject.contribution_norms(context.batch)).mean(0)
            return explanation_from_row("attention_norm", context, sizes)
        if not isinstance(context.decode, LinearDecoder):
            raise NotApplicable(
                "attention_norm needs a linear decoder, so that each state adds a known part; this "
                "one is not linear."
            )
        scores = context.forward.attention * context.decode.influence
        return explanation_from_scores("attention_norm", context, scores)


@methods.register("value_zeroing", kind="attention")
@dataclass(frozen=True)
class ValueZeroing:
    """Change of hidden states when a token's value is zeroed (Mohebbi et al., 2023), rolled out.

    C = 1 − cos(state, state without the value) in each layer, rows normalised to sum to 1,
    multiplied last · … · first; no residual is added, since the states include it. Takes one pass
    per token.
    """

    def __call__(self, context: BatchContext, _target: Int[Tensor, "B"]) -> Explanation:
        return explanation_from_row(
            "value_zeroing", context, multiply_layers(context.cached(ValueZeroingChanges()))
        )


@dataclass(frozen=True)
class ValueZeroingChanges:
    """For each layer, how much the value of each token (column) changes each state (row)."""

    def __call__(self, context: BatchContext) -> list[Float[Tensor, "B T T"]]:
        if not isinstance(context.subject, HasAttentionBlocks):
            raise NotApplicable(
                "value_zeroing compares the states of layers; this model has one attention."
            )
        with context.clock("value_zeroing"):
            changes = context.subject.value_zeroing(context.batch, max_batch_tokens=context.budget)
        layers = zip(changes, context.forward.maps, strict=True)
        return [normalise_changes(change, weights) for change, weights in layers]


def normalise_changes(changes: Tensor, weights: Tensor) -> Tensor:
    """Normalise rows to sum to 1 over attended keys; a state that nothing changes keeps itself."""
    return normalise_rows(changes.to(weights.dtype) * (weights.sum(1) > 0))
