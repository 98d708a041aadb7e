"""A linear goal over attentions whose output stays near: one linear program.

Outputs are taken as linear in the weights: p(α) = p₀ + Σ_t α_t s_t. "Within ε in TVD of p" is then
Σ_c max(0, p(α)_c − p_c) ≤ ε, because what some classes gain the others lose; with u_c in the place
of each maximum this is linear, and so is all else.
"""

import numpy as np
from jaxtyping import Float64
from numpy import ndarray
from scipy.optimize import linprog


def best_in_ball(
    goal: Float64[ndarray, "T"],
    slope: Float64[ndarray, "T C"],
    room: Float64[ndarray, "C"],
    *,
    epsilon: float,
) -> Float64[ndarray, "T"] | None:
    """The weights with the largest Σ α_t goal_t and Σ_c max(0, Σ_t α_t slope_tc − room_c) ≤ ε.

    None where no weights stay within ε. `room` is p − p₀: how far each class may rise for nothing.

    >>> slope = np.array([[0.3, -0.3], [-0.3, 0.3], [0.0, 0.0]])
    >>> best_in_ball(np.array([2.0, 0.0, 1.0]), slope, np.zeros(2), epsilon=0.1).round(3).tolist()
    [0.667, 0.333, 0.0]
    """
    T, C = slope.shape
    rises = np.hstack([slope.T, -np.eye(C)])
    total = np.concatenate([np.zeros(T), np.ones(C)])
    answer = linprog(
        np.concatenate([-goal, np.zeros(C)]),
        A_ub=np.vstack([rises, total]),
        b_ub=np.concatenate([room, [epsilon]]),
        A_eq=np.concatenate([np.ones(T), np.zeros(C)])[None],
        b_eq=np.ones(1),
        bounds=(0, None),
        method="highs",
    )
    if answer.x is None:
        return None
    weights = np.maximum(answer.x[:T], 0.0)
    found: Float64[ndarray, T] = weights / weights.sum()
    return found
