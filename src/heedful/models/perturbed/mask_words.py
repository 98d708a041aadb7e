"""Words hidden from a model: their vectors replaced by a blank one, their places kept."""

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.core.values import MaskEmbedding
from heedful.models.batch_context import BatchContext, OutputFunction, VariantLogits
from heedful.models.protocols import HasMaskEmbedding


def get_mask_embedding(context: BatchContext) -> MaskEmbedding:
    """What the subject names as no word, such as [MASK]; a vector of zeros where it names none."""
    if isinstance(context.subject, HasMaskEmbedding):
        return context.subject.mask_embedding()
    width = context.embedded.shape[-1]
    return MaskEmbedding("zero vector", context.embedded.new_zeros(width))


def mask_embeddings(
    context: BatchContext, rows: Int[Tensor, "N"], hidden: Bool[Tensor, "N T"]
) -> Float[Tensor, "N T E"]:
    """The vectors of texts rows[n] with the tokens hidden[n] blank."""
    vectors = context.embedded.detach()[rows]
    blank = get_mask_embedding(context).vector.to(vectors)
    return torch.where(hidden[..., None], blank, vectors)


def logits_with_masked_tokens(
    context: BatchContext, rows: Int[Tensor, "N"], hidden: Bool[Tensor, "N T"]
) -> Float[Tensor, "N C"]:
    """The logits of texts rows[n] with the tokens hidden[n] blank."""
    found = context.embedded.detach().new_zeros(len(rows), len(context.subject.labels))
    for variants, which, logits in run_with_masked_tokens(context, rows, hidden):
        found = found.to(logits)
        found[variants] = logits[which]
    return found


def run_with_masked_tokens(
    context: BatchContext,
    rows: Int[Tensor, "N"],
    hidden: Bool[Tensor, "N T"],
    *,
    ask: OutputFunction = BatchContext.run_logits,
) -> Iterator[VariantLogits]:
    """Every distinct variant once: which of the N it is, by its row among the logits of a pass."""
    if bool((hidden & ~context.batch.mask[rows]).any()):
        raise ValueError("Only words can be hidden.")
    both, which = torch.unique(
        torch.cat([rows[:, None], hidden.long()], dim=1), dim=0, return_inverse=True
    )
    start = 0
    for some, hide in context.split_by_budget(both[:, 0], both[:, 1:].bool()):
        here = ((which >= start) & (which < start + len(some))).nonzero().squeeze(-1)
        with torch.no_grad():
            logits = ask(context, context.batch.chosen(some), mask_embeddings(context, some, hide))
        yield here, which[here] - start, logits
        start += len(some)
