"""Bootstrap intervals over instances (Efron, 1979).

For small n the plain percentile interval is too narrow, as a normal interval is compared to
Student's t: the percentiles are moved outward to correct this (Hesterberg, 2014, the expanded
percentile interval). A share of binary values has Wilson's interval, because resamples of a few
equal values do not vary and would suggest certainty.

A NaN is an undefined value: it is left out of the mean of its column, never counted as zero.
Draws depend on the position of an instance in its column: give instances in a fixed order.
"""

from collections.abc import Container, Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from jaxtyping import Float64, Int64
from scipy.stats import binomtest, norm, t

from heedful.core.errors import ShapeError
from heedful.core.records import Estimate
from heedful.core.rng import generator

INTERVAL_KIND = "expanded percentile bootstrap over instances, Wilson for shares"
RESAMPLES = 2000
MAX_UNDEFINED_SHARE = 0.05  # of the draws; beyond, the rest would give too narrow an interval

Sample = Float64[np.ndarray, "n"]
Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a subject between a control (0) and a reference (1).

    `gap` is reference − control. Where gap.low ≤ 0 the two cannot be distinguished, and the place
    is meaningless.
    """

    place: Estimate
    gap: Estimate


def bootstrap_means(
    values: Float64[np.ndarray, "n M"], *, resamples: int = RESAMPLES, seed: int = 0
) -> Float64[np.ndarray, "resamples M"]:
    """The mean of each column in each resample: Σ w·v / Σ w over its defined values.

    All columns share the resampled instances, so their differences and ratios are paired. NaN
    where a resample contains no defined value.

    >>> draws = bootstrap_means(np.array([[0.0, 1.0], [1.0, 2.0]]), resamples=3)
    >>> draws[:, 1] - draws[:, 0]
    array([1., 1., 1.])
    """
    n, columns = values.shape
    if n == 0:
        return np.full((resamples, columns), np.nan)
    defined = ~np.isnan(values)
    both = np.ascontiguousarray(np.hstack((np.where(defined, values, 0.0), defined)).T)
    sums, random = np.empty((resamples, 2 * columns)), generator(seed, "bootstrap")
    for row in sums:  # one at a time, so memory does not grow with the number of resamples
        times_drawn = np.bincount(random.integers(n, size=n), minlength=n)
        row[:] = both @ times_drawn.astype(np.float64)
    return divide_defined(sums[:, :columns], sums[:, columns:])


def percentile_interval(
    draws: Float64[np.ndarray, "R M"],
    level: float = 0.95,
    *,
    n: Int64[np.ndarray, "M"] | int | None = None,
) -> tuple[Float64[np.ndarray, "M"], Float64[np.ndarray, "M"]]:
    """The middle `level` of each column's draws; NaN where more than 5 % of them are undefined.

    With `n`, the number of instances behind each column, the interval is expanded for small n.

    >>> low, high = percentile_interval(np.arange(101.0)[:, None], level=0.9)
    >>> low, high
    (array([5.]), array([95.]))
    """
    ends = np.full((2, draws.shape[1]), np.nan)
    levels = np.broadcast_to(
        level if n is None else expanded_level(level, np.atleast_1d(n)), len(ends.T)
    )
    for column, (own, wide) in enumerate(zip(draws.T, levels, strict=True)):
        defined = own[~np.isnan(own)]
        if len(defined) and len(defined) >= (1 - MAX_UNDEFINED_SHARE) * len(own):
            ends[:, column] = np.quantile(defined, ((1 - wide) / 2, (1 + wide) / 2))
    return ends[0], ends[1]


def expanded_level(level: float, n: np.ndarray) -> np.ndarray:
    """The level of percentiles that gives the width of Student's interval of n instances.

    1 − 2Φ(−√(n / (n − 1)) · t), t the quantile of n − 1 degrees of freedom.

    >>> expanded_level(0.95, np.array([10, 100, 100_000])).round(3)
    array([0.983, 0.954, 0.95 ])
    """
    free = np.maximum(n - 1, 1)
    far = np.sqrt((free + 1) / free) * t.ppf((1 + level) / 2, free)
    wide: np.ndarray = 1 - 2 * norm.sf(far)
    return wide


def estimate_means(
    columns: Mapping[Name, Sample],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = 0.95,
    shares: Container[Name] = (),
) -> dict[Name, Estimate]:
    """The mean of each column over instances, with its interval and its defined values counted.

    Columns named in `shares` are 0 or 1 for every instance, also where all values are alike.

    Fewer than two defined values give no interval (NaN), none give no value either; nor is there
    an interval where values are so sparse that more than 5 % of the resamples hold none.

    >>> estimate_means({"tau": np.array([0.5, 0.5, np.nan])})["tau"]
    Estimate(value=0.5, low=0.5, high=0.5, n=2)
    """
    if not columns:
        return {}
    values = _stack_columns(columns)
    draws = bootstrap_means(values, resamples=resamples, seed=seed)
    n = (~np.isnan(values)).sum(0)
    low, high = percentile_interval(draws, level, n=n)
    for column, name in enumerate(columns):
        if _is_binary(values[:, column], is_share=name in shares):
            ends = binomtest(int(np.nansum(values[:, column])), int(n[column])).proportion_ci(
                level, method="wilson"
            )
            low[column], high[column] = ends.low, ends.high
    means = divide_defined(np.nansum(values, axis=0), n.astype(np.float64))
    return {
        name: make_estimate(means[column], low[column], high[column], int(n[column]))
        for column, name in enumerate(columns)
    }


def estimate_place(
    subject: Sample,
    control: Sample,
    reference: Sample,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = 0.95,
) -> Place:
    """(mean subject − mean control) / (mean reference − mean control), paired over instances.

    Only instances where all three are defined count. 0 is the control, 1 the reference; values
    outside are possible.

    >>> zero, one = np.zeros(4), np.ones(4)
    >>> estimate_place(one / 2, zero, one).place
    Estimate(value=0.5, low=0.5, high=0.5, n=4)
    """
    values = _stack_columns({"subject": subject, "control": control, "reference": reference})
    values = values[~np.isnan(values).any(1)]
    n = len(values)
    # row 0 is the sample itself, the rest are its resamples: one formula for both
    means = np.full((1, 3), np.nan) if n == 0 else values.mean(0, keepdims=True)
    means = np.vstack((means, bootstrap_means(values, resamples=resamples, seed=seed)))
    statistics = place_and_gap(means)
    low, high = percentile_interval(statistics[1:], level, n=n)
    return Place(
        place=make_estimate(statistics[0, 0], low[0], high[0], n),
        gap=make_estimate(statistics[0, 1], low[1], high[1], n),
    )


def place_and_gap(means: Float64[np.ndarray, "R 3"]) -> Float64[np.ndarray, "R 2"]:
    """Place and gap for each row of means of subject, control and reference.

    >>> place_and_gap(np.array([[0.5, 0.0, 2.0], [0.5, 1.0, 1.0]]))
    array([[0.25, 2.  ],
           [ nan, 0.  ]])
    """
    gap = means[:, 2] - means[:, 1]
    return np.stack((divide_defined(means[:, 0] - means[:, 1], gap), gap), axis=1)


def _is_binary(column: Sample, *, is_share: bool) -> bool:
    """Whether values are 0 or 1; where all are alike, only a share cannot be anything else."""
    known = set(np.unique(column[~np.isnan(column)]).tolist())
    return known == {0.0, 1.0} or (is_share and bool(known) and known <= {0.0, 1.0})


def make_estimate(value: float, low: float, high: float, n: int) -> Estimate:
    """An estimate, without an interval where it rests on fewer than two instances."""
    if n < 2:
        low = high = float("nan")
    return Estimate(float(value), float(low), float(high), n)


def divide_defined(
    above: Float64[np.ndarray, "*shape"], below: Float64[np.ndarray, "*shape"]
) -> Float64[np.ndarray, "*shape"]:
    """above / below; NaN where below is 0."""
    quotient = np.full(above.shape, np.nan)
    np.divide(above, below, out=quotient, where=below != 0)
    return quotient


def _stack_columns(columns: Mapping[Name, Sample]) -> Float64[np.ndarray, "n M"]:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ShapeError(
            f"Columns must hold one value per instance, NaN where undefined; got lengths {lengths}."
        )
    return np.stack(tuple(columns.values()), axis=1)
