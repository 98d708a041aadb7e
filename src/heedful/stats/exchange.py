"""Whether two samples differ, by exchanging what would be alike if they did not (Fisher, 1935).

Paired samples swap their values text by text, independent ones are dealt anew. What is asked may
be any function of the means, a place between two others, say; turning signs is the same test for
a mean alone.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float64

from heedful.core.rng import generator
from heedful.stats.interval import RESAMPLES
from heedful.stats.signs import BLOCK

Values = Float64[np.ndarray, "n K"]
Draws = Float64[np.ndarray, "R K"]
ALIKE = 1e-12  # what rounding may do to two equal draws


def swapped_means(
    first: Values, second: Values, *, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[Draws, Draws]:
    """The means of both when each text's rows change sides or stay, as a coin falls.

    Values must be defined.

    >>> one, other = swapped_means(np.zeros((4, 1)), np.ones((4, 1)), resamples=5)
    >>> one + other
    array([[1.],
           [1.],
           [1.],
           [1.],
           [1.]])
    """
    n, apart, random = len(first), second - first, generator(seed, "swaps")
    moved = np.empty((resamples, first.shape[1]))
    for rows in _blocks(moved):  # some at a time: one product for all of them
        falls = random.integers(2, size=(len(rows), n), dtype=np.int8)
        rows[:] = falls.astype(np.float64) @ apart
    return first.mean(0) + moved / n, second.mean(0) - moved / n


def dealt_means(
    first: Values, second: Float64[np.ndarray, "m K"], *, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[Draws, Draws]:
    """The means of both over their defined values when all texts are dealt anew, as many to each.

    NaN where one is dealt no defined value of a column.
    """
    both = np.concatenate([first, second])
    defined = ~np.isnan(both)
    sums = np.hstack((np.where(defined, both, 0.0), defined))
    total, random = sums.sum(0), generator(seed, "deals")
    dealt = np.empty((resamples, sums.shape[1]))
    for rows in _blocks(dealt):
        chosen = np.zeros((len(rows), len(both)))
        for one in chosen:
            one[random.permutation(len(both))[: len(first)]] = 1.0
        rows[:] = chosen @ sums
    return _means(dealt), _means(total - dealt)


def _blocks(draws: Draws) -> Iterator[Draws]:
    return (draws[start : start + BLOCK] for start in range(0, len(draws), BLOCK))


def _means(sums: Float64[np.ndarray, "R _"]) -> Draws:
    above, below = np.split(sums, 2, axis=1)
    found = np.full(above.shape, np.nan)
    np.divide(above, below, out=found, where=below > 0.5)
    return found


def reached_p(own: Float64[np.ndarray, "K"], draws: Draws) -> Float64[np.ndarray, "K"]:
    """Two-sided p-values: the share of draws as far from 0 as what was found, itself among them.

    A draw that is undefined counts as far; what is itself undefined has no p.

    >>> reached_p(np.array([2.0, np.nan]), np.array([[1.0, 0.0], [-2.0, 0.0], [np.nan, 0.0]]))
    array([0.75,  nan])
    """
    least = np.abs(own) * (1 - ALIKE) - ALIKE
    reached = 1 + (~(np.abs(draws) < least)).sum(0)
    return np.where(np.isnan(own), np.nan, reached / (len(draws) + 1))
