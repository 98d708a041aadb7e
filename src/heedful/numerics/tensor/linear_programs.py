"""Maximise a linear goal over attention weights that keep the output close, as a linear program.

Outputs are taken as linear in the weights: p(α) = p₀ + Σ_t α_t s_t. "Within ε in TVD of p" is then
Σ_c max(0, p(α)_c − p_c) ≤ ε, because the gains of some classes are the losses of others; with a
variable u_c for each maximum this is linear.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int
from numpy import ndarray
from scipy.optimize import linprog
from scipy.sparse import block_diag
from torch import Tensor

from heedful.numerics.tensor.distributions import jsd_to_pair, jsd_to_point

PROGRAMS_PER_SOLVE = 16  # solved as one: small programs cost more to set up than to solve


Solution = Float64[ndarray, "_"] | None  # None where no weights stay within ε


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """The largest Σ α_t goal_t with Σ_c max(0, Σ_t α_t slope_tc − room_c) ≤ ε.

    `room` is p − p₀: how far each class may rise at no cost.
    """

    goal: Float64[ndarray, "T"]
    slope: Float64[ndarray, "T C"]
    room: Float64[ndarray, "C"]


def solve_in_balls(programs: Sequence[LinearProgram], *, epsilon: float) -> list[Solution]:
    """The best weights of each program.

    >>> slope = np.array([[0.3, -0.3], [-0.3, 0.3], [0.0, 0.0]])
    >>> program = LinearProgram(np.array([2.0, 0.0, 1.0]), slope, np.zeros(2))
    >>> [best.round(3).tolist() for best in solve_in_balls([program, program], epsilon=0.1)]
    [[0.667, 0.333, 0.0], [0.667, 0.333, 0.0]]
    """
    best: list[Solution] = []
    for start in range(0, len(programs), PROGRAMS_PER_SOLVE):
        best += _solve_together(programs[start : start + PROGRAMS_PER_SOLVE], epsilon)
    return best


def _solve_together(programs: Sequence[LinearProgram], epsilon: float) -> list[Solution]:
    """Solve all as blocks of one program; if one is infeasible, split into halves.

    The variables of a program are its T weights, then the rise of each class above its room.
    """
    rises = [np.hstack([each.slope.T, -np.eye(len(each.room))]) for each in programs]
    is_rise = [np.repeat([0.0, 1.0], each.slope.shape) for each in programs]
    bounds = [np.vstack([rise, which]) for rise, which in zip(rises, is_rise, strict=True)]
    below: Any = block_diag(bounds, format="csc")
    equal: Any = block_diag([1.0 - which[None] for which in is_rise], format="csc")
    answer = linprog(
        np.concatenate([[*-each.goal, *np.zeros_like(each.room)] for each in programs]),
        A_ub=below,
        b_ub=np.concatenate([[*each.room, epsilon] for each in programs]),
        A_eq=equal,
        b_eq=np.ones(len(programs)),
        bounds=(0, None),
        method="highs",
    )
    if answer.x is None:
        if len(programs) == 1:
            return [None]
        half = len(programs) // 2
        return _solve_together(programs[:half], epsilon) + _solve_together(programs[half:], epsilon)
    best, start = [], 0
    for each in programs:
        weights = np.maximum(answer.x[start : start + len(each.goal)], 0.0)
        best.append(weights / weights.sum())
        start += len(each.goal) + len(each.room)
    return best


@dataclass(frozen=True, slots=True, eq=False)
class FarthestWeights:
    """`share` of the weight on token `one`, the rest on token `other`, and its JSD from q."""

    one: Int[Tensor, "B"]
    other: Int[Tensor, "B"]
    share: Float[Tensor, "B"]
    jsd: Float[Tensor, "B"]

    def attention(self, width: int) -> Float[Tensor, "B T"]:
        """The distribution as weights of all tokens."""
        weights = self.share.new_zeros(len(self.share), width)
        weights.scatter_add_(1, self.one[:, None], self.share[:, None])
        return weights.scatter_add_(1, self.other[:, None], 1.0 - self.share[:, None])


def log_odds_bounds(
    p_one: Float[Tensor, "B"], p_other: Float[Tensor, "B"], epsilon: float
) -> tuple[Float[Tensor, "B"], Float[Tensor, "B"]]:
    """Bounds on log p′_one/p′_other for outputs with TVD(p′, p) ≤ ε; infinite where p reaches 0.

    Necessary for any number of classes (neither probability changes by more than ε); for two
    classes also sufficient: the slab is exactly the ball.
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
) -> FarthestWeights:
    """The distribution farthest from q in JSD among those with low ≤ Σ α s ≤ high.

    Pruned scan: on an edge JSD ≤ J(min(q_i, q_j)) with J decreasing, so tokens are tried in order
    of ascending q as the lighter end, and a text is done when its best exceeds J of the next token.
    q itself must be inside the slab, which makes it non-empty; all in float64.
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
    one, other = (order.gather(-1, at[:, None]).squeeze(-1) for at in (best.one, best.other))
    return FarthestWeights(one, other, best.share, best.jsd)


def _best_point(
    q: Float[Tensor, "B T"],
    s: Float[Tensor, "B T"],
    length: Int[Tensor, "B"],
    low: Float[Tensor, "B"],
    high: Float[Tensor, "B"],
) -> FarthestWeights:
    """The lightest single token inside the slab; JSD −1 where there is none."""
    inside = (s >= low[:, None]) & (s <= high[:, None])
    inside &= torch.arange(q.shape[1], device=q.device) < length[:, None]
    first = inside.int().argmax(-1)  # tokens are sorted by q, so the first is the farthest
    away = jsd_to_point(q.gather(-1, first[:, None]).squeeze(-1).clamp(max=1.0))
    away = away.masked_fill(~inside.any(-1), -1.0)
    return FarthestWeights(first, first.clone(), torch.ones_like(away), away)


def _try_edges(
    best: FarthestWeights,
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
