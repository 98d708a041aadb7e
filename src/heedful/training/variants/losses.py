"""What adversaries and deceivers strive for, as arithmetic on weights and outputs.

Scales are said here once. TVD is ½ Σ_c |p_c − q_c|, which for two classes is |Δp|; the code of
Wiegreffe & Pinter halves it again, so that a weight λ of theirs is 2λ here. KL is in nats.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.numerics.tensor.distributions import tvd


def attention_kl(
    own: Float[Tensor, "*B T"], other: Float[Tensor, "*B T"], mask: Bool[Tensor, "*B T"]
) -> Float[Tensor, "*B"]:
    """KL(own ‖ other) over the tokens in the mask, with finite values and slopes everywhere.

    Outside the mask both weights are 0, and 0 · log 0 is 0, also in its derivative: libraries that
    multiply 0 by −∞ give NaN here. A weight that underflows to 0 inside the mask counts as the
    smallest number there is.

    >>> own, other = torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([[0.5, 0.5, 0.0]])
    >>> attention_kl(own, other, torch.tensor([[True, True, False]]))
    tensor([0.6931])
    """
    tiny = torch.finfo(own.dtype).tiny
    logs = [torch.where(mask, one, 1.0).clamp(min=tiny).log() for one in (own, other)]
    return (own * (logs[0] - logs[1])).masked_fill(~mask, 0.0).sum(-1)


def adversary_loss(
    output: tuple[Float[Tensor, "B C"], Float[Tensor, "B C"]],
    attention: tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]],
    mask: Bool[Tensor, "B T"],
    *,
    weight: float,
    reverse: bool = False,
) -> Float[Tensor, "B"]:
    """TVD(p, p_base) − λ·KL(α ‖ α_base) of each text (Wiegreffe & Pinter, 2019, section 4).

    `output` and `attention` are pairs: the adversary's own, the base model's. `reverse` swaps the
    arguments of KL, as some read the published code.
    """
    own, base = attention
    apart = attention_kl(base, own, mask) if reverse else attention_kl(own, base, mask)
    return tvd(*output) - weight * apart


def hiding_penalty(
    rows: Float[Tensor, "B R T"], hidden: Bool[Tensor, "B T"], *, worst: bool = False
) -> Float[Tensor, "B"]:
    """−log(1 − mass on the hidden tokens), the mean over a text's rows or its worst row.

    (Pruthi et al., 2020.) Zero for a text without hidden tokens. What is left, 1 − mass, is summed
    from the other weights, special tokens' included, rather than subtracted: near 1 the mass rounds
    to it, and the slope would be lost where it is needed most.

    >>> rows = torch.tensor([[[0.5, 0.5]]])
    >>> hiding_penalty(rows, torch.tensor([[True, False]]))
    tensor([0.6931])
    """
    left = rows.masked_fill(hidden[:, None], 0.0).sum(-1)
    left = left.clamp(min=torch.finfo(rows.dtype).tiny)
    each = -left.log()
    each = each.amax(-1) if worst else each.mean(-1)
    return torch.where(hidden.any(-1), each, torch.zeros_like(each))
