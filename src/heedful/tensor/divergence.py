"""Distances between distributions, in nats, with 0 · log 0 = 0."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

LOG2 = math.log(2.0)


def tvd(p: Float[Tensor, "*batch C"], q: Float[Tensor, "*#batch C"]) -> Float[Tensor, "*batch"]:
    """Total variation distance, ½ Σ|p − q|, in [0, 1].

    For two classes this is |Δp| of either class: the output change Jain & Wallace plot, and twice
    the figure of Wiegreffe & Pinter, who halve |Δp| of the one sigmoid output.

    >>> tvd(torch.tensor([0.9, 0.1]), torch.tensor([0.5, 0.5]))
    tensor(0.4000)
    """
    return 0.5 * (p - q).abs().sum(-1)


def kl(p: Float[Tensor, "*batch T"], q: Float[Tensor, "*#batch T"]) -> Float[Tensor, "*batch"]:
    """Kullback–Leibler divergence Σ p log(p/q), in [0, ∞].

    >>> kl(torch.tensor([1.0, 0.0]), torch.tensor([0.5, 0.5]))
    tensor(0.6931)
    """
    return (torch.xlogy(p, p) - torch.xlogy(p, q)).sum(-1).clamp(min=0.0)


def kl_of_logits(
    own: Float[Tensor, "*batch C"], other: Float[Tensor, "*#batch C"]
) -> Float[Tensor, "*batch"]:
    """KL of two distributions known by their logits, whose gradient is finite everywhere.

    >>> kl_of_logits(torch.tensor([0.0, 0.0]), torch.tensor([0.0, 0.0]))
    tensor(0.)
    """
    p = own.log_softmax(-1)
    return (p.exp() * (p - other.log_softmax(-1))).sum(-1)


def jsd(p: Float[Tensor, "*batch T"], q: Float[Tensor, "*#batch T"]) -> Float[Tensor, "*batch"]:
    """Jensen–Shannon divergence ½ KL(p‖m) + ½ KL(q‖m), m = (p+q)/2, in [0, log 2].

    >>> jsd(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]))
    tensor(0.6931)
    """
    middle = 0.5 * (p + q)
    each = torch.xlogy(p, p) + torch.xlogy(q, q) - 2.0 * torch.xlogy(middle, middle)
    return (0.5 * each.sum(-1)).clamp(min=0.0)  # rounding can leave −1e-17


def jsd_to_point(q: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """JSD between a distribution and all weight on one of its tokens, of weight q.

    J(q) = ½ [log 2/(1+q) + q log 2q/(1+q) + (1−q) log 2], decreasing in q: no distribution is
    farther from another than the point on its least weighted token.

    >>> jsd_to_point(torch.tensor(0.0)), jsd_to_point(torch.tensor(1.0))
    (tensor(0.6931), tensor(0.))
    """
    return jsd_to_pair(torch.ones_like(q), q, torch.zeros_like(q))


def jsd_to_pair(
    share: Float[Tensor, "*batch"], q_one: Float[Tensor, "*batch"], q_other: Float[Tensor, "*batch"]
) -> Float[Tensor, "*batch"]:
    """JSD between a distribution and (share, 1 − share) on two of its tokens, of weights q.

    The tokens the pair leaves out add ½ q log 2 each, so two terms and a remainder suffice.

    >>> jsd_to_pair(torch.tensor(0.5), torch.tensor(0.5), torch.tensor(0.5))
    tensor(0.)
    """
    rest = (1.0 - q_one - q_other).clamp(min=0.0)
    pair = _half(share, q_one) + _half(1.0 - share, q_other)
    return (pair + 0.5 * rest * LOG2).clamp(min=0.0)


def _half(a: Float[Tensor, "*batch"], q: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """One token's part of the JSD: ½ [a log 2a/(a+q) + q log 2q/(a+q)]."""
    both = a + q
    return 0.5 * (torch.xlogy(a, 2 * a) + torch.xlogy(q, 2 * q) - torch.xlogy(both, both))
