"""Bootstrap intervals over instances (Efron, 1979), or over clusters of them.

For small n the plain percentile interval is too narrow, as a normal interval is compared to
Student's t: the percentiles are moved outward to correct this (Hesterberg, 2014, the expanded
percentile interval). Below `FEW` clusters the interval is studentised, so that it holds for skewed
values. A share of binary values has Wilson's interval, because resamples of a few equal values do
not vary and would suggest certainty.

A NaN is an undefined value: it is left out of the mean of its column, never counted as zero.
With ids of clusters, the order of the instances changes nothing. Without, draws depend on the
position of an instance in its column: give instances in a fixed order.
"""

from collections.abc import Container, Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from jaxtyping import Float64, Int64

from heedful.core.errors import ShapeError
from heedful.core.records import Estimate
from heedful.core.rng import generator
from heedful.numerics.stats.clusters import ClusterIds, sum_by_cluster
from heedful.numerics.stats.shares import share_interval
from heedful.numerics.stats.studentised import (
    FEW,
    MAX_UNDEFINED_SHARE,
    expanded_level,
    studentise_ratios,
)

INTERVAL_KIND = (
    "expanded percentile bootstrap over distinct texts or clusters, studentised below "
    f"{FEW} of them, Wilson for shares"
)
RESAMPLES = 2000
COLUMNS_AT_A_TIME = 100

Sample = Float64[np.ndarray, "n"]
Sums = Float64[np.ndarray, "C M"]  # by cluster
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
    values: Float64[np.ndarray, "n M"],
    clusters: ClusterIds | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Float64[np.ndarray, "resamples M"]:
    """The mean of each column in each resample: Σ w·v / Σ w over its defined values.

    All columns share the resampled instances, so their differences and ratios are paired. NaN
    where a resample contains no defined value.

    >>> draws = bootstrap_means(np.array([[0.0, 1.0], [1.0, 2.0]]), resamples=3)
    >>> draws[:, 1] - draws[:, 0]
    array([1., 1., 1.])
    """
    if not len(values):
        return np.full((resamples, values.shape[1]), np.nan)
    return _resample_means(*_cluster_sums(values, clusters), resamples=resamples, seed=seed)


def _cluster_sums(
    values: Float64[np.ndarray, "n M"], clusters: ClusterIds | None
) -> tuple[Sums, Sums]:
    """The sum of each column in each cluster, and the number of its defined values."""
    defined = ~np.isnan(values)
    both = sum_by_cluster(np.hstack((np.where(defined, values, 0.0), defined)), clusters)
    return both[:, : values.shape[1]], both[:, values.shape[1] :]


def _resample_means(
    above: Sums, counts: Sums, *, resamples: int, seed: int
) -> Float64[np.ndarray, "resamples M"]:
    n, columns = above.shape
    both = np.ascontiguousarray(np.hstack((above, counts)).T)
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


def estimate_means(
    columns: Mapping[Name, Sample],
    clusters: ClusterIds | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = 0.95,
    shares: Container[Name] = (),
) -> dict[Name, Estimate]:
    """The mean of each column over instances, with its interval and its defined values counted.

    Instances with one id in `clusters` are drawn together. Columns named in `shares` are 0 or 1 for
    every instance, also where all values are alike.

    Defined values of fewer than two clusters give no interval (NaN), none give no value either; nor
    is there an interval where values are so sparse that more than 5 % of the resamples hold none.

    >>> estimate_means({"tau": np.array([0.5, 0.5, np.nan])})["tau"]
    Estimate(value=0.5, low=0.5, high=0.5, n=2)
    """
    if not columns:
        return {}
    values = _stack_columns(columns)
    above, counts = _cluster_sums(values, clusters)
    means = divide_defined(above.sum(0), counts.sum(0))
    ends = np.full((2, len(means)), np.nan)
    binary = np.array([_is_binary(own, name in shares) for name, own in columns.items()])
    for column in np.flatnonzero(binary):
        ends[:, column] = share_interval(above[:, column], counts[:, column], level)
    rest = np.flatnonzero(~binary)
    ends[:, rest] = _intervals_of_ratios(
        above[:, rest], counts[:, rest], resamples=resamples, seed=seed, level=level
    )
    texts, units = counts.sum(0), (counts > 0).sum(0)
    return {
        name: make_estimate(means[k], ends[0, k], ends[1, k], int(texts[k]), units=int(units[k]))
        for k, name in enumerate(columns)
    }


def _intervals_of_ratios(
    above: Sums, below: Sums, *, resamples: int, seed: int, level: float
) -> Float64[np.ndarray, "2 M"]:
    """The interval of Σ above / Σ below for each pair of columns; `below` is 0 where undefined."""
    part = below != 0
    units, ends = part.sum(0), np.full((2, above.shape[1]), np.nan)
    many = np.flatnonzero(units >= FEW)
    if len(many):
        draws = _resample_means(above[:, many], below[:, many], resamples=resamples, seed=seed)
        ends[:, many] = percentile_interval(draws, level, n=units[many])
    groups: dict[bytes, list[int]] = {}
    for column in np.flatnonzero((units >= 2) & (units < FEW)).tolist():
        groups.setdefault(part[:, column].tobytes(), []).append(column)
    for alike in groups.values():
        here = part[:, alike[0]]
        for some in np.array_split(alike, -(-len(alike) // COLUMNS_AT_A_TIME)):
            chosen = np.ix_(here, some)
            found = studentise_ratios(above[chosen], below[chosen], resamples=resamples, seed=seed)
            ends[:, some] = np.array([one.interval(level) for one in found]).T
    return ends


def estimate_place(
    subject: Sample,
    control: Sample,
    reference: Sample,
    clusters: ClusterIds | None = None,
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
    known = ~np.isnan(values).any(1)
    own = None if clusters is None else np.asarray(clusters)[known]
    sums, counts = _cluster_sums(values[known], own)
    n, units = int(known.sum()), len(sums)
    found = place_and_gap(divide_defined(sums.sum(0), counts.sum(0))[None])[0]
    if units >= FEW:
        draws = place_and_gap(_resample_means(sums, counts, resamples=resamples, seed=seed))
        ends = np.stack(percentile_interval(draws, level, n=units), axis=1)
    else:
        own, gap = sums[:, 0] - sums[:, 1], sums[:, 2] - sums[:, 1]
        above, below = np.stack((own, gap), axis=1), np.stack((gap, counts[:, 0]), axis=1)
        drawn = studentise_ratios(above, below, resamples=resamples, seed=seed)
        ends = np.array([one.interval(level) for one in drawn])
    pairs = zip(found, ends, strict=True)
    return Place(*(make_estimate(one, low, high, n, units=units) for one, (low, high) in pairs))


def place_and_gap(means: Float64[np.ndarray, "R 3"]) -> Float64[np.ndarray, "R 2"]:
    """Place and gap for each row of means of subject, control and reference.

    >>> place_and_gap(np.array([[0.5, 0.0, 2.0], [0.5, 1.0, 1.0]]))
    array([[0.25, 2.  ],
           [ nan, 0.  ]])
    """
    gap = means[:, 2] - means[:, 1]
    return np.stack((divide_defined(means[:, 0] - means[:, 1], gap), gap), axis=1)


def _is_binary(column: Sample, is_share: bool) -> bool:
    """Whether values are 0 or 1; where all are alike, only a share cannot be anything else."""
    known = set(np.unique(column[~np.isnan(column)]).tolist())
    return known == {0.0, 1.0} or (is_share and bool(known) and known <= {0.0, 1.0})


def make_estimate(
    value: float, low: float, high: float, n: int, *, units: int | None = None
) -> Estimate:
    """An estimate from n instances, without an interval where fewer than two units are drawn.

    A unit is a cluster of instances that are drawn together; without clusters, an instance.
    """
    if (n if units is None else units) < 2:
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
