"""Permutation tests: sign flips of paired differences (Fisher, 1935), swaps and relabellings."""

import numpy as np
from jaxtyping import Float64

from heedful.core.rng import generator
from heedful.numerics.stats.bootstrap import RESAMPLES, divide_defined

DRAWS_PER_BLOCK = 64  # one matrix product for all of them
EQUAL_WITHIN = 1e-12  # rounding error of two equal draws

SampleColumns = Float64[np.ndarray, "n K"]
ExchangedMeans = Float64[np.ndarray, "R K"]


def one_sided_sign_flip_p(
    values: Float64[np.ndarray, "n"], *, resamples: int = RESAMPLES, seed: int = 0
) -> float:
    """One-sided p-value of "the mean is not above 0": the share of sign flips with Σ ±v ≥ Σ v.

    The sample itself counts as one of the draws, so p is never 0. NaN values are ignored; p is NaN
    if all are.

    >>> one_sided_sign_flip_p(np.ones(20)) < 0.001, one_sided_sign_flip_p(np.zeros(20))
    (True, 1.0)
    """
    defined = values[~np.isnan(values)]
    if not len(defined):
        return float("nan")
    random, own, reached = generator(seed, "signs"), defined.sum(), 1
    for _ in range(resamples):  # one at a time, so memory does not grow with their number
        signs = 2.0 * random.integers(2, size=len(defined)) - 1.0
        reached += bool(signs @ defined >= own - EQUAL_WITHIN * np.abs(defined).sum())
    return reached / (resamples + 1)


def two_sided_sign_flip_p(
    values: Float64[np.ndarray, "n M"], *, resamples: int = RESAMPLES, seed: int = 0
) -> Float64[np.ndarray, "M"]:
    """Two-sided p-value of "the mean is 0" for each column: the share of flips with |Σ ±v| ≥ |Σ v|.

    All columns share the same flips. The sample counts as a draw, and NaN values are ignored.

    >>> two_sided_sign_flip_p(np.stack([np.ones(20), np.zeros(20)], axis=1)) < 0.001
    array([ True, False])
    """
    known = np.nan_to_num(values)
    own, slack = np.abs(known.sum(0)), EQUAL_WITHIN * np.abs(known).sum(0)
    random, reached = generator(seed, "signs, two-sided"), np.ones(values.shape[1])
    for start in range(0, resamples, DRAWS_PER_BLOCK):
        rows = min(DRAWS_PER_BLOCK, resamples - start)
        signs = 2.0 * random.integers(2, size=(rows, len(values)), dtype=np.int8) - 1.0
        reached += (np.abs(signs @ known) >= own - slack).sum(0)
    defined = ~np.isnan(values).all(0)
    return np.where(defined, reached / (resamples + 1), np.nan)


def swapped_means(
    first: SampleColumns, second: SampleColumns, *, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[ExchangedMeans, ExchangedMeans]:
    """The means of both samples when the values of each text are swapped with probability ½.

    All values must be defined.

    >>> first, second = swapped_means(np.zeros((4, 1)), np.ones((4, 1)), resamples=2)
    >>> first + second
    array([[1.],
           [1.]])
    """
    n, apart, random = len(first), second - first, generator(seed, "swaps")
    moved = np.empty((resamples, first.shape[1]))
    for start in range(0, resamples, DRAWS_PER_BLOCK):
        rows = moved[start : start + DRAWS_PER_BLOCK]
        swaps = random.integers(2, size=(len(rows), n), dtype=np.int8)
        rows[:] = swaps.astype(np.float64) @ apart
    return first.mean(0) + moved / n, second.mean(0) - moved / n


def relabelled_means(
    first: SampleColumns,
    second: Float64[np.ndarray, "m K"],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[ExchangedMeans, ExchangedMeans]:
    """The means of both samples over defined values when texts are reassigned at random.

    Each sample keeps its size. NaN where a sample gets no defined value of a column.
    """
    both = np.concatenate([first, second])
    defined = ~np.isnan(both)
    sums = np.hstack((np.where(defined, both, 0.0), defined))
    total, random = sums.sum(0), generator(seed, "deals")
    dealt = np.empty((resamples, sums.shape[1]))
    for start in range(0, resamples, DRAWS_PER_BLOCK):
        rows = dealt[start : start + DRAWS_PER_BLOCK]
        chosen = np.zeros((len(rows), len(both)))
        for row in chosen:
            row[random.permutation(len(both))[: len(first)]] = 1.0
        rows[:] = chosen @ sums
    columns = both.shape[1]
    one, other = (
        divide_defined(each[:, :columns], each[:, columns:]) for each in (dealt, total - dealt)
    )
    return one, other


def two_sided_p(own: Float64[np.ndarray, "K"], draws: ExchangedMeans) -> Float64[np.ndarray, "K"]:
    """Two-sided p-values: the share of draws at least as far from 0 as the observed value.

    The observed value counts as a draw, and an undefined draw counts as far. An undefined observed
    value has no p.

    >>> two_sided_p(np.array([2.0, np.nan]), np.array([[1.0, 0.0], [-2.0, 0.0], [np.nan, 0.0]]))
    array([0.75,  nan])
    """
    least = np.abs(own) * (1 - EQUAL_WITHIN) - EQUAL_WITHIN
    reached = 1 + (~(np.abs(draws) < least)).sum(0)
    return np.where(np.isnan(own), np.nan, reached / (len(draws) + 1))
