"""Delete whole words from a text: all their pieces at once; later tokens move up."""

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.core.batch import Batch
from heedful.core.errors import NotApplicable
from heedful.models.batch_context import BatchContext, OutputFunction, VariantLogits


def same_word_mask(batch: Batch) -> Bool[Tensor, "B T T"]:
    """Which pairs of tokens are pieces of one word; special tokens belong to none."""
    pairs = batch.mask[:, :, None] & batch.mask[:, None, :]
    if batch.word is None:
        return pairs & torch.eye(batch.ids.shape[1], dtype=torch.bool)
    return pairs & (batch.word[:, :, None] == batch.word[:, None, :])


def logits_without_each_word(context: BatchContext) -> Float[Tensor, "B T C"]:
    """Logits with the whole word of token t deleted, for each t in the mask; zeros elsewhere."""
    together, mask = same_word_mask(context.batch), context.batch.mask
    if int(together.sum()) == int(mask.sum()):  # every word is one token
        return context.without_each
    first = together.byte().argmax(-1)  # every piece of a word takes the result of the first one
    rows, heads = (mask & (first == torch.arange(mask.shape[1]))).nonzero(as_tuple=True)
    with context.clock("leave_one_out"), torch.no_grad():
        logits = logits_without_tokens(context, rows, together[rows, heads])
    result = logits.new_zeros(*mask.shape, logits.shape[-1])
    result[rows, heads] = logits
    result = result[torch.arange(len(mask))[:, None], first]
    return result.masked_fill(~mask[..., None].to(result.device), 0.0)


def logits_without_tokens(
    context: BatchContext, rows: Int[Tensor, "N"], deleted: Bool[Tensor, "N T"]
) -> Float[Tensor, "N C"]:
    """The logits of texts rows[n] without the tokens deleted[n]."""
    _require_tokens_left(context, rows, deleted)
    result = context.logits.new_zeros(len(rows), len(context.subject.labels))
    for variants, which, logits in run_without_tokens(context, rows, deleted):
        result[variants] = logits[which]
    return result


def run_without_tokens(
    context: BatchContext,
    rows: Int[Tensor, "N"],
    deleted: Bool[Tensor, "N T"],
    *,
    output: OutputFunction = BatchContext.run_logits,
) -> Iterator[VariantLogits]:
    """Run every distinct variant once; give the indices of variants, and their rows in the logits.

    Variants of equal length run together, so none is padded. A variant with no token left is in no
    pass.
    """
    left = context.batch.present[rows] & ~deleted
    lengths = left.sum(-1)
    for length in torch.unique(lengths[lengths > 0]).tolist():
        variants = (lengths == length).nonzero().squeeze(-1)
        shorter = context.batch.keep_tokens(rows[variants], left[variants])
        first, which = shorter.distinct_texts()
        size = max(1, context.budget // length)
        for start, some in zip(range(0, len(first), size), torch.split(first, size), strict=True):
            here = (which >= start) & (which < start + size)
            with torch.no_grad():
                logits = output(context, shorter.select(some), None)
            yield variants[here], which[here] - start, logits


def _require_tokens_left(
    context: BatchContext, rows: Int[Tensor, "N"], deleted: Bool[Tensor, "N T"]
) -> None:
    left = (context.batch.present[rows] & ~deleted).any(-1)
    if not bool(left.all()):
        text = context.batch.instances[int(rows[~left][0])]
        raise NotApplicable(
            f"Without its only word, text {text} leaves nothing for "
            f"{context.subject.family} to read; delete tokens instead (players=tokens)."
        )
