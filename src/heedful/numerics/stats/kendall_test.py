"""p-values of Kendall's τ, many at once, equal to those of `scipy.stats.kendalltau`."""

from dataclasses import dataclass
from functools import cache
from math import factorial
from typing import Any

import numpy as np
from jaxtyping import Float64, Int, Int64
from numpy.typing import NDArray
from scipy import special

EXACT_UP_TO = 33  # tokens; beyond, the normal approximation is as good (scipy's choice)


@dataclass(frozen=True, slots=True, eq=False)
class Ties:
    """The tie corrections of Kendall's test: sums over groups of c tied tokens."""

    pairs: Int64[np.ndarray, "*shape"]  # Σ c(c−1)/2
    triples: Int64[np.ndarray, "*shape"]  # Σ c(c−1)(c−2)
    spread: Int64[np.ndarray, "*shape"]  # Σ c(c−1)(2c+5)

    def __getitem__(self, index: Any) -> "Ties":
        """The ties of some of the rankings, indexed as numpy indexes arrays."""
        return Ties(self.pairs[index], self.triples[index], self.spread[index])


def kendall_p(
    n: Int[np.ndarray, "*#shape"], balance: Int[np.ndarray, "*#shape"], ties_x: Ties, ties_y: Ties
) -> Float64[np.ndarray, "..."]:
    """Two-sided p-values of τ = 0 from `balance`, concordant minus discordant pairs of n tokens.

    Without ties and for n ≤ 33, or at most one pair out of order, from the exact distribution;
    otherwise z = balance / σ with σ² corrected for ties (Kendall, 1970). In [0, 1]; NaN where τ is
    undefined. Arguments are broadcast: `ties[:, :, None]` and `ties[:, None, :]` give K × K.

    >>> none = Ties(*np.zeros((3, 2), dtype=np.int64))
    >>> kendall_p(np.array([4, 1]), np.array([6, 0]), none, none).round(4)
    array([0.0833,    nan])
    """
    pairs = n * (n - 1) // 2
    undefined = (ties_x.pairs == pairs) | (ties_y.pairs == pairs)
    untied = (ties_x.pairs == 0) & (ties_y.pairs == 0)
    n, balance, undefined, untied = np.broadcast_arrays(n, balance, undefined, untied)
    fewer = (n * (n - 1) // 2 - np.abs(balance)) // 2  # of concordant and discordant, if untied
    exact = untied & ~undefined & ((n <= EXACT_UP_TO) | (fewer <= 1))
    p = np.where(undefined, np.nan, _normal_p(n, balance, ties_x, ties_y))
    p[exact] = _exact_p(n[exact], fewer[exact])
    return p


def _normal_p(
    n: Int[np.ndarray, "*shape"], balance: Int[np.ndarray, "*shape"], x: Ties, y: Ties
) -> Float64[np.ndarray, "*shape"]:
    size = n.astype(np.float64)  # the products below pass 2^63 in long texts
    ordered = size * (size - 1)
    with np.errstate(divide="ignore", invalid="ignore"):  # this p is not used for n ≤ 2
        variance = (ordered * (2 * size + 5) - x.spread - y.spread) / 18
        variance += 2.0 * x.pairs * y.pairs / ordered
        variance += x.triples.astype(np.float64) * y.triples / (9 * ordered * (size - 2))
        z = balance / np.sqrt(variance)
    p: NDArray[np.float64] = 2 * special.ndtr(-np.abs(z))
    return p


def _exact_p(n: Int[np.ndarray, "K"], fewer: Int[np.ndarray, "K"]) -> Float64[np.ndarray, "K"]:
    # P(0 pairs out of order) = 1/n! and P(at most 1) = 1/(n−1)!, whatever n; n! overflows to inf
    p: NDArray[np.float64] = 2.0 / special.factorial(n - np.minimum(fewer, 1))
    for length in np.unique(n[n <= EXACT_UP_TO]).tolist():
        here = n == length
        p[here] = _two_sided(length)[fewer[here]]
    return p


@cache
def _two_sided(n: int) -> NDArray[np.float64]:
    """min(1, 2 · P(at most d pairs out of order)) for d = 0, 1, …, n(n−1)/2."""
    tails = 2 * np.cumsum(_orders(n)) / factorial(n)  # exact integers until this division
    p: NDArray[np.float64] = np.minimum(tails.astype(np.float64), 1.0)
    return p


@cache
def _orders(n: int) -> NDArray[np.object_]:
    """How many orders of n tokens have d = 0, 1, … pairs out of order (the Mahonian numbers).

    The n-th token passes 0 … n − 1 others. Python integers, since 33! exceeds 2^63.
    """
    if n == 1:
        return np.ones(1, dtype=np.object_)
    return np.convolve(_orders(n - 1), np.ones(n, dtype=np.object_))
