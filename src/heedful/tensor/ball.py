"""A linear goal over attentions whose output stays near: one linear program.

Outputs are taken as linear in the weights: p(α) = p₀ + Σ_t α_t s_t. "Within ε in TVD of p" is then
Σ_c max(0, p(α)_c − p_c) ≤ ε, because what some classes gain the others lose; with u_c in the place
of each maximum this is linear, and so is all else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64
from numpy import ndarray
from scipy.optimize import linprog
from scipy.sparse import block_diag

TOGETHER = 16  # programs solved as one: small ones cost more to set up than to solve


@dataclass(frozen=True, eq=False)
class Program:
    """The largest Σ α_t goal_t with Σ_c max(0, Σ_t α_t slope_tc − room_c) ≤ ε.

    `room` is p − p₀: how far each class may rise for nothing.
    """

    goal: Float64[ndarray, "T"]
    slope: Float64[ndarray, "T C"]
    room: Float64[ndarray, "C"]

    @property
    def costs(self) -> Float64[ndarray, "TC"]:
        """Of the weights, then of what each class rises."""
        return np.concatenate([-self.goal, np.zeros(len(self.room))])

    @property
    def bounds(self) -> Float64[ndarray, "C1 TC"]:
        """How each class rises above its room, and all of them together."""
        T, C = self.slope.shape
        rises = np.hstack([self.slope.T, -np.eye(C)])
        return np.vstack([rises, np.concatenate([np.zeros(T), np.ones(C)])])

    @property
    def whole(self) -> Float64[ndarray, "1 TC"]:
        """What must sum to 1."""
        T, C = self.slope.shape
        return np.concatenate([np.ones(T), np.zeros(C)])[None]


def best_in_balls(
    programs: Sequence[Program], *, epsilon: float
) -> list[Float64[ndarray, "_"] | None]:
    """The best weights of each program; None where no weights stay within ε.

    >>> slope = np.array([[0.3, -0.3], [-0.3, 0.3], [0.0, 0.0]])
    >>> one = Program(np.array([2.0, 0.0, 1.0]), slope, np.zeros(2))
    >>> [found.round(3).tolist() for found in best_in_balls([one, one], epsilon=0.1)]
    [[0.667, 0.333, 0.0], [0.667, 0.333, 0.0]]
    """
    found: list[Any] = []
    for start in range(0, len(programs), TOGETHER):
        found += _together(programs[start : start + TOGETHER], epsilon)
    return found


def _together(programs: Sequence[Program], epsilon: float) -> list[Float64[ndarray, "_"] | None]:
    """All as blocks of one program; if one of them cannot be served, halves apart."""
    below: Any = block_diag([one.bounds for one in programs], format="csc")
    equal: Any = block_diag([one.whole for one in programs], format="csc")
    answer = linprog(
        np.concatenate([one.costs for one in programs]),
        A_ub=below,
        b_ub=np.concatenate([[*one.room, epsilon] for one in programs]),
        A_eq=equal,
        b_eq=np.ones(len(programs)),
        bounds=(0, None),
        method="highs",
    )
    if answer.x is None:
        if len(programs) == 1:
            return [None]
        half = len(programs) // 2
        return _together(programs[:half], epsilon) + _together(programs[half:], epsilon)
    ends = np.cumsum([len(one.costs) for one in programs])[:-1]
    parts = zip(programs, np.split(answer.x, ends), strict=True)
    return [_normal(part[: len(one.goal)]) for one, part in parts]


def _normal(weights: Float64[ndarray, "T"]) -> Float64[ndarray, "T"]:
    positive = np.maximum(weights, 0.0)
    return np.asarray(positive / positive.sum())
