"""Mask words: replace their vectors by a mask embedding, and keep their positions."""

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.core.values import MaskEmbedding
from heedful.models.batch_context import BatchContext, OutputFunction, VariantLogits
from heedful.models.protocols import HasMaskEmbedding


def get_mask_embedding(context: BatchContext) -> MaskEmbedding:
    """The mask embedding of the subject, such as [MASK]; a vector of zeros if it has none."""
    if isinstance(context.subject, HasMaskEmbedding):
        return context.subject.mask_embedding()
    width = context.embedded.shape[-1]
    return MaskEmbedding("zero vector", context.embedded.new_zeros(width))


def mask_embeddings(
    context: BatchContext, rows: Int[Tensor, "N"], hidden: Bool[Tensor, "N T"]
) -> Float[Tensor, "N T E"]:
    """The vectors of texts rows[n] with the tokens hidden[n] masked."""
    vectors = context.embedded.detach()[rows]
    blank = get_mask_embedding(context).vector.to(vectors)
    return torch.where(hidden[..., None], blank, vectors)


def logits_with_masked_tokens(
    context: BatchContext, rows: Int[Tensor, "N"], hidden: Bool[Tensor, "N T"]
) -> Float[Tensor, "N C"]:
    """The logits of texts rows[n] with the tokens hidden[n] masked."""
    result = context.embedded.detach().new_zeros(len(rows), len(context.subject.labels))
    for variants, which, logits in run_with_masked_tokens(context, rows, hidden):
        result = result.to(logits)
        result[variants] = logits[which]
    return result


def run_with_masked_tokens(
    context: BatchContext,
    rows: Int[Tensor, "N"],
    hidden: Bool[Tensor, "N T"],
    *,
    output: OutputFunction = BatchContext.run_logits,
) -> Iterator[VariantLogits]:
    """Run every distinct variant once; give indices of variants, and their rows in the logits."""
    if bool((hidden & ~context.batch.mask[rows]).any()):
        raise ValueError("Only words can be masked; got tokens outside the mask of the batch.")
    both, which = torch.unique(
        torch.cat([rows[:, None], hidden.long()], dim=1), dim=0, return_inverse=True
    )
    start = 0
    for some, hide in context.split_by_budget(both[:, 0], both[:, 1:].bool()):
        here = ((which >= start) & (which < start + len(some))).nonzero().squeeze(-1)
        with torch.no_grad():
            vectors = mask_embeddings(context, some, hide)
            logits = output(context, context.batch.select(some), vectors)
        yield here, which[here] - start, logits
        start += len(some)
