"""Differences between two sides: of means, of degrees, and of means over seeds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
from jaxtyping import Bool, Float64

from heedful.checks import checks
from heedful.comparison.records import DEGREE_KEY, OVER_SEEDS, Difference
from heedful.core.records import Estimate, MeasureKey
from heedful.numerics.stats.bootstrap import (
    RESAMPLES,
    bootstrap_means,
    divide_defined,
    make_estimate,
    percentile_interval,
    place_and_gap,
)
from heedful.numerics.stats.crossed_bootstrap import (
    estimate_from_draws,
    mean_over_seeds,
    median_over_seeds,
    resample_crossed,
)
from heedful.numerics.stats.permutation_tests import (
    relabelled_means,
    swapped_means,
    two_sided_p,
    two_sided_sign_flip_p,
)
from heedful.results.tables import MeasurementColumns, SeedTable

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
    def seeds(self) -> tuple[int, int]:
        """The seeds of both samples; that of a second, independent one is below 0, as no run's."""
        return self.seed, self.seed if self.paired else -1 - self.seed


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
            replace(one, low=float("nan"), high=float("nan")) if min(few) < 2 else one
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
    first, second = (
        bootstrap_means(side, resamples=draw.resamples, seed=seed)
        for side, seed in zip((one, other), draw.seeds, strict=True)
    )
    return first, second


def _p(one: TextColumns, other: TextColumns, draw: ResamplingSettings) -> MeasureMeans:
    if draw.paired:
        return two_sided_sign_flip_p(other - one, resamples=draw.permutations, seed=draw.seed)
    first, second = relabelled_means(one, other, resamples=draw.permutations, seed=draw.seed)
    return two_sided_p(_means(other) - _means(one), second - first)


def _means(values: TextColumns) -> MeasureMeans:
    return divide_defined(np.nansum(values, axis=0), (~np.isnan(values)).sum(0).astype(float))


def _estimates(
    means: MeasureMeans, draws: ResampledMeans, n: np.ndarray, level: float
) -> list[Estimate]:
    low, high = percentile_interval(draws, level, n=n)
    return [
        make_estimate(value, a, b, int(count))
        for value, a, b, count in zip(means, low, high, n, strict=True)
    ]


@dataclass(frozen=True, slots=True, eq=False)
class ResampledValue:
    """One side's value, and what it becomes in each resample."""

    value: float
    draws: Float64[np.ndarray, "R"]
    n: int

    def estimate(self, level: float) -> Estimate:
        """With its interval."""
        return estimate_from_draws(self.value, self.draws, n=self.n, level=level)


def subtract_values(
    first: ResampledValue, second: ResampledValue, *, paired: bool
) -> ResampledValue:
    """The second less the first, in every resample."""
    few = min(first.n, second.n)
    n = few if paired or few < 2 else first.n + second.n
    return ResampledValue(second.value - first.value, second.draws - first.draws, n)


DEGREE_MEASURES = tuple(
    MeasureKey("agreement", name)
    for name in (
        "tau_leave_one_out",
        "tau_shuffled_leave_one_out",
        "tau_gradient_leave_one_out",
    )
)
TauColumns = Float64[np.ndarray, "_ 3"]


def has_degree(side: MeasurementColumns) -> bool:
    """Whether the run has the measures of a degree."""
    return all(part in side.values for part in DEGREE_MEASURES)


def degree_difference(
    first: MeasurementColumns, second: MeasurementColumns, draw: ResamplingSettings
) -> tuple[Difference | None, str]:
    """The second degree less the first, by the same resamples of the same texts.

    None and the reason where a degree means nothing because its ends do not differ.
    """
    one, other = (
        np.stack([side.values[part] for part in DEGREE_MEASURES], axis=1)
        for side in (first, second)
    )
    gone = [np.isnan(side).any(1) for side in (one, other)]
    kept = [~(gone[0] | gone[1])] * 2 if draw.paired else [~lost for lost in gone]
    one, other = one[kept[0]], other[kept[1]]
    if min(len(one), len(other)) < 2:
        return None, "too few texts have a degree on both sides"
    resampled = [
        _resample_degree(values, seed, draw)
        for values, seed in zip((one, other), draw.seeds, strict=True)
    ]
    for which, (side, gap) in zip(("first", "second"), resampled, strict=True):
        if not percentile_interval(gap[:, None], draw.level, n=side.n)[0][0] > 0:
            return None, (
                f"in the {which} gradient and leave-one-out agree no better than chance, so its "
                "degree means nothing"
            )
    first_degree, second_degree = (side for side, _ in resampled)
    apart = subtract_values(first_degree, second_degree, paired=draw.paired)
    found = Difference(
        DEGREE_KEY,
        first_degree.estimate(draw.level),
        second_degree.estimate(draw.level),
        apart.estimate(draw.level),
        p=exchange_p(one, other, _degree, apart.value, draw),
        undefined=(int(gone[0].sum()), int(gone[1].sum())),
    )
    return found, ""


def _resample_degree(
    values: TauColumns, seed: int, draw: ResamplingSettings
) -> tuple[ResampledValue, Float64[np.ndarray, "R"]]:
    """The degree, and the gap between its ends in each resample."""
    drawn = bootstrap_means(values, resamples=draw.resamples, seed=seed)
    found = place_and_gap(np.vstack((values.mean(0, keepdims=True), drawn)))
    return ResampledValue(float(found[0, 0]), found[1:, 0], len(values)), found[1:, 1]


def _degree(means: Float64[np.ndarray, "R 3"]) -> Float64[np.ndarray, "R"]:
    found: np.ndarray = place_and_gap(means)[:, 0]
    return found


def exchange_p(
    one: TextColumns,
    other: TextColumns,
    statistic: Callable[[ResampledMeans], Float64[np.ndarray, "R"]],
    own: float,
    draw: ResamplingSettings,
) -> float:
    """Two-sided p-value of a difference of statistics of means: texts exchanged or relabelled."""
    exchanged = swapped_means if draw.paired else relabelled_means
    first, second = exchanged(one, other, resamples=draw.permutations, seed=draw.seed)
    apart = statistic(second) - statistic(first)
    return float(two_sided_p(np.array([own]), apart[:, None])[0])


def difference_parts(key: MeasureKey) -> tuple[MeasureKey, MeasureKey] | None:
    """The two keys that a difference over seeds is taken of; None for other measures."""
    pair = checks.spec(key.check).differences.get(key.measure) if key.check in checks else None
    if pair is None:
        return None
    one, other = (
        key._replace(measure=side.measure, method=side.method or key.method) for side in pair
    )
    return one, other


def _is_median(key: MeasureKey) -> bool:
    return key.check in checks and checks.spec(key.check).over_seeds.get(key.measure) == "median"


def seeded_keys(first: MeasurementColumns, second: MeasurementColumns) -> set[MeasureKey]:
    """The keys measured on models retrained under several seeds, on both sides."""
    own = first.seeds.keys() & second.seeds.keys()
    both = first.values.keys() & second.values.keys()
    differences = {
        key
        for key in both
        if (parts := difference_parts(key)) and {*parts} & own and {*parts} <= both
    }
    return (own & both) | differences


def seeded_difference(
    first: MeasurementColumns, second: MeasurementColumns, key: MeasureKey, draw: ResamplingSettings
) -> Difference:
    """One difference, by resamples of texts and of seeds, crossed.

    Each side has its own models, so their seeds are drawn separately. The p-value is how often
    resamples stray from the difference as far as it is from 0.
    """
    tables = [_tables(side, key) for side in (first, second)]
    gone = [_undefined(one) for one in tables]
    lost = [gone[0] | gone[1]] * 2 if draw.paired else gone
    one, other = (
        _resample_value({part: table[:, ~out] for part, table in side.items()}, key, seed, draw)
        for side, out, seed in zip(tables, lost, draw.seeds, strict=True)
    )
    apart = subtract_values(one, other, paired=draw.paired)
    return Difference(
        key,
        one.estimate(draw.level),
        other.estimate(draw.level),
        apart.estimate(draw.level),
        p=float(two_sided_p(np.array([apart.value]), (apart.draws - apart.value)[:, None])[0]),
        over=OVER_SEEDS,
        undefined=(int(gone[0].sum()), int(gone[1].sum())),
    )


def _tables(side: MeasurementColumns, key: MeasureKey) -> dict[MeasureKey, SeedTable]:
    """The tables behind a measure: its own, or those of the two it is a difference of."""
    parts = difference_parts(key) or (key,)
    return {
        part: side.by_seed(part) if part in side.seeds else side.values[part][None]
        for part in parts
    }


def _undefined(tables: Mapping[MeasureKey, SeedTable]) -> Bool[np.ndarray, "n"]:
    return np.asarray(np.any([np.isnan(one).any(0) for one in tables.values()], axis=0))


def _resample_value(
    tables: Mapping[MeasureKey, SeedTable], key: MeasureKey, seed: int, draw: ResamplingSettings
) -> ResampledValue:
    found = []
    for part, table in tables.items():
        centre = median_over_seeds if _is_median(part) else mean_over_seeds
        # keyed by the values, so that the same models are drawn alike on both sides
        name = blake2b(np.ascontiguousarray(table).tobytes(), digest_size=16).hexdigest()
        drawn = resample_crossed({name: table}, centre=centre, resamples=draw.resamples, seed=seed)
        value = float(centre(table).mean()) if table.shape[1] else float("nan")
        found.append(ResampledValue(value, drawn[name], table.shape[1]))
    return subtract_values(found[1], found[0], paired=True) if difference_parts(key) else found[0]
