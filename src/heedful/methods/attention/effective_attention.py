"""Attention less what of it has no effect whatever (Brunner et al., 2020)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from heedful.core.errors import NotApplicable
from heedful.core.values import Explanation, LinearDecoder, QueryDecoder
from heedful.methods.attention.layer_stack import (
    HEAD_REDUCTIONS,
    HeadReduction,
    read_row,
    reduce_heads,
    require_index,
)
from heedful.methods.base import Join, ScoreKind, explanation_from_scores, methods, require_one_of
from heedful.models.batch_context import BatchContext
from heedful.models.internals.identifiability import EffectiveAttentionComputation, rank_tolerance
from heedful.models.protocols import HasAttentionCalls
from heedful.numerics.tensor.null_space import split_null_space

NAME = "effective_attention"


@methods.register(NAME)
@dataclass(frozen=True)
class EffectiveAttention:
    """A − A N Nᵀ, where N spans the left null space of what the keys carry: no distribution.

    In a transformer a key carries its value behind the output map, head by head; `layer`, `head`
    and `heads` choose as those of `attention`. With one attention over states it carries what the
    decoder reads of a state: if that is linear in C classes, at most C − 1 numbers.
    """

    layer: int | None = None
    head: int | None = None
    heads: HeadReduction = "mean"
    kind: ClassVar[ScoreKind] = "attention"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_one_of("heads", self.heads, HEAD_REDUCTIONS)

    def __call__(
        self,
        context: BatchContext,
        target: Int[Tensor, "B"],  # noqa: ARG002 - the same for every target
    ) -> Explanation:
        if not context.forward.maps:
            if self != EffectiveAttention():
                raise NotApplicable(f"{NAME} of a layer or head: this model has one attention.")
            return explanation_from_scores(NAME, context, _of_single_attention(context))
        layers, head = self._chosen(context)
        maps = [context.cached(EffectiveAttentionComputation(layer)).effective for layer in layers]
        if head is not None:
            maps = [one[:, head : head + 1] for one in maps]
        rows = [read_row(context, NAME, reduce_heads(one, self.heads)) for one in maps]
        return explanation_from_scores(
            NAME, context, torch.stack(rows).mean(0).to(context.forward.logits.dtype)
        )

    def _chosen(self, context: BatchContext) -> tuple[list[int], int | None]:
        """The layers and the head: those under audit unless others are named."""
        maps, subject = context.forward.maps, context.subject
        if self == EffectiveAttention() and isinstance(subject, HasAttentionCalls):
            held = [layer for layer in range(len(maps)) if subject.scope.includes_layer(layer)]
            return held, subject.scope.head
        layer = require_index("layer", -1 if self.layer is None else self.layer, len(maps))
        head = None if self.head is None else require_index("head", self.head, maps[layer].shape[1])
        return [layer], head


def _of_single_attention(context: BatchContext) -> Float[Tensor, "B T"]:
    """One attention over states, by what the decoder reads of each; its output must stay."""
    decoder, own = context.decode, context.forward.attention
    if isinstance(decoder, LinearDecoder):  # softmax does not see what all classes share
        read = decoder.contributions - decoder.contributions.mean(-1, keepdim=True)
    elif isinstance(decoder, QueryDecoder):
        read = decoder.read
    else:
        raise NotApplicable(
            f"{NAME} needs to know what the decoder reads of each state; this one does not say."
        )
    found: Float64[Tensor, "B T"] = torch.zeros_like(own, dtype=torch.float64)
    for text, mask in enumerate(context.batch.mask):
        row, carried = own[text, mask].double()[None], read[text, mask].double()
        if len(carried):
            found[text, mask] = split_null_space(
                row, carried, tolerance=rank_tolerance(own)
            ).effective[0]
    scores = found.to(own)
    before, after = (decoder(one).softmax(-1) for one in (own, scores))
    if not float((after - before).abs().max()) <= 1e-4:
        raise NotApplicable(f"{NAME} is refused: the output under it is not the model's own.")
    return scores
