"""Wilson's interval of a share, with texts that come in clusters."""

from math import sqrt

import numpy as np
from jaxtyping import Float64
from scipy.stats import binomtest, norm, t

Sums = Float64[np.ndarray, "C"]


def share_interval(ones: Sums, counts: Sums, level: float) -> tuple[float, float]:
    """The interval of Σ ones / Σ counts, from the sums of each cluster; NaN without any text.

    Wilson's (1927). Texts of clusters count as the number of independent texts whose share would
    vary as much: p (1 − p) (Σ counts)² / Σ (ones − p · counts)², at most all of them, with
    Student's quantile for Wilson's normal one, since that number is estimated (Korn & Graubard,
    1998). Where all texts are alike nothing varies, and the number is (Σ counts)² / Σ counts².

    >>> ones, counts = np.array([1.0, 0.0, 0.0]), np.ones(3)
    >>> share_interval(ones, counts, 0.95) == share_interval(5 * ones, 5 * counts, 0.95)
    True
    """
    here = counts > 0
    ones, counts = ones[here], counts[here]
    if not len(counts):
        return float("nan"), float("nan")
    whole = (ones == 0) | (ones == counts)
    if whole.all() and (counts == counts[0]).all():  # as many copies of each text, or none
        texts = int((ones > 0).sum()), len(counts)
        exact = binomtest(*texts).proportion_ci(level, method="wilson")
        return float(exact.low), float(exact.high)
    share = float(ones.sum() / counts.sum())
    far = (1 + level) / 2
    quantile = t.ppf(far, len(counts) - 1) if len(counts) > 1 else norm.ppf(far)
    return _wilson(share, _independent_texts(ones, counts, share), float(quantile))


def _wilson(share: float, n: float, quantile: float) -> tuple[float, float]:
    scale = 1 + quantile**2 / n
    middle = (share + quantile**2 / (2 * n)) / scale
    half = quantile / scale * sqrt(share * (1 - share) / n + quantile**2 / (4 * n**2))
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return 0.0 if share == 0 else low, 1.0 if share == 1 else high


def _independent_texts(ones: Sums, counts: Sums, share: float) -> float:
    total = float(counts.sum())
    spread = float(((ones - share * counts) ** 2).sum())
    if share in (0.0, 1.0) or not spread:
        return total**2 / float((counts**2).sum())
    return min(total, share * (1 - share) * total**2 / spread)
