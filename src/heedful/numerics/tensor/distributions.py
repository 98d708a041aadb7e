"""Distributions over the tokens of a text, and distances between distributions."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

LOG2 = math.log(2.0)


def masked_softmax(
    scores: Float[Tensor, "*K T"], mask: Bool[Tensor, "*#K T"]
) -> Float[Tensor, "*K T"]:
    """Softmax over the tokens in the mask, exactly zero elsewhere; a row without tokens is zero.

    >>> masked_softmax(torch.zeros(1, 3), torch.tensor([[True, True, False]]))
    tensor([[0.5000, 0.5000, 0.0000]])
    """
    lowest = torch.finfo(scores.dtype).min  # −inf would turn rows without tokens into NaN
    weights = scores.masked_fill(~mask, lowest).softmax(-1)
    return weights * mask


def normalise_weights(weights: Float[Tensor, "*K T"]) -> Float[Tensor, "*K T"]:
    """Divide each row by its sum; rows whose sum is not positive stay as they are.

    >>> normalise_weights(torch.tensor([[1.0, 3.0], [0.0, 0.0]]))
    tensor([[0.2500, 0.7500],
            [0.0000, 0.0000]])
    """
    return weights / positive_sums(weights)


def positive_sums(weights: Float[Tensor, "*K T"]) -> Float[Tensor, "*K 1"]:
    """The sum of each row; 1 where it is not positive."""
    total = weights.sum(-1, keepdim=True)
    return torch.where(total > 0, total, torch.ones_like(total))


def uniform_weights(mask: Bool[Tensor, "*K T"], *, dtype: torch.dtype) -> Float[Tensor, "*K T"]:
    """Equal weight on every token in the mask.

    >>> uniform_weights(torch.tensor([[True, True, False]]), dtype=torch.float32)
    tensor([[0.5000, 0.5000, 0.0000]])
    """
    return mask.to(dtype) / mask.sum(-1, keepdim=True).clamp(min=1)


def permute_weights(
    weights: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"], *, keys: Float[Tensor, "B draws L"]
) -> Float[Tensor, "draws B T"]:
    """Shuffle the weights of each row among its tokens in the mask, once per row of keys.

    The keys of a text order its own tokens (the first `length` are used), so a text gets the same
    permutations in every batch. Weights outside the mask stay where they are.

    >>> mask = torch.tensor([[False, True, True, True, False]])
    >>> weights = torch.tensor([[0.0, 0.7, 0.2, 0.1, 0.0]])
    >>> permute_weights(weights, mask, keys=torch.tensor([[[0.9, 0.1, 0.5]]]))
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
    """The positions of each row, those in the mask first, each part in its original order.

    >>> positions_first(torch.tensor([[False, True, True]]))
    tensor([[1, 2, 0]])
    """
    return mask.int().argsort(dim=-1, descending=True, stable=True)


def tvd(p: Float[Tensor, "*K C"], q: Float[Tensor, "*#K C"]) -> Float[Tensor, "*K"]:
    """Total variation distance, ½ Σ|p − q|, in [0, 1].

    For two classes this is |Δp| of either class: the output change that Jain & Wallace plot, and
    twice the value of Wiegreffe & Pinter, who halve |Δp| of the one sigmoid output.

    >>> tvd(torch.tensor([0.9, 0.1]), torch.tensor([0.5, 0.5]))
    tensor(0.4000)
    """
    return 0.5 * (p - q).abs().sum(-1)


def kl_of_logits(own: Float[Tensor, "*K C"], other: Float[Tensor, "*#K C"]) -> Float[Tensor, "*K"]:
    """KL divergence of two distributions given by logits; its gradient is finite everywhere.

    >>> kl_of_logits(torch.tensor([0.0, 0.0]), torch.tensor([0.0, 0.0]))
    tensor(0.)
    """
    p = own.log_softmax(-1)
    return (p.exp() * (p - other.log_softmax(-1))).sum(-1)


def jsd(p: Float[Tensor, "*K T"], q: Float[Tensor, "*#K T"]) -> Float[Tensor, "*K"]:
    """Jensen–Shannon divergence ½ KL(p‖m) + ½ KL(q‖m), m = (p+q)/2, in [0, log 2].

    >>> jsd(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]))
    tensor(0.6931)
    """
    middle = 0.5 * (p + q)
    each = torch.xlogy(p, p) + torch.xlogy(q, q) - 2.0 * torch.xlogy(middle, middle)
    return (0.5 * each.sum(-1)).clamp(min=0.0)  # rounding can leave −1e-17


def jsd_to_point(q: Float[Tensor, "*K"]) -> Float[Tensor, "*K"]:
    """JSD between a distribution and the point mass on one of its tokens, of weight q.

    J(q) = ½ [log 2/(1+q) + q log 2q/(1+q) + (1−q) log 2], decreasing in q: the distribution
    farthest from another is the point mass on its token of least weight.

    >>> jsd_to_point(torch.tensor(0.0)), jsd_to_point(torch.tensor(1.0))
    (tensor(0.6931), tensor(0.))
    """
    return jsd_to_pair(torch.ones_like(q), q, torch.zeros_like(q))


def jsd_to_pair(
    share: Float[Tensor, "*K"], q_one: Float[Tensor, "*K"], q_other: Float[Tensor, "*K"]
) -> Float[Tensor, "*K"]:
    """JSD between a distribution and (share, 1 − share) on two of its tokens, of weights q.

    Each other token adds ½ q log 2, so two terms and a remainder suffice.

    >>> jsd_to_pair(torch.tensor(0.5), torch.tensor(0.5), torch.tensor(0.5))
    tensor(0.)
    """
    rest = (1.0 - q_one - q_other).clamp(min=0.0)
    pair = _half(share, q_one) + _half(1.0 - share, q_other)
    return (pair + 0.5 * rest * LOG2).clamp(min=0.0)


def _half(a: Float[Tensor, "*K"], q: Float[Tensor, "*K"]) -> Float[Tensor, "*K"]:
    """The term of one token in the JSD: ½ [a log 2a/(a+q) + q log 2q/(a+q)]."""
    both = a + q
    return 0.5 * (torch.xlogy(a, 2 * a) + torch.xlogy(q, 2 * q) - torch.xlogy(both, both))
