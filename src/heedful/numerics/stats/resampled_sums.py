"""Intervals of ratios of sums, and of other functions of sums over texts.

A rate such as "flips per removed word" is Σa / Σb over the texts. Each resample draws clusters of
texts, sums every column over them, and evaluates the function on the sums. Where few clusters take
part the interval is studentised (`numerics.stats.studentised`).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float64

from heedful.core.records import Estimate
from heedful.numerics.stats.bootstrap import RESAMPLES, make_estimate, percentile_interval
from heedful.numerics.stats.clusters import ClusterIds, draw_weights, sum_by_cluster
from heedful.numerics.stats.studentised import (
    FEW,
    Statistic,
    probe_columns,
    studentise,
    used_columns,
    weights_of,
)


@dataclass(frozen=True, eq=False)
class ResampledSums:
    """Column sums over all texts, over the texts of each cluster, and over those of each resample.

    Evaluate any function of sums on `draws` to get its resamples; those of several functions are
    paired.
    """

    draws: Float64[np.ndarray, "resamples K"]
    by_cluster: Float64[np.ndarray, "C K"]
    present: Bool[np.ndarray, "C K"]  # whether a cluster has a value in a column
    seed: int

    @cached_property
    def whole(self) -> Float64[np.ndarray, "K"]:
        """The sums over all texts."""
        return np.asarray(self.by_cluster.sum(0))

    @cached_property
    def probes(self) -> Float64[np.ndarray, "probes K"]:
        """Sums that show which columns a function depends on."""
        return probe_columns(self.whole, np.abs(self.by_cluster).sum(0))


def resample_sums(
    columns: Float64[np.ndarray, "n K"],
    clusters: ClusterIds | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> ResampledSums:
    """The sum of each column over the texts in each resample of clusters.

    Args:
        columns: One row per text. NaN where a text takes no part in a sum; to count the texts that
            do, add a column of ones.
        clusters: One id per text; texts with the same id are drawn together. Without ids each text
            is drawn on its own.
        resamples: The number of resamples.
        seed: Calls with the same seed and the same ids draw the same clusters.

    >>> sums = resample_sums(np.array([[1.0, 2.0], [2.0, 4.0]]), resamples=3)
    >>> sums.whole, sums.draws[:, 1] / sums.draws[:, 0]
    (array([3., 6.]), array([2., 2., 2.]))
    """
    defined = ~np.isnan(columns)
    by_cluster = sum_by_cluster(np.where(defined, columns, 0.0), clusters)
    present = sum_by_cluster(defined.astype(np.float64), clusters) > 0
    draws, row = np.zeros((resamples, columns.shape[1])), 0
    if len(by_cluster) < FEW:
        draws = weights_of(len(by_cluster), resamples, seed) @ by_cluster
    else:
        for weights in draw_weights(len(by_cluster), resamples=resamples, seed=seed):
            draws[row : row + len(weights)] = weights @ by_cluster
            row += len(weights)
    return ResampledSums(draws, by_cluster, present, seed)


def interval_of(
    sums: ResampledSums, statistic: Statistic, *, n: int, level: float = 0.95
) -> Estimate:
    """The value of a function of sums over all texts, with its interval.

    Args:
        sums: The resampled sums.
        statistic: From rows of K sums to one number per row, NaN where it is undefined.
        n: The number of texts that the value rests on.
        level: The level of the interval.

    >>> sums = resample_sums(np.array([[1.0, 2.0], [2.0, 4.0]]))
    >>> interval_of(sums, lambda rows: rows[:, 1] / rows[:, 0], n=2)
    Estimate(value=2.0, low=2.0, high=2.0, n=2)
    """
    value = float(statistic(sums.whole[None])[0])
    used = used_columns(statistic, value, sums.probes)
    if not len(used) and np.isfinite(value):  # the same whatever the texts
        return Estimate(value, value, value, n)
    part = sums.present[:, used].any(1)
    units = int(part.sum())
    if 2 <= units < FEW and np.isfinite(value):
        resamples = len(sums.draws)
        drawn = studentise(
            statistic, sums.by_cluster[part], used, resamples=resamples, seed=sums.seed
        )
        low, high = drawn.interval(level)
    else:
        ends = percentile_interval(statistic(sums.draws)[:, None], level, n=units)
        low, high = (float(end[0]) for end in ends)
    return make_estimate(value, low, high, n, units=units)
