"""Studentised bootstrap intervals (bootstrap-t), for few texts and skewed figures.

A resample gives t = (θ* − θ) / se*, with a standard error of its own; the interval is
[θ − q₊ se, θ − q₋ se] for the quantiles q of t (Efron, 1981; Hall, 1988). A percentile interval of
40 lognormal values (σ = 0.75) holds the mean in 92 % of samples, this one in 94 %. Standard errors
are linearised: each cluster counts with its share in the change of θ. Ends are moved outward by
C / (C − 1) for C clusters: no resample holds a larger value than the sample does, so that the tails
of t are too light.

From `FEW` clusters on percentiles do as well, and are used.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float64, Int64
from scipy.stats import norm, t

from heedful.numerics.stats.clusters import draw_weights

FEW = 100  # clusters
MAX_UNDEFINED_SHARE = 0.05  # of the draws; beyond, the rest would give too narrow an interval
NO_ERROR = 1e-12  # of the value: rounding, where all clusters say the same
NO_ERROR_OF_DRAW = 1e-7  # of the error of the whole sample
STEP = 1e-6  # of the size of a column, in derivatives

Statistic = Callable[[Float64[np.ndarray, "rows K"]], Float64[np.ndarray, "rows"]]
Columns = Float64[np.ndarray, "C M"]
Interval = tuple[float, float]
NO_INTERVAL: Interval = (float("nan"), float("nan"))


@dataclass(frozen=True, slots=True, eq=False)
class StudentisedDraws:
    """A value and its standard error, and those of every resample of `count` clusters."""

    value: float
    error: float
    draws: Float64[np.ndarray, "R"]
    errors: Float64[np.ndarray, "R"]
    count: int

    def interval(self, level: float) -> Interval:
        """The interval; NaN where more than 5 % of the draws are undefined."""
        defined = np.isfinite(self.draws) & np.isfinite(self.errors)
        few = defined.sum() < (1 - MAX_UNDEFINED_SHARE) * len(defined)
        if few or self.count < 2 or not np.isfinite(self.value):
            return NO_INTERVAL
        if self.error <= NO_ERROR * abs(self.value):
            return self.value, self.value
        known = defined & (self.errors > NO_ERROR_OF_DRAW * self.error)
        if known.sum() < (1 - MAX_UNDEFINED_SHARE) * defined.sum():
            return self._cautious(level)
        ratios = (self.draws[known] - self.value) / self.errors[known]
        below, above = np.quantile(ratios, ((1 - level) / 2, (1 + level) / 2))
        wide = self.error * self.count / (self.count - 1)
        low = self.value - max(float(above), 0.0) * wide
        return low, self.value - min(float(below), 0.0) * wide

    def _cautious(self, level: float) -> Interval:
        """The wider ends of Student's interval and the percentiles, where errors are often 0."""
        wide = float(expanded_level(level, np.array([self.count]))[0])
        draws = self.draws[np.isfinite(self.draws)]
        low, high = np.quantile(draws, ((1 - wide) / 2, (1 + wide) / 2))
        half = float(t.ppf((1 + level) / 2, self.count - 1)) * self.error
        if np.isnan(half):
            return float(low), float(high)
        return float(min(low, self.value - half)), float(max(high, self.value + half))


def expanded_level(level: float, n: Int64[np.ndarray, "M"]) -> Float64[np.ndarray, "M"]:
    """The level of percentiles that gives the width of Student's interval of n instances.

    1 − 2Φ(−√(n / (n − 1)) · t), t the quantile of n − 1 degrees of freedom.

    >>> expanded_level(0.95, np.array([10, 100, 100_000])).round(3)
    array([0.983, 0.954, 0.95 ])
    """
    free = np.maximum(n - 1, 1)
    far = np.sqrt((free + 1) / free) * t.ppf((1 + level) / 2, free)
    return np.asarray(1 - 2 * norm.sf(far))


@lru_cache(maxsize=8)
def weights_of(count: int, resamples: int, seed: int) -> Float64[np.ndarray, "R C"]:
    """How often each of a few clusters is drawn in each resample."""
    if not count:
        return np.zeros((resamples, 0))
    weights = np.concatenate([*draw_weights(count, resamples=resamples, seed=seed)])
    weights.flags.writeable = False
    return weights


def studentise_ratios(
    above: Columns, below: Columns, *, resamples: int, seed: int
) -> list[StudentisedDraws]:
    """Σ above / Σ below of each pair of columns, over few clusters.

    The linearised error is √(C / (C − 1) Σ w (a − θ b)²) / |Σ w b|.
    """
    count = len(above)
    weights, whole = weights_of(count, resamples, seed), np.ones((1, count))
    with np.errstate(divide="ignore", invalid="ignore"):
        value = above.sum(0) / below.sum(0)
        rest = above - value * below  # small numbers, so that squares do not cancel
        draws, errors = _ratios_and_errors(weights, rest, below)
        error = _ratios_and_errors(whole, rest, below)[1][0]
    draws += value
    return [
        StudentisedDraws(float(value[k]), float(error[k]), draws[:, k], errors[:, k], count)
        for k in range(above.shape[1])
    ]


def _ratios_and_errors(
    weights: Float64[np.ndarray, "R C"], above: Columns, below: Columns
) -> tuple[Float64[np.ndarray, "R M"], Float64[np.ndarray, "R M"]]:
    count = weights.shape[1]
    size = weights @ below
    ratio = weights @ above / size
    squares = weights @ above**2 - 2 * ratio * (weights @ (above * below))
    squares += ratio**2 * (weights @ below**2)
    return ratio, np.sqrt(np.maximum(squares, 0) * count / (count - 1)) / np.abs(size)


def studentise(
    statistic: Statistic,
    by_cluster: Float64[np.ndarray, "C K"],
    used: Int64[np.ndarray, "U"],
    *,
    resamples: int,
    seed: int,
) -> StudentisedDraws:
    """Any function of sums over few clusters that uses some of the columns.

    Derivatives are taken by central differences at the sums of each resample.
    """
    count, own = len(by_cluster), by_cluster[:, used]
    weights = np.vstack((np.ones((1, count)), weights_of(count, resamples, seed)))
    # columns that make no difference keep their sums: a count above and below a line, say
    rows = np.repeat(by_cluster.sum(0)[:, None], len(weights), axis=1).T
    rows[:, used] = weights @ own
    slopes = np.zeros((len(weights), len(used)))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = statistic(rows)
        for place, column in enumerate(used.tolist()):
            step = STEP * float(np.abs(own[:, place]).sum())
            if step > 0:
                slopes[:, place] = _slope(statistic, rows, column, step)
        parts = slopes @ own.T
        mean = (weights * parts).sum(1) / count
        squares = (weights * parts**2).sum(1) - count * mean**2
        errors = np.sqrt(np.maximum(squares, 0) * count / (count - 1))
    return StudentisedDraws(float(found[0]), float(errors[0]), found[1:], errors[1:], count)


def _slope(
    statistic: Statistic, rows: Float64[np.ndarray, "rows K"], column: int, step: float
) -> Float64[np.ndarray, "rows"]:
    """The derivative of a function by one column."""
    own = rows[:, column].copy()
    rows[:, column] = own + step
    above = statistic(rows)
    rows[:, column] = own - step
    below = statistic(rows)
    rows[:, column] = own
    return np.asarray((above - below) / (2 * step))


def probe_columns(
    whole: Float64[np.ndarray, "K"], sizes: Float64[np.ndarray, "K"]
) -> Float64[np.ndarray, "probes K"]:
    """The sums of the whole sample with one of them changed, up and down, in each row."""
    step = np.diag(np.where(sizes > 0, sizes, 1.0) / 1024)
    return np.asfortranarray(np.concatenate((whole + step, whole - step)))


def used_columns(
    statistic: Statistic, value: float, probes: Float64[np.ndarray, "probes K"]
) -> Int64[np.ndarray, "U"]:
    """The columns that change a function when they are changed.

    >>> probes = probe_columns(np.ones(3), np.ones(3))
    >>> used_columns(lambda sums: sums[:, 0] / sums[:, 2], 1.0, probes)
    array([0, 2])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        changed = ~(statistic(probes) == value)
    return np.flatnonzero(changed.reshape(2, -1).any(0))
