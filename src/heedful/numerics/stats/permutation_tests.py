"""Whether differences that are paired lie above zero, by turning their signs (Fisher, 1935)."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float64

from heedful.core.rng import generator
from heedful.numerics.stats.bootstrap import RESAMPLES

DRAWS_PER_BLOCK = 64  # draws that are made together


def one_sided_sign_flip_p(
    values: Float64[np.ndarray, "n"], *, resamples: int = RESAMPLES, seed: int = 0
) -> float:
    """One-sided p-value of "the mean is not above 0": how often signs at random give as much.

    The sample itself counts as one of the draws, so p is never 0. NaN are no values; without any
    there is no p.

    >>> sign_flip_p(np.ones(20)) < 0.001, sign_flip_p(np.zeros(20))
    (True, 1.0)
    """
    defined = values[~np.isnan(values)]
    if not len(defined):
        return float("nan")
    random, own, reached = generator(seed, "signs"), defined.sum(), 1
    for _ in range(resamples):  # one at a time, so memory does not grow with their number
        signs = 2.0 * random.integers(2, size=len(defined)) - 1.0
        reached += bool(signs @ defined >= own - 1e-12 * np.abs(defined).sum())
    return reached / (resamples + 1)


def two_sided_sign_flip_p(
    values: Float64[np.ndarray, "n M"], *, resamples: int = RESAMPLES, seed: int = 0
) -> Float64[np.ndarray, "M"]:
    """Two-sided p-value of "the mean is 0" for each column: how often |Σ ±v| ≥ |Σ v|.

    All columns turn the same signs. As above the sample counts as a draw, and NaN are no values.

    >>> sign_flips_p(np.stack([np.ones(20), np.zeros(20)], axis=1)) < 0.001
    array([ True, False])
    """
    known = np.nan_to_num(values)
    own, slack = np.abs(known.sum(0)), 1e-12 * np.abs(known).sum(0)
    random, reached = generator(seed, "signs, two-sided"), np.ones(values.shape[1])
    for start in range(
        0, resamples, DRAWS_PER_BLOCK
    ):  # some at a time: one product for all of them
        rows = min(DRAWS_PER_BLOCK, resamples - start)
        signs = 2.0 * random.integers(2, size=(rows, len(values)), dtype=np.int8) - 1.0
        reached += (np.abs(signs @ known) >= own - slack).sum(0)
    defined = ~np.isnan(values).all(0)
    return np.where(defined, reached / (resamples + 1), np.nan)


SampleColumns = Float64[np.ndarray, "n K"]
ExchangedMeans = Float64[np.ndarray, "R K"]
EQUAL_WITHIN = 1e-12  # what rounding may do to two equal draws


def swapped_means(
    first: SampleColumns, second: SampleColumns, *, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[ExchangedMeans, ExchangedMeans]:
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


def relabelled_means(
    first: SampleColumns,
    second: Float64[np.ndarray, "m K"],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[ExchangedMeans, ExchangedMeans]:
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


def _blocks(draws: ExchangedMeans) -> Iterator[ExchangedMeans]:
    return (
        draws[start : start + DRAWS_PER_BLOCK] for start in range(0, len(draws), DRAWS_PER_BLOCK)
    )


def _means(sums: Float64[np.ndarray, "R _"]) -> ExchangedMeans:
    above, below = np.split(sums, 2, axis=1)
    found = np.full(above.shape, np.nan)
    np.divide(above, below, out=found, where=below > 0.5)
    return found


def two_sided_p(own: Float64[np.ndarray, "K"], draws: ExchangedMeans) -> Float64[np.ndarray, "K"]:
    """Two-sided p-values: the share of draws as far from 0 as what was found, itself among them.

    A draw that is undefined counts as far; what is itself undefined has no p.

    >>> reached_p(np.array([2.0, np.nan]), np.array([[1.0, 0.0], [-2.0, 0.0], [np.nan, 0.0]]))
    array([0.75,  nan])
    """
    least = np.abs(own) * (1 - EQUAL_WITHIN) - EQUAL_WITHIN
    reached = 1 + (~(np.abs(draws) < least)).sum(0)
    return np.where(np.isnan(own), np.nan, reached / (len(draws) + 1))
