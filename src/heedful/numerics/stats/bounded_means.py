"""Intervals of means of figures between 0 and 1 that do not shrink to a point where all agree.

A bootstrap of figures that are all 1 says 1 for certain, however few they are. Here one more figure
is added that was not seen, the worst possible for each end of the interval, and all are weighted at
random: the lower end is the 2.5 % quantile of Σ wᵢxᵢ + w₀·0, the upper end the 97.5 % quantile of
Σ wᵢxᵢ + w₀·1, with (w₀, …, wₙ) uniform on all weights that add up to 1 (Gaffke, 2005;
Learned-Miller and Thomas, 2019). For figures that are 0 or 1 it is the exact interval of Clopper
and Pearson; for others it was never seen to hold less often than its level, which is not proved.
"""

from functools import lru_cache

import numpy as np
from jaxtyping import Float64

from heedful.core.records import Estimate
from heedful.core.rng import generator
from heedful.numerics.stats.bootstrap import Sample, make_estimate

DRAWS = 40_000


def estimate_bounded_mean(values: Sample, *, seed: int = 0, level: float = 0.95) -> Estimate:
    """The mean of figures between 0 and 1; NaN figures take no part.

    >>> one = estimate_bounded_mean(np.ones(20))
    >>> one.value, round(one.low, 2), one.high  # Clopper and Pearson: 0.025 ** (1 / 20) = 0.83
    (1.0, 0.83, 1.0)
    """
    return estimate_above_chance(values, np.zeros_like(values), seed=seed, level=level)


def estimate_above_chance(
    found: Sample, chance: Sample, *, seed: int = 0, level: float = 0.95
) -> Estimate:
    """(mean found − mean chance) / (1 − mean chance): 0 is chance, 1 is all.

    Both are between 0 and 1; where either is NaN the pair takes no part. The figure that was not
    seen has the mean chance.

    >>> estimate_above_chance(np.array([0.75, 0.75]), np.array([0.5, 0.5])).value
    0.5
    """
    defined = ~(np.isnan(found) | np.isnan(chance))
    found, chance = found[defined], chance[defined]
    n = len(found)
    if n == 0 or chance.mean() >= 1.0:
        return make_estimate(float("nan"), float("nan"), float("nan"), n)
    unseen = float(chance.mean())
    value = _above(np.array([found.mean()]), np.array([unseen]))[0]
    weights = _draw_weights(n, seed)
    expected = weights[:, :n] @ chance + weights[:, n] * unseen
    ends = [
        np.quantile(_above(weights[:, :n] @ found + weights[:, n] * worst, expected), quantile)
        for worst, quantile in ((0.0, (1.0 - level) / 2), (1.0, (1.0 + level) / 2))
    ]
    return make_estimate(value, min(ends[0], value), min(max(ends[1], value), 1.0), n)


def _above(found: Float64[np.ndarray, "R"], chance: Float64[np.ndarray, "R"]) -> Sample:
    above: Sample = (found - chance) / (1.0 - chance)
    return above


@lru_cache(maxsize=4)
def _draw_weights(n: int, seed: int) -> Float64[np.ndarray, "R n_and_one"]:
    """Weights of n figures and one more, uniform on the simplex; the same for every sample."""
    draw = generator(seed, "bounded means")
    rows = draw.standard_exponential((DRAWS, n + 1))
    weights: Float64[np.ndarray, "R n_and_one"] = rows / rows.sum(1, keepdims=True)
    return weights
