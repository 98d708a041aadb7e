"""Differences of means: paired by text, or of two independent samples."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from heedful.core.records import Estimate
from heedful.numerics.stats.bootstrap import RESAMPLES, bootstrap_means, percentile_interval
from heedful.numerics.stats.permutation_tests import (
    relabelled_means,
    two_sided_p,
    two_sided_sign_flip_p,
)
from heedful.results.comparison.columns import MeasureKey, MeasurementColumns
from heedful.results.comparison.records import Difference

EQUAL_VALUES = 1e-6  # audits of the same model may differ by so much, by batch size or machine
TextColumns = Float64[np.ndarray, "_ M"]  # texts of either side, which may be as many as they like
MeasureMeans = Float64[np.ndarray, "M"]
ResampledMeans = Float64[np.ndarray, "R M"]


@dataclass(frozen=True, slots=True)
class ResamplingSettings:
    """How intervals and p-values are drawn; many questions want more draws for their p-values."""

    paired: bool = True
    level: float = 0.95
    resamples: int = RESAMPLES
    permutations: int = RESAMPLES
    seed: int = 0

    @property
    def other(self) -> int:
        """The seed of the second of two independent samples; no run has it, seeds begin at 0."""
        return -1 - self.seed


def mean_differences(
    first: MeasurementColumns,
    second: MeasurementColumns,
    keys: Sequence[MeasureKey],
    draw: ResamplingSettings,
) -> list[Difference]:
    """One difference for each key; all share their resamples, so that they stay paired."""
    if not keys:
        return []
    one, other = (np.stack([side.values[key] for key in keys], axis=1) for side in (first, second))
    gone = [np.isnan(side).sum(0) for side in (one, other)]
    if draw.paired:  # a text counts where both have a value
        either = np.isnan(one) | np.isnan(other)
        one, other = np.where(either, np.nan, one), np.where(either, np.nan, other)
        other = np.where(np.abs(other - one) <= EQUAL_VALUES, one, other)
    draws = _draws(one, other, draw)
    p = _p(one, other, draw)
    means = [_means(side) for side in (one, other)]
    n = [(~np.isnan(side)).sum(0) for side in (one, other)]
    total = n[0] if draw.paired else n[0] + n[1]
    sides = [_estimates(*all_of, draw.level) for all_of in zip(means, draws, n, strict=True)]
    apart = _estimates(means[1] - means[0], draws[1] - draws[0], total, draw.level)
    if not draw.paired:  # one text on either side says nothing of how others vary
        apart = [
            _without_interval(one) if min(few) < 2 else one
            for one, *few in zip(apart, *n, strict=True)
        ]
    rows = zip(keys, *sides, apart, p.tolist(), *gone, strict=True)
    return [
        Difference(key, a, b, difference, tried, undefined=(int(g), int(h)))
        for key, a, b, difference, tried, g, h in rows
    ]


def _draws(
    one: TextColumns, other: TextColumns, draw: ResamplingSettings
) -> tuple[ResampledMeans, ResampledMeans]:
    if draw.paired:
        both = bootstrap_means(np.hstack((one, other)), resamples=draw.resamples, seed=draw.seed)
        first, second = np.split(both, 2, axis=1)
        return first, second
    return (
        bootstrap_means(one, resamples=draw.resamples, seed=draw.seed),
        bootstrap_means(other, resamples=draw.resamples, seed=draw.other),
    )


def _p(one: TextColumns, other: TextColumns, draw: ResamplingSettings) -> MeasureMeans:
    if draw.paired:
        return two_sided_sign_flip_p(other - one, resamples=draw.permutations, seed=draw.seed)
    first, second = relabelled_means(one, other, resamples=draw.permutations, seed=draw.seed)
    return two_sided_p(_means(other) - _means(one), second - first)


def _means(values: TextColumns) -> MeasureMeans:
    defined = (~np.isnan(values)).sum(0)
    found = np.full(values.shape[1], np.nan)
    np.divide(np.nansum(values, axis=0), defined, out=found, where=defined > 0)
    return found


def _estimates(
    means: MeasureMeans, draws: ResampledMeans, n: np.ndarray, level: float
) -> list[Estimate]:
    low, high = percentile_interval(draws, level, n=n)
    found = [
        Estimate(float(value), float(a), float(b), int(count))
        for value, a, b, count in zip(means, low, high, n, strict=True)
    ]
    return [_without_interval(one) if one.n < 2 else one for one in found]


def _without_interval(one: Estimate) -> Estimate:
    return Estimate(one.value, float("nan"), float("nan"), one.n)
