"""Attention without its component in the null space of the values (Brunner et al., 2020)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from heedful.core.errors import NotApplicable
from heedful.core.values import Explanation, LinearDecoder, QueryDecoder
from heedful.methods.attention.layer_stack import (
    HeadReduction,
    read_row,
    reduce_heads,
    require_index,
)
from heedful.methods.base import explanation_from_scores, methods
from heedful.models.batch_context import BatchContext
from heedful.models.internals.identifiability import EffectiveAttentionComputation, rank_tolerance
from heedful.models.protocols import HasAttentionCalls
from heedful.numerics.tensor.null_space import split_null_space

NAME = "effective_attention"


@methods.register(NAME, kind="attention", signed=True)
@dataclass(frozen=True)
class EffectiveAttention:
    """A − A N Nᵀ, where N spans the left null space of what the keys carry: no distribution.

    In a transformer a key carries its value vector after the output projection, per head; `layer`,
    `head` and `heads` are those of `attention`. With one attention over states a key carries what
    the decoder reads of the state: at most C − 1 numbers for a linear decoder of C classes.
    """

    layer: int | None = None
    head: int | None = None
    heads: HeadReduction = "mean"

    def __call__(self, context: BatchContext, _target: Int[Tensor, "B"]) -> Explanation:
        if not context.forward.maps:
            if self != EffectiveAttention():
                raise NotApplicable(
                    f"{NAME} of a chosen layer or head: this model has one attention."
                )
            return explanation_from_scores(NAME, context, _of_single_attention(context))
        layers, head = self._select(context)
        maps = [context.cached(EffectiveAttentionComputation(layer)).effective for layer in layers]
        if head is not None:
            maps = [one[:, head : head + 1] for one in maps]
        rows = [read_row(context, NAME, reduce_heads(one, self.heads)) for one in maps]
        return explanation_from_scores(
            NAME, context, torch.stack(rows).mean(0).to(context.forward.logits.dtype)
        )

    def _select(self, context: BatchContext) -> tuple[list[int], int | None]:
        """The layers and the head: by default those under audit."""
        maps, subject = context.forward.maps, context.subject
        if self == EffectiveAttention() and isinstance(subject, HasAttentionCalls):
            audited = [layer for layer in range(len(maps)) if subject.scope.includes_layer(layer)]
            return audited, subject.scope.head
        layer = require_index("layer", -1 if self.layer is None else self.layer, len(maps))
        head = None if self.head is None else require_index("head", self.head, maps[layer].shape[1])
        return [layer], head


def _of_single_attention(context: BatchContext) -> Float[Tensor, "B T"]:
    """Effective attention over states, from what the decoder reads; the output must not change."""
    decoder, own = context.decode, context.forward.attention
    if isinstance(decoder, LinearDecoder):  # softmax ignores what all classes share
        read = decoder.contributions - decoder.contributions.mean(-1, keepdim=True)
    elif isinstance(decoder, QueryDecoder):
        read = decoder.read
    else:
        raise NotApplicable(
            f"{NAME} needs a decoder that reports what it reads of each state; this one does not."
        )
    effective: Float64[Tensor, "B T"] = torch.zeros_like(own, dtype=torch.float64)
    for text, mask in enumerate(context.batch.mask):
        row, carried = own[text, mask].double()[None], read[text, mask].double()
        if len(carried):
            effective[text, mask] = split_null_space(
                row, carried, tolerance=rank_tolerance(own)
            ).effective[0]
    scores = effective.to(own)
    before, after = (decoder(weights).softmax(-1) for weights in (own, scores))
    if not float((after - before).abs().max()) <= 1e-4:
        raise NotApplicable(
            f"{NAME} does not apply: the output under it differs from the model's output."
        )
    return scores
