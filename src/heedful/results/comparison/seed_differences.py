"""Differences of what was measured on models made anew: over texts and over their seeds."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from jaxtyping import Bool, Float64

from heedful.core.records import Estimate
from heedful.numerics.stats.crossed_bootstrap import (
    estimate_from_draws,
    mean_over_seeds,
    median_over_seeds,
    resample_crossed,
)
from heedful.numerics.stats.permutation_tests import two_sided_p
from heedful.results.comparison.columns import MeasureKey, MeasurementColumns, SeedRows
from heedful.results.comparison.mean_differences import ResamplingSettings
from heedful.results.comparison.records import OVER_SEEDS, Difference

# as the checks have them (a test holds both together; checks need torch, records do not)
MEDIAN_MEASURES = {MeasureKey("seeds", "jsd_seeds")}
SEED_DIFFERENCES = {
    MeasureKey("necessity", "gain"): ("score_trained", "score_uniform"),
    MeasureKey("seeds", "jsd_adversary_beyond_seeds"): ("jsd_adversary", "jsd_seeds"),
    MeasureKey("guide", "base_minus_uniform"): ("score_base", "score_uniform"),
    MeasureKey("guide", "base_minus_own"): ("score_base", "score_own"),
    MeasureKey("guide", "base_minus_adversary"): ("score_base", "score_adversary"),
}


METHOD_DIFFERENCES = {  # the same for every method: what the measure starts with, and its two parts
    ("labels", "learned_"): ("with_labels_{}", "rank_correlation_{}"),
    ("roar", "beyond_random_"): ("score_random", "score_{}"),
}


def difference_parts(key: MeasureKey) -> tuple[str, str] | None:
    """The two measures that a difference is taken of; None for other measures."""
    if key in SEED_DIFFERENCES:
        return SEED_DIFFERENCES[key]
    for (check, start), (one, other) in METHOD_DIFFERENCES.items():
        if key.check == check and key.setting is None and key.measure.startswith(start):
            method = key.measure.removeprefix(start)
            return one.format(method), other.format(method)
    return None


def seeded_keys(first: MeasurementColumns, second: MeasurementColumns) -> set[MeasureKey]:
    """The keys that rest on models made anew under several seeds, on both sides."""
    own = first.seeds.keys() & second.seeds.keys()
    both = first.values.keys() & second.values.keys()
    differences = {
        key
        for key in both
        if (names := difference_parts(key))
        and {MeasureKey(key.check, name) for name in names} & own
        and all(MeasureKey(key.check, name) in both for name in names)
    }
    return (own & both) | differences


def seeded_difference(
    first: MeasurementColumns, second: MeasurementColumns, key: MeasureKey, draw: ResamplingSettings
) -> Difference:
    """One difference, by resamples of texts and of seeds, crossed.

    The sides have models of their own, so their seeds are drawn on their own. The p-value is how
    often resamples stray from the difference as far as it lies from 0.
    """
    tables = [_tables(side, key) for side in (first, second)]
    gone = [_undefined(one) for one in tables]
    lost = [gone[0] | gone[1]] * 2 if draw.paired else gone
    seeds = (draw.seed, draw.seed if draw.paired else draw.other)
    sides = [
        _resample_value(_without(one, out), key, seed=seed, draw=draw)
        for one, out, seed in zip(tables, lost, seeds, strict=True)
    ]
    value, apart = sides[1].value - sides[0].value, sides[1].draws - sides[0].draws
    few = min(one.n for one in sides)
    n = few if draw.paired or few < 2 else sides[0].n + sides[1].n
    return Difference(
        key,
        first=sides[0].estimate(draw.level),
        second=sides[1].estimate(draw.level),
        difference=estimate_from_draws(value, apart, n=n, level=draw.level),
        p=float(two_sided_p(np.array([value]), (apart - value)[:, None])[0]),
        over=OVER_SEEDS,
        undefined=(int(gone[0].sum()), int(gone[1].sum())),
    )


@dataclass(frozen=True, slots=True, eq=False)
class ResampledValue:
    """One side's value, and what it becomes in each resample."""

    value: float
    draws: Float64[np.ndarray, "R"]
    n: int

    def estimate(self, level: float) -> Estimate:
        """With its interval."""
        return estimate_from_draws(self.value, self.draws, n=self.n, level=level)


def _tables(side: MeasurementColumns, key: MeasureKey) -> dict[MeasureKey, SeedRows]:
    """What the measure is made of: itself, or the two it lies between; one row where unseeded."""
    names = difference_parts(key)
    parts = [MeasureKey(key.check, name) for name in names] if names else [key]
    return {
        part: side.of_seeds(part) if part in side.seeds else side.values[part][None]
        for part in parts
    }


def _undefined(tables: Mapping[MeasureKey, SeedRows]) -> Bool[np.ndarray, "n"]:
    return np.asarray(np.any([np.isnan(one).any(0) for one in tables.values()], axis=0))


def _without(
    tables: Mapping[MeasureKey, SeedRows], gone: Bool[np.ndarray, "n"]
) -> dict[MeasureKey, SeedRows]:
    return {key: one[:, ~gone] for key, one in tables.items()}


def _resample_value(
    tables: Mapping[MeasureKey, SeedRows], key: MeasureKey, *, seed: int, draw: ResamplingSettings
) -> ResampledValue:
    values, draws = [], []
    for part, table in tables.items():
        centre = median_over_seeds if part in MEDIAN_MEASURES else mean_over_seeds
        # seeds are drawn by what the models gave: those of the same models are drawn alike
        name = blake2b(np.ascontiguousarray(table).tobytes(), digest_size=16).hexdigest()
        found = resample_crossed({name: table}, centre=centre, resamples=draw.resamples, seed=seed)
        values.append(float(centre(table).mean()) if table.shape[1] else float("nan"))
        draws.append(found[name])
    n = next(iter(tables.values())).shape[1]
    if difference_parts(key):
        return ResampledValue(values[0] - values[1], draws[0] - draws[1], n)
    return ResampledValue(values[0], draws[0], n)
