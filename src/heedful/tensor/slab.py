"""The farthest attention within a slab: exact adversaries for linear decoders.

With a linear decoder the log-odds of two classes are Σ_t α_t s_t, so "the output may change by at
most ε" is a slab low ≤ Σ α_t s_t ≤ high. JSD(α, q) is convex in α; over the simplex cut by a slab
its maximum lies at a vertex: all weight on one token inside the slab, or on two tokens that
straddle a face. Both cases are closed forms, so the maximum is found exactly by a scan.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.tensor.divergence import jsd_to_pair, jsd_to_point


@dataclass(frozen=True, slots=True, eq=False)
class Farthest:
    """`share` of the weight on token `one`, the rest on token `other`, and its JSD from q."""

    one: Int[Tensor, "B"]
    other: Int[Tensor, "B"]
    share: Float[Tensor, "B"]
    jsd: Float[Tensor, "B"]

    def attention(self, width: int) -> Float[Tensor, "B T"]:
        """The distribution itself."""
        weights = self.share.new_zeros(len(self.share), width)
        weights.scatter_add_(1, self.one[:, None], self.share[:, None])
        return weights.scatter_add_(1, self.other[:, None], 1.0 - self.share[:, None])


def odds_slab(
    p_one: Float[Tensor, "B"], p_other: Float[Tensor, "B"], epsilon: float
) -> tuple[Float[Tensor, "B"], Float[Tensor, "B"]]:
    """Bounds on log p′_one/p′_other for outputs with TVD(p′, p) ≤ ε; infinite where p runs out.

    Necessary for any number of classes (neither probability moves by more than ε); for two classes
    the two conditions are one, and the slab is exactly the ball.
    """
    low = torch.log((p_one - epsilon).clamp(min=0.0)) - torch.log(p_other + epsilon)
    high = torch.log(p_one + epsilon) - torch.log((p_other - epsilon).clamp(min=0.0))
    return low, high


def farthest_in_slab(
    q: Float[Tensor, "B T"],
    s: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    *,
    low: Float[Tensor, "B"],
    high: Float[Tensor, "B"],
) -> Farthest:
    """The distribution farthest from q in JSD among those with low ≤ Σ α s ≤ high.

    Pruned scan: on an edge JSD ≤ J(min(q_i, q_j)) with J decreasing, so tokens are taken by
    ascending q as the lighter end, and a text is done when its best beats J of its next token.
    Needs q itself inside the slab, which makes it non-empty; float64 throughout.
    """
    order = q.masked_fill(~mask, float("inf")).argsort(-1)
    length = mask.sum(-1)
    q, s = q.gather(-1, order).double(), s.gather(-1, order).double()
    best = _best_point(q, s, length, low, high)
    for lighter in range(q.shape[1] - 1):
        promising = (lighter + 1 < length) & (jsd_to_point(q[:, lighter]) > best.jsd)
        rows = promising.nonzero().squeeze(-1)
        if not len(rows):
            break
        for face in (low, high):
            _try_edges(best, rows, lighter, q[rows], s[rows], length[rows], face[rows])
    restore = (order.gather(-1, best.one[:, None]), order.gather(-1, best.other[:, None]))
    return Farthest(restore[0].squeeze(-1), restore[1].squeeze(-1), best.share, best.jsd)


def _best_point(
    q: Float[Tensor, "B T"],
    s: Float[Tensor, "B T"],
    length: Int[Tensor, "B"],
    low: Float[Tensor, "B"],
    high: Float[Tensor, "B"],
) -> Farthest:
    """The lightest single token inside the slab; JSD −1 where there is none."""
    inside = (s >= low[:, None]) & (s <= high[:, None])
    inside &= torch.arange(q.shape[1], device=q.device) < length[:, None]
    found = inside.any(-1)
    first = inside.int().argmax(-1)  # tokens are sorted by q, so the first is the farthest
    away = jsd_to_point(q.gather(-1, first[:, None]).squeeze(-1).clamp(max=1.0))
    away = torch.where(found, away, torch.full_like(away, -1.0))
    return Farthest(first, first.clone(), torch.ones_like(away), away)


def _try_edges(
    best: Farthest,
    rows: Int[Tensor, "R"],
    lighter: int,
    q: Float[Tensor, "R T"],
    s: Float[Tensor, "R T"],
    length: Int[Tensor, "R"],
    face: Float[Tensor, "R"],
) -> None:
    """Improve `best` on `rows` by edges from token `lighter` to each heavier one, on one face."""
    here, others = s[:, lighter, None], s[:, lighter + 1 :]
    gap, bounded = here - others, face.isfinite()[:, None]
    share = (face[:, None] - others) / torch.where(gap == 0, torch.ones_like(gap), gap)
    heavier = torch.arange(lighter + 1, s.shape[1], device=s.device)
    usable = bounded & (gap != 0) & (share > 0) & (share < 1) & (heavier < length[:, None])
    share = torch.where(usable, share, torch.zeros_like(share))
    q_here, q_others = q[:, lighter, None].expand_as(share), q[:, lighter + 1 :].clamp(max=1.0)
    away = torch.where(usable, jsd_to_pair(share, q_here, q_others), -torch.ones_like(share))
    top, where = away.max(-1)
    better = top > best.jsd[rows]
    chosen, where = rows[better], where[better]
    best.jsd[chosen] = top[better]
    best.one[chosen] = lighter
    best.other[chosen] = where + lighter + 1
    best.share[chosen] = share[better].gather(-1, where[:, None]).squeeze(-1)
