"""Random numbers of the texts of a batch, keyed by text and purpose."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from heedful.core.rng import uniform_keys
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.distributions import positions_first


def draw_uniform(
    context: BatchContext, purpose: str, *, draws: int, lengths: Sequence[int]
) -> Float64[Tensor, "B K L"]:
    """Numbers in [0, 1), as many as each text's length; ones beyond it."""
    keys = uniform_keys(context.seed, purpose, context.batch.content, draws=draws, lengths=lengths)
    return torch.from_numpy(keys)


def draw_for_words(context: BatchContext, purpose: str, *, draws: int) -> Float64[Tensor, "B K T"]:
    """A number in [0, 1) for each word's token, drawn in text order; any number elsewhere."""
    mask = context.batch.mask
    lengths = context.batch.lengths.tolist()
    return place_in_text(draw_uniform(context, purpose, draws=draws, lengths=lengths), mask)


def draw_for_elements(context: BatchContext, purpose: str) -> Float64[Tensor, "B T E"]:
    """A number in [0, 1) for each element of each word's vector; any number elsewhere."""
    mask, width = context.batch.mask, context.embedded.shape[-1]
    lengths = [width * count for count in context.batch.lengths.tolist()]
    drawn = draw_uniform(context, purpose, draws=1, lengths=lengths)
    by_element = drawn.reshape(len(mask), -1, width).transpose(1, 2)
    return place_in_text(by_element, mask).transpose(1, 2)


def place_in_text(
    values: Float[Tensor, "B K L"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B K T"]:
    """Move value l of each row to position l of those in the mask; positions left over get 0."""
    home = positions_first(mask).to(values.device)[:, None, : values.shape[-1]].expand_as(values)
    empty = values.new_zeros(len(mask), values.shape[1], mask.shape[1])
    return empty.scatter(-1, home, values)
