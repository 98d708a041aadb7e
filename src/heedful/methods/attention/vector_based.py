"""Attention together with the vectors it weights: norms, value zeroing, ALTI and others."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from heedful.core.errors import NotApplicable
from heedful.core.values import Explanation, LinearDecoder, QueryDecoder
from heedful.methods.attention.layer_stack import (
    HeadReduction,
    RowNormalisation,
    explanation_from_row,
    layer_and_head,
    read_row,
    reduce_heads,
)
from heedful.methods.base import explanation_from_scores, methods
from heedful.models.batch_context import BatchContext
from heedful.models.internals.alti_globenc import contributions_by_layer
from heedful.models.internals.identifiability import compute_effective_attention, rank_tolerance
from heedful.models.protocols import HasAttentionBlocks, HasAttentionCalls
from heedful.numerics.tensor.attention_maps import multiply_layers
from heedful.numerics.tensor.null_space import split_null_space
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
        rolled = multiply_layers(context.cached(value_zeroing_changes))
        return explanation_from_row("value_zeroing", context, rolled)


def value_zeroing_changes(context: BatchContext) -> list[Float[Tensor, "B T T"]]:
    """For each layer, how much the value of each token (column) changes each state (row).

    Rows sum to 1 over attended keys; a state that nothing changes keeps itself.
    """
    if not isinstance(context.subject, HasAttentionBlocks):
        raise NotApplicable(
            "value_zeroing compares the states of layers; this model has one attention."
        )
    with context.clock("value_zeroing"):
        changes = context.subject.value_zeroing(context.batch, max_batch_tokens=context.budget)
    return [
        normalise_rows(change.to(weights.dtype) * (weights.sum(1) > 0))
        for change, weights in zip(changes, context.forward.maps, strict=True)
    ]


@methods.register("effective_attention", kind="attention", signed=True)
@dataclass(frozen=True)
class EffectiveAttention:
    """A − A N Nᵀ, where N spans the left null space of what the keys carry: no distribution.

    Attention without the component that cannot change the output (Brunner et al., 2020). In a
    transformer a key carries its value vector after the output projection, per head; `layer`,
    `head` and `heads` are those of `attention`. With one attention over states a key carries what
    the decoder reads of the state: at most C − 1 numbers for a linear decoder of C classes.
    """

    layer: int | None = None
    head: int | None = None
    heads: HeadReduction = "mean"

    def __call__(self, context: BatchContext, _target: Int[Tensor, "B"]) -> Explanation:
        if context.forward.maps:
            scores = self._of_layers(context)
        elif self == EffectiveAttention():
            scores = _effective_attention_over_states(context)
        else:
            raise NotApplicable(
                "effective_attention of a chosen layer or head: this model has one attention."
            )
        return explanation_from_scores("effective_attention", context, scores)

    def _of_layers(self, context: BatchContext) -> Float[Tensor, "B K"]:
        maps, subject = context.forward.maps, context.subject
        if self == EffectiveAttention() and isinstance(subject, HasAttentionCalls):  # as audited
            layers = [layer for layer in range(len(maps)) if subject.scope.includes_layer(layer)]
            head = subject.scope.head
        else:
            layer, head = layer_and_head(maps, self.layer, self.head)
            layers = [layer]
        found = [context.cached(compute_effective_attention, layer) for layer in layers]
        reduced = [reduce_heads(one.effective, self.heads, head=head) for one in found]
        rows = [read_row(context, "effective_attention", one) for one in reduced]
        return torch.stack(rows).mean(0).to(context.forward.logits.dtype)


def _effective_attention_over_states(context: BatchContext) -> Float[Tensor, "B T"]:
    """Effective attention by what the decoder reads; the output must not change."""
    decoder, own = context.decode, context.forward.attention
    if isinstance(decoder, LinearDecoder):  # softmax ignores what all classes share
        read = decoder.contributions - decoder.contributions.mean(-1, keepdim=True)
    elif isinstance(decoder, QueryDecoder):
        read = decoder.read
    else:
        raise NotApplicable(
            "effective_attention needs a decoder that reports what it reads of each state; this "
            "one does not."
        )
    effective: Float64[Tensor, "B T"] = torch.zeros_like(own, dtype=torch.float64)
    for text, mask in enumerate(context.batch.mask):
        row, carried = own[text, mask].double()[None], read[text, mask].double()
        if len(carried):
            parts = split_null_space(row, carried, tolerance=rank_tolerance(own))
            effective[text, mask] = parts.effective[0]
    scores = effective.to(own)
    before, after = (decoder(weights).softmax(-1) for weights in (own, scores))
    if not float((after - before).abs().max()) <= 1e-4:
        raise NotApplicable(
            "effective_attention does not apply: the output under it differs from the model's "
            "output."
        )
    return scores


@methods.register("alti", kind="attention")
@dataclass(frozen=True)
class Alti:
    """Contributions by the L1 distance to the state (Ferrando et al., 2022), rolled out.

    c = max(0, ‖y‖₁ − ‖y − T(x)‖₁), where T(x) is the contribution of a token to the state y after
    attention, residual and layer norm; rows are normalised to sum to 1 and multiplied
    last · … · first. That all T and the biases sum to y is verified at run time. Takes one pass;
    the same for every target.
    """

    def __call__(self, context: BatchContext, _target: Int[Tensor, "B"]) -> Explanation:
        layers = [normalise_rows(one) for one in context.cached(contributions_by_layer, "alti")]
        return explanation_from_row("alti", context, multiply_layers(layers))


@methods.register("globenc", kind="attention")
@dataclass(frozen=True)
class GlobEnc:
    """Norms of the tokens' contributions to states (Modarressi et al., 2022), rolled out.

    ‖T(x)‖₂ after both layer norms of a layer, without its feed-forward part but with the residual
    around it; multiplied last · … · first. As published, rows are not normalised (normalise="row"
    does so): each layer is only divided by its largest row sum, which does not change the ranking.
    Takes one pass; the same for every target.
    """

    normalise: RowNormalisation = "none"

    def __call__(self, context: BatchContext, _target: Int[Tensor, "B"]) -> Explanation:
        layers = []
        for norms in context.cached(contributions_by_layer, "globenc"):
            if self.normalise == "row":
                layers.append(normalise_rows(norms))
                continue
            present = context.batch.present.to(norms.device)
            largest = norms.sum(-1).masked_fill(~present, 0.0).amax(-1)[:, None, None]
            layers.append(norms / largest.clamp(min=1e-30))
        return explanation_from_row("globenc", context, multiply_layers(layers))
