"""Wilson's interval of a share, with texts that come in clusters."""

from math import sqrt

import numpy as np
from jaxtyping import Float64
from scipy.stats import binomtest, norm

Sums = Float64[np.ndarray, "C"]


def share_interval(ones: Sums, counts: Sums, level: float) -> tuple[float, float]:
    """The interval of Σ ones / Σ counts, from the sums of each cluster.

    Wilson's (1927), for as many independent texts as would give the share the variance that it has
    over clusters: p (1 − p) / Σ (ones − p · counts)² · (Σ counts)², at most the number of texts
    (Korn & Graubard, 1998). Where all texts are alike that variance says nothing, and each cluster
    counts as one text: (Σ counts)² / Σ counts².

    >>> ones, counts = np.array([1.0, 0.0, 0.0]), np.ones(3)
    >>> share_interval(ones, counts, 0.95) == share_interval(5 * ones, 5 * counts, 0.95)
    True
    """
    if (counts <= 1).all():
        exact = binomtest(int(ones.sum()), int(counts.sum())).proportion_ci(level, method="wilson")
        return float(exact.low), float(exact.high)
    total = float(counts.sum())
    share = float(ones.sum()) / total
    n = _independent_texts(ones, counts, share)
    z = float(norm.ppf((1 + level) / 2))
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def _independent_texts(ones: Sums, counts: Sums, share: float) -> float:
    total = float(counts.sum())
    spread = float(((ones - share * counts) ** 2).sum())
    if share in (0.0, 1.0) or not spread:
        return total**2 / float((counts**2).sum())
    return min(total, share * (1 - share) * total**2 / spread)
