"""Rows of attention maps: take those under audit out, put others in, read them as one."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def take_rows(
    weights: Float[Tensor, "B H Q K"],
    present: Bool[Tensor, "B K"],
    position: Int[Tensor, "B"] | None,
    *,
    head: int | None = None,
) -> Float[Tensor, "B R K"]:
    """The rows of one position's query (of each head, or of one), or of every query in the text.

    >>> weights = torch.tensor([[[[1.0, 0.0], [0.3, 0.7]]]])
    >>> take_rows(weights, torch.ones(1, 2, dtype=torch.bool), torch.tensor([1]))
    tensor([[[0.3000, 0.7000]]])
    """
    chosen = weights if head is None else weights[:, head : head + 1]
    if position is not None:
        return chosen[
            torch.arange(len(chosen), device=chosen.device), :, position.to(chosen.device)
        ]
    inside = present.to(chosen.device)[:, None, :, None]
    return (chosen * inside).flatten(1, 2)


def place_rows(
    weights: Float[Tensor, "B H Q K"],
    rows: Float[Tensor, "B R K"],
    present: Bool[Tensor, "B K"],
    position: Int[Tensor, "B"] | None,
    *,
    head: int | None = None,
) -> Float[Tensor, "B H Q K"]:
    """The map with the given rows where `take_rows` would find its own; all else as it was."""
    count = weights.shape[1] if head is None else 1
    if position is not None:
        here = torch.zeros(len(weights), weights.shape[2], dtype=torch.bool, device=weights.device)
        here[torch.arange(len(weights)), position] = True
        spread = rows[:, :, None, :]
    else:
        here = present.to(weights.device)
        spread = rows.reshape(len(rows), count, *weights.shape[2:])
    chosen = here[:, None, :, None]
    if head is not None:
        which = torch.arange(weights.shape[1], device=weights.device) == head
        chosen = chosen & which[None, :, None, None]
    return torch.where(chosen, spread, weights)


def read_rows(rows: Float[Tensor, "*K R T"], mask: Bool[Tensor, "*#K T"]) -> Float[Tensor, "*K T"]:
    """What rows say together: their mean over the words of the text, as a distribution of its own.

    Weight on special tokens and on sinks is left out. A text whose words get none has zeros.

    >>> rows = torch.tensor([[0.5, 0.2, 0.3], [0.5, 0.4, 0.1]])
    >>> read_rows(rows, torch.tensor([False, True, True]))
    tensor([0.0000, 0.6000, 0.4000])
    """
    words = rows.sum(-2) * mask
    total = words.sum(-1, keepdim=True)
    return words / torch.where(total > 0, total, torch.ones_like(total))
