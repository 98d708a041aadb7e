"""How far other weights on the most influential words move the output."""

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from heedful.core.values import LinearDecoder, QueryDecoder
from heedful.models.batch_context import BatchContext
from heedful.models.transformer.last_layer import LastLayerReplay
from heedful.numerics.tensor.distributions import tvd

CHEAP_DECODERS = (LinearDecoder, QueryDecoder, LastLayerReplay)


def decodes_cheaply(context: BatchContext) -> bool:
    """Whether the output under other weights needs no whole pass of the model."""
    return isinstance(context.decode, CHEAP_DECODERS)


def leverage_among(context: BatchContext, chosen: Bool[Tensor, "B T"]) -> Float64[Tensor, "B"]:
    """The largest change of the output, in TVD, by moving weight among the chosen tokens alone.

    Their total weight stays, in every row (of a head, say), and so do all other weights. The
    weights tried put the whole of it on one token. For a linear decoder of two classes that is the
    largest change of all; otherwise it is a lower bound.
    """
    before = context.forward.probabilities
    largest = torch.zeros(len(before), dtype=torch.float64)
    for weights in _candidates(context, chosen):
        moved = tvd(context.decode(weights).softmax(-1), before)
        largest = torch.maximum(largest, moved.double().cpu())
    return torch.where(chosen.sum(-1) > 1, largest, torch.nan)


def leverage_onto(
    context: BatchContext, chosen: Bool[Tensor, "B T"], others: Bool[Tensor, "B T"]
) -> Float64[Tensor, "B"]:
    """The change of the output, in TVD, where others take the weight of the chosen tokens evenly.

    All other weights stay, and so do rows that may attend to none of the others.
    """
    rows = context.rows
    from_here, onto = (
        one if rows.dim() == 2 else one[:, None] & context.attendable_words
        for one in (chosen, others)
    )
    mass = rows.masked_fill(~from_here, 0.0).sum(-1, keepdim=True)
    count = onto.sum(-1, keepdim=True)
    moved = rows.masked_fill(from_here, 0.0) + onto * mass / count.clamp(min=1)
    weights = torch.where(count > 0, moved, rows)
    before = context.forward.probabilities
    return tvd(context.decode(weights).softmax(-1), before).double().cpu()


def _candidates(
    context: BatchContext, chosen: Bool[Tensor, "B T"]
) -> Iterator[Float[Tensor, "B *R T"]]:
    """All weight of the chosen tokens on one of them, token by token."""
    rows = context.rows
    place = chosen if rows.dim() == 2 else chosen[:, None] & context.attendable_words
    mass = rows.masked_fill(~place, 0.0).sum(-1, keepdim=True)
    number = chosen.cumsum(-1)
    for one in range(1, int(number.max()) + 1):
        here = chosen & (number == one)
        alone = here if rows.dim() == 2 else here[:, None] & context.attendable_words
        moved = torch.where(place, mass * alone, rows)
        # a row that may not attend to the token keeps its weights, as do texts without one
        yield torch.where(alone.any(-1, keepdim=True), moved, rows)
