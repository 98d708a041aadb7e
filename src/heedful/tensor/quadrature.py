"""Nodes and weights on [0, 1] for integrands that change fast near 0: nested, so none is wasted.

Clenshaw–Curtis nodes u, of which doubling keeps all, moved twice. The series of arcsin spreads
those that crowd at the ends (Hale & Trefethen, 2008), and an exponential brings them nearer to 0.
Along the way from a blank text to a text the output moves most in the first fifth, where words
stop being blank: measured on a fine-tuned MiniLM, 33 nodes give what 50 Gauss–Legendre nodes give.
"""

from functools import cache
from math import comb

import numpy as np
from numpy.typing import NDArray

TERMS = 9  # of the series
NEAR = 0.1  # how near to 0 the nodes are drawn; 0.03 and 0.3 were no better


@cache
def rule(level: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """2**level + 1 nodes with 0 and 1 among them, and their weights.

    >>> nodes, weights = rule(5)
    >>> bool(abs((weights * np.cos(nodes)).sum() - np.sin(1)) < 1e-9)
    True
    """
    count = 2**level
    angle = np.pi * np.arange(count + 1) / count
    spread, steep = _spread(-np.cos(angle))
    growth = np.log1p(1 / NEAR)
    grown = np.exp(growth * (1 + spread) / 2)
    nodes = NEAR * (grown - 1)
    nodes[0], nodes[-1] = 0.0, 1.0
    weights = _clenshaw_curtis(count) * steep * grown
    return nodes, weights / weights.sum()  # what does not change is integrated exactly


@cache
def even_rule(level: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """2**level + 1 Clenshaw–Curtis nodes as they are, and their weights, for a part of the way."""
    angle = np.pi * np.arange(2**level + 1) / 2**level
    return (1 - np.cos(angle)) / 2, _clenshaw_curtis(2**level) / 2


def _clenshaw_curtis(count: int) -> NDArray[np.float64]:
    """Weights on [−1, 1] of an even number of steps."""
    angle = np.pi * np.arange(count + 1) / count
    weights = np.ones(count + 1)
    for k in range(1, count // 2 + 1):
        share = 1.0 if 2 * k == count else 2.0
        weights -= share * np.cos(2 * k * angle) / (4 * k * k - 1)
    weights *= 2.0 / count
    weights[[0, -1]] /= 2.0
    return weights


def _spread(u: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The first terms of arcsin's series on [−1, 1], scaled to reach ±1, and its slope."""
    terms = np.array([comb(2 * k, k) / (4**k * (2 * k + 1)) for k in range(TERMS)])
    terms /= terms.sum()
    powers = 2 * np.arange(TERMS) + 1
    value = (terms * u[:, None] ** powers).sum(-1)
    slope = (terms * powers * u[:, None] ** (powers - 1)).sum(-1)
    return value, slope
