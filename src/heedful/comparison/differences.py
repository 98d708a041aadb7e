"""Differences between two sides: of means, of degrees, and of means over seeds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
from jaxtyping import Float64

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
MeansStatistic = Callable[[ResampledMeans], Float64[np.ndarray, "R"]]


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

    def resample(self, values: TextColumns, seed: int) -> ResampledMeans:
        """The means of each resample of the texts."""
        return bootstrap_means(values, resamples=self.resamples, seed=seed)


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
        both = draw.resample(np.hstack((one, other)), draw.seed)
        first, second = np.split(both, 2, axis=1)
        return first, second
    first, second = map(draw.resample, (one, other), draw.seeds)
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

    def less(self, first: "ResampledValue", *, paired: bool) -> "ResampledValue":
        """This less the first, in every resample."""
        few = min(first.n, self.n)
        n = few if paired or few < 2 else first.n + self.n
        return ResampledValue(self.value - first.value, self.draws - first.draws, n)


def defined_texts(
    first: TextColumns, second: TextColumns, draw: ResamplingSettings
) -> tuple[tuple[TextColumns, TextColumns], tuple[int, int]]:
    """The texts that have every value, on both sides where paired; and how many have not."""
    gone = [np.isnan(side).any(1) for side in (first, second)]
    kept = [~(gone[0] | gone[1])] * 2 if draw.paired else [~lost for lost in gone]
    return (first[kept[0]], second[kept[1]]), (int(gone[0].sum()), int(gone[1].sum()))


def is_above_zero(
    statistic: MeansStatistic, values: TextColumns, seed: int, draw: ResamplingSettings
) -> bool:
    """Whether the whole interval of a statistic of means is above 0."""
    drawn = statistic(draw.resample(values, seed))
    return bool(percentile_interval(drawn[:, None], draw.level, n=len(values))[0][0] > 0)


def statistic_difference(
    key: MeasureKey,
    sides: tuple[TextColumns, TextColumns],
    statistic: MeansStatistic,
    draw: ResamplingSettings,
    undefined: tuple[int, int],
) -> Difference:
    """A statistic of means, second less first; in the test texts are exchanged or relabelled."""
    one, other = (
        ResampledValue(float(own[0]), statistic(draw.resample(values, seed)), len(values))
        for values, seed in zip(sides, draw.seeds, strict=True)
        for own in (statistic(values.mean(0, keepdims=True)),)
    )
    apart = other.less(one, paired=draw.paired)
    exchange = swapped_means if draw.paired else relabelled_means
    exchanged = exchange(*sides, resamples=draw.permutations, seed=draw.seed)
    strayed = statistic(exchanged[1]) - statistic(exchanged[0])
    p = float(two_sided_p(np.array([apart.value]), strayed[:, None])[0])
    first, second, difference = (side.estimate(draw.level) for side in (one, other, apart))
    return Difference(key, first, second, difference, p, undefined=undefined)


DEGREE_MEASURES = tuple(
    MeasureKey("agreement", f"tau_{name}leave_one_out") for name in ("", "shuffled_", "gradient_")
)


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
    sides, undefined = defined_texts(one, other, draw)
    if min(map(len, sides)) < 2:
        return None, "too few texts have a degree on both sides"
    for which, values, seed in zip(("first", "second"), sides, draw.seeds, strict=True):
        if not is_above_zero(lambda means: place_and_gap(means)[:, 1], values, seed, draw):
            return None, (
                f"in the {which} gradient and leave-one-out agree no better than chance, so its "
                "degree means nothing"
            )
    return statistic_difference(
        DEGREE_KEY, sides, lambda means: place_and_gap(means)[:, 0], draw, undefined
    ), ""


def difference_parts(key: MeasureKey) -> tuple[MeasureKey, MeasureKey] | None:
    """The two keys that a difference over seeds is taken of; None for other measures."""
    pair = checks.spec(key.check).differences.get(key.measure) if key.check in checks else None
    if pair is None:
        return None
    one, other = (
        key._replace(measure=side.measure, method=side.method or key.method) for side in pair
    )
    return one, other


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
    gone = [np.any([np.isnan(one).any(0) for one in side.values()], axis=0) for side in tables]
    lost = [gone[0] | gone[1]] * 2 if draw.paired else gone
    one, other = (
        _resample_value({part: table[:, ~out] for part, table in side.items()}, key, seed, draw)
        for side, out, seed in zip(tables, lost, draw.seeds, strict=True)
    )
    apart = other.less(one, paired=draw.paired)
    p = float(two_sided_p(np.array([apart.value]), (apart.draws - apart.value)[:, None])[0])
    a, b, difference = (side.estimate(draw.level) for side in (one, other, apart))
    undefined = (int(gone[0].sum()), int(gone[1].sum()))
    return Difference(key, a, b, difference, p, OVER_SEEDS, undefined)


def _tables(side: MeasurementColumns, key: MeasureKey) -> dict[MeasureKey, SeedTable]:
    """The tables behind a measure: its own, or those of the two it is a difference of."""
    parts = difference_parts(key) or (key,)
    return {
        part: side.by_seed(part) if part in side.seeds else side.values[part][None]
        for part in parts
    }


def _resample_value(
    tables: Mapping[MeasureKey, SeedTable], key: MeasureKey, seed: int, draw: ResamplingSettings
) -> ResampledValue:
    found = []
    for part, table in tables.items():
        known = checks.spec(part.check).over_seeds if part.check in checks else {}
        median = known.get(part.measure) == "median"
        centre = median_over_seeds if median else mean_over_seeds
        # keyed by the values, so that the same models are drawn alike on both sides
        name = blake2b(np.ascontiguousarray(table).tobytes(), digest_size=16).hexdigest()
        drawn = resample_crossed({name: table}, centre=centre, resamples=draw.resamples, seed=seed)
        value = float(centre(table).mean()) if table.shape[1] else float("nan")
        found.append(ResampledValue(value, drawn[name], table.shape[1]))
    return found[0].less(found[1], paired=True) if difference_parts(key) else found[0]
