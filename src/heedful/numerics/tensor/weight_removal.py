"""Remove attention weights, and count how many must go until a decision flips.

Removing a set S of words sets their weights to 0 and rescales the others to sum to 1. If the logits
are Σ α_t v_t with Σ α = 1 (a bias is part of v), they become Σ_{t∉S} α_t v_t divided by a positive
number, so the decision is that of the plain sum of the remaining terms: each removal subtracts its
own term and changes no other.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.numerics.tensor.distributions import normalise_weights
from heedful.numerics.tensor.ranking import RELATIVE_TOLERANCE


def descending_order(
    scores: Float[Tensor, "*K T"], mask: Bool[Tensor, "*#K T"]
) -> Int[Tensor, "*K T"]:
    """Positions of words from the highest score down, ties in text order; then the other positions.

    >>> descending_order(torch.tensor([[0.2, 0.9, 0.2]]), torch.tensor([[True, True, True]]))
    tensor([[1, 0, 2]])
    """
    ranked = scores.masked_fill(~mask, float("-inf"))
    return ranked.argsort(dim=-1, descending=True, stable=True)


def top_word(weights: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Int[Tensor, "B"]:
    """The first of the words with the largest weight.

    Weights that differ only by rounding are tied, so the answer does not depend on the batch.

    >>> top_word(torch.tensor([[0.2, 0.4, 0.4]]), torch.tensor([[True, True, True]]))
    tensor([1])
    """
    largest = weights.masked_fill(~mask, 0.0).amax(-1, keepdim=True)
    return ((weights >= (1 - RELATIVE_TOLERANCE) * largest) & mask).int().argmax(-1)


def mark_first(order: Int[Tensor, "B T"], counts: Int[Tensor, "K"]) -> Bool[Tensor, "K B T"]:
    """Marks the first `counts` positions of each order.

    >>> mark_first(torch.tensor([[2, 0, 1]]), torch.tensor([2]))
    tensor([[[ True, False,  True]]])
    """
    return order.argsort(dim=-1) < counts[:, None, None]


def remove_weights(
    weights: Float[Tensor, "*#K T"], removed: Bool[Tensor, "*#K T"]
) -> Float[Tensor, "*#K T"]:
    """The distribution over the remaining words; zeros where none remains.

    >>> remove_weights(torch.tensor([[0.5, 0.3, 0.2]]), torch.tensor([[True, False, False]]))
    tensor([[0.0000, 0.6000, 0.4000]])
    """
    return normalise_weights(weights.masked_fill(removed, 0.0))


def removals_to_flip(
    weights: Float[Tensor, "B T"],
    values: Float[Tensor, "B T C"],
    predicted: Int[Tensor, "B"],
    *,
    order: Int[Tensor, "B T"],
) -> Int[Tensor, "B"]:
    """How many words must be removed, in order, until the decision flips; 0 if it never does.

    >>> weights, values = torch.tensor([[0.6, 0.4]]), torch.tensor([[[0.0, 1.0], [1.0, 0.0]]])
    >>> removals_to_flip(weights, values, torch.tensor([1]), order=torch.tensor([[0, 1]]))
    tensor([1])
    """
    terms = _leads(weights, values, predicted).gather(1, order[..., None].expand_as(values))
    flipped = _rival_wins(_rest(terms), predicted).any(-1)
    return first_true(flipped & (_rest(weights.gather(1, order)) > 0))


def fewest_removals_to_flip(
    weights: Float[Tensor, "B T"], values: Float[Tensor, "B T C"], predicted: Int[Tensor, "B"]
) -> Int[Tensor, "B"]:
    """The size of the smallest set of words whose removal flips the decision; 0 if none does.

    Against one rival class the lead after k removals is least if the k largest terms go, so sorting
    finds the smallest set; a flip needs one rival only. Once the terms above 0 are gone the lead is
    minimal, so the place of padding does not matter.

    >>> weights = torch.tensor([[0.5, 0.3, 0.2]])
    >>> values = torch.tensor([[[0.0, 1.0], [0.0, 2.0], [1.0, 0.0]]])
    >>> fewest_removals_to_flip(weights, values, torch.tensor([1]))
    tensor([2])
    """
    terms, spread = _leads(weights, values, predicted), weights[..., None].expand_as(values)
    order = terms.argsort(dim=1, descending=True)
    flipped = _rival_wins(_rest(terms.gather(1, order)), predicted)
    return first_true((flipped & (_rest(spread.gather(1, order)) > 0)).any(-1))


def first_true(flipped: Bool[Tensor, "B K"]) -> Int[Tensor, "B"]:
    """The place of the first True of each row, counted from 1; 0 where there is none.

    >>> first_true(torch.tensor([[False, True, True], [False, False, False]]))
    tensor([2, 0])
    """
    before = (flipped.cumsum(-1) == 0).sum(-1)
    return torch.where(flipped.any(-1), before + 1, 0)


def _leads(
    weights: Float[Tensor, "B T"], values: Float[Tensor, "B T C"], predicted: Int[Tensor, "B"]
) -> Float[Tensor, "B T C"]:
    """The contribution of each word to the lead of the predicted class over each class."""
    chosen = predicted[:, None, None].expand(-1, values.shape[1], 1)
    return weights[..., None] * (values.gather(-1, chosen) - values)


def _rest(terms: Float[Tensor, "B T *C"]) -> Float[Tensor, "B K *C"]:
    """Sums of the terms left after 1, 2, … removals, added from the end so that 0 is exactly 0."""
    return terms.flip(1).cumsum(1).flip(1)[:, 1:]


def _rival_wins(lead: Float[Tensor, "B K C"], predicted: Int[Tensor, "B"]) -> Bool[Tensor, "B K C"]:
    """Which classes win; ties go to the first class, as in torch.argmax."""
    earlier = torch.arange(lead.shape[-1], device=lead.device) < predicted[:, None]
    return (lead < 0) | ((lead == 0) & earlier[:, None])
