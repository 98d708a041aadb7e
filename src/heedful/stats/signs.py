"""Whether differences that are paired lie above zero, by turning their signs (Fisher, 1935)."""

import numpy as np
from jaxtyping import Float64

from heedful.core.rng import generator
from heedful.stats.interval import RESAMPLES

BLOCK = 64  # draws that are made together


def sign_flip_p(
    values: Float64[np.ndarray, "n"], *, resamples: int = RESAMPLES, seed: int = 0
) -> float:
    """One-sided p-value of "the mean is not above 0": how often signs at random give as much.

    The sample itself counts as one of the draws, so p is never 0. NaN are no values; without any
    there is no p.

    >>> sign_flip_p(np.ones(20)) < 0.001, sign_flip_p(np.zeros(20))
    (True, 1.0)
    """
    defined = values[~np.isnan(values)]
    if not len(defined):
        return float("nan")
    random, own, reached = generator(seed, "signs"), defined.sum(), 1
    for _ in range(resamples):  # one at a time, so memory does not grow with their number
        signs = 2.0 * random.integers(2, size=len(defined)) - 1.0
        reached += bool(signs @ defined >= own - 1e-12 * np.abs(defined).sum())
    return reached / (resamples + 1)


def sign_flips_p(
    values: Float64[np.ndarray, "n M"], *, resamples: int = RESAMPLES, seed: int = 0
) -> Float64[np.ndarray, "M"]:
    """Two-sided p-value of "the mean is 0" for each column: how often |Σ ±v| ≥ |Σ v|.

    All columns turn the same signs. As above the sample counts as a draw, and NaN are no values.

    >>> sign_flips_p(np.stack([np.ones(20), np.zeros(20)], axis=1)) < 0.001
    array([ True, False])
    """
    known = np.nan_to_num(values)
    own, slack = np.abs(known.sum(0)), 1e-12 * np.abs(known).sum(0)
    random, reached = generator(seed, "signs, two-sided"), np.ones(values.shape[1])
    for start in range(0, resamples, BLOCK):  # some at a time: one product for all of them
        rows = min(BLOCK, resamples - start)
        signs = 2.0 * random.integers(2, size=(rows, len(values)), dtype=np.int8) - 1.0
        reached += (np.abs(signs @ known) >= own - slack).sum(0)
    defined = ~np.isnan(values).all(0)
    return np.where(defined, reached / (resamples + 1), np.nan)
