"""Distributions over the tokens of a text: make them, shuffle them, spread them evenly."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def masked_softmax(
    scores: Float[Tensor, "*batch T"], mask: Bool[Tensor, "*#batch T"]
) -> Float[Tensor, "*batch T"]:
    """Softmax over the tokens in the mask, exactly zero elsewhere; a row without tokens is zero.

    >>> masked_softmax(torch.zeros(1, 3), torch.tensor([[True, True, False]]))
    tensor([[0.5000, 0.5000, 0.0000]])
    """
    lowest = torch.finfo(scores.dtype).min  # −inf would make rows without tokens NaN
    weights = scores.masked_fill(~mask, lowest).softmax(-1)
    return weights * mask


def uniform(mask: Bool[Tensor, "*batch T"], *, dtype: torch.dtype) -> Float[Tensor, "*batch T"]:
    """Equal weight on every token in the mask.

    >>> uniform(torch.tensor([[True, True, False]]), dtype=torch.float32)
    tensor([[0.5000, 0.5000, 0.0000]])
    """
    return mask.to(dtype) / mask.sum(-1, keepdim=True).clamp(min=1)


def permuted(
    weights: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    *,
    keys: Float[Tensor, "B draws L"],
) -> Float[Tensor, "draws B T"]:
    """Shuffle each row's weights among its tokens in the mask, once per row of keys.

    The keys of a text order its own tokens (its first `length` are used), so a text gets the
    same shuffles in every batch. Weights outside the mask stay where they are.

    >>> mask = torch.tensor([[False, True, True, True, False]])
    >>> weights = torch.tensor([[0.0, 0.7, 0.2, 0.1, 0.0]])
    >>> permuted(weights, mask, keys=torch.tensor([[[0.9, 0.1, 0.5]]]))
    tensor([[[0.0000, 0.2000, 0.1000, 0.7000, 0.0000]]])
    """
    home = positions_first(mask)[:, : keys.shape[-1]]
    inside = torch.arange(keys.shape[-1], device=keys.device) < mask.sum(-1, keepdim=True)
    order = keys.masked_fill(~inside[:, None, :], float("inf")).argsort(dim=-1, stable=True)
    moved = weights.gather(-1, home)[:, None, :].expand(order.shape).gather(-1, order)
    target = home[:, None, :].expand(order.shape)
    shuffled = weights[:, None, :].repeat(1, keys.shape[1], 1).scatter(-1, target, moved)
    return shuffled.transpose(0, 1)


def positions_first(mask: Bool[Tensor, "B T"]) -> Int[Tensor, "B T"]:
    """Per row, the positions in the mask in their order, then the others in theirs.

    >>> positions_first(torch.tensor([[False, True, True]]))
    tensor([[1, 2, 0]])
    """
    return mask.int().argsort(dim=-1, descending=True, stable=True)
