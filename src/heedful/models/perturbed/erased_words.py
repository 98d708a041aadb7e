"""Erase words from texts: delete their tokens, or mask their vectors at the same positions.

A deleted word loses all its pieces at once, and later tokens move up; a masked one gets a mask
embedding. Every distinct variant of a text is run once.
"""

from collections.abc import Iterable, Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.core.errors import NotApplicable
from heedful.core.values import MaskEmbedding
from heedful.models.batch_context import BatchContext, OutputFunction, VariantLogits
from heedful.models.protocols import HasMaskEmbedding, RunsVariants


def logits_without_each_word(context: BatchContext) -> Float[Tensor, "B T C"]:
    """Logits with the whole word of token t deleted, for each t in the mask; zeros elsewhere."""
    together, mask = context.batch.same_item, context.batch.mask
    if int(together.sum()) == int(mask.sum()):  # every word is one token
        return context.without_each
    first = together.byte().argmax(-1)  # every piece of a word takes the result of the first one
    rows, heads = (mask & (first == torch.arange(mask.shape[1]))).nonzero(as_tuple=True)
    deleted = together[rows, heads]
    left = (context.batch.present[rows] & ~deleted).any(-1)
    if not bool(left.all()):
        text = context.batch.instances[int(rows[~left][0])]
        raise NotApplicable(
            f"Without its only word, text {text} leaves nothing for "
            f"{context.subject.family} to read; delete tokens instead (players=tokens)."
        )
    with context.clock("leave_one_out"), torch.no_grad():
        logits = _in_order(run_without_tokens(context, rows, deleted))
    result = logits.new_zeros(*mask.shape, logits.shape[-1])
    result[rows, heads] = logits
    result = result[torch.arange(len(mask))[:, None], first]
    return result.masked_fill(~mask[..., None].to(result.device), 0.0)


def run_without_tokens(
    context: BatchContext,
    rows: Int[Tensor, "N"],
    deleted: Bool[Tensor, "N T"],
    *,
    output: OutputFunction = BatchContext.run_logits,
) -> Iterator[VariantLogits]:
    """Run texts rows[n] without the tokens deleted[n].

    Gives the indices of variants, and their rows in the logits. Variants of equal length run
    together, so none is padded, or those of one text, where the subject has a pass for them. A
    variant with no token left is in no pass.
    """
    left = context.batch.present[rows] & ~deleted
    if output is BatchContext.run_logits and isinstance(context.subject, RunsVariants):
        yield from _run_variants(context, context.subject, rows, left)
        return
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


def _run_variants(
    context: BatchContext,
    subject: RunsVariants,
    rows: Int[Tensor, "N"],
    left: Bool[Tensor, "N T"],
    hidden: Bool[Tensor, "N T"] | None = None,
) -> Iterator[VariantLogits]:
    """Variants text by text, in passes of the subject's own for them."""
    lengths = left.sum(-1)
    variants = lengths.nonzero().squeeze(-1)
    variants = variants[rows[variants].argsort(stable=True)]
    ends = lengths[variants].cumsum(0)
    passes = (ends - lengths[variants]) // context.budget
    for some in torch.split(variants, torch.unique(passes, return_counts=True)[1].tolist()):
        masked = None if hidden is None else hidden[some]
        logits = subject.logits_of_variants(context.batch, rows[some], left[some], masked)
        yield some, torch.arange(len(some)), logits


def get_mask_embedding(context: BatchContext) -> MaskEmbedding:
    """The mask embedding of the subject, such as [MASK]; a vector of zeros if it has none."""
    if isinstance(context.subject, HasMaskEmbedding):
        return context.subject.mask_embedding()
    width = context.embedded.shape[-1]
    return MaskEmbedding("zero vector", context.embedded.new_zeros(width))


def logits_with_masked_tokens(
    context: BatchContext, rows: Int[Tensor, "N"], hidden: Bool[Tensor, "N T"]
) -> Float[Tensor, "N C"]:
    """The logits of texts rows[n] with the tokens hidden[n] masked."""
    return _in_order(run_with_masked_tokens(context, rows, hidden))


def run_with_masked_tokens(
    context: BatchContext,
    rows: Int[Tensor, "N"],
    hidden: Bool[Tensor, "N T"],
    *,
    output: OutputFunction = BatchContext.run_logits,
) -> Iterator[VariantLogits]:
    """As `run_without_tokens`, with the tokens hidden[n] masked."""
    if bool((hidden & ~context.batch.mask[rows]).any()):
        raise ValueError("Only words can be masked; got tokens outside the mask of the batch.")
    if output is BatchContext.run_logits and isinstance(context.subject, RunsVariants):
        yield from _run_variants(
            context, context.subject, rows, context.batch.present[rows], hidden
        )
        return
    both, which = torch.unique(
        torch.cat([rows[:, None], hidden.long()], dim=1), dim=0, return_inverse=True
    )
    vectors = context.embedded.detach()
    blank, start = get_mask_embedding(context).vector.to(vectors), 0
    for some, hide in context.split_by_budget(both[:, 0], both[:, 1:].bool()):
        here = ((which >= start) & (which < start + len(some))).nonzero().squeeze(-1)
        with torch.no_grad():
            masked = torch.where(hide[..., None], blank, vectors[some])
            logits = output(context, context.batch.select(some), masked)
        yield here, which[here] - start, logits
        start += len(some)


def _in_order(passes: Iterable[VariantLogits]) -> Float[Tensor, "N C"]:
    """The logits of all variants, in the order of their indices."""
    found = [(variants, logits[which]) for variants, which, logits in passes]
    variants, logits = zip(*found, strict=True)
    return torch.cat(logits)[torch.cat(variants).argsort()]
