"""Corrections for multiple tests; an undefined p-value (NaN) does not count as a test."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float64
from scipy import stats

PValues = Float64[np.ndarray, "m"]


def benjamini_hochberg_adjusted(p: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg's adjusted p-values, to be compared with a level directly.

    The largest i with p₍ᵢ₎ ≤ i · level / m rejects the i smallest: the false discovery rate is at
    most the level (Benjamini & Hochberg, 1995).

    >>> [round(one, 3) for one in benjamini_hochberg_adjusted([0.01, 0.03, float("nan"), 0.5])]
    [0.03, 0.045, nan, 0.5]
    """
    return _adjust_defined(p, stats.false_discovery_control)


def holm_adjusted(p: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, to be compared with a level directly.

    Reject from the smallest on while p₍ᵢ₎ ≤ level / (m − i + 1): the chance of any false rejection
    is at most the level (Holm, 1979).

    >>> holm_adjusted([0.01, 0.03, float("nan"), 0.5])
    [0.03, 0.06, nan, 0.5]
    """

    def adjust(defined: PValues) -> PValues:
        order = np.argsort(defined, kind="stable")
        raised = defined[order] * np.arange(len(order), 0, -1)
        adjusted = np.empty(len(order))
        adjusted[order] = np.minimum(np.maximum.accumulate(raised), 1.0)
        return adjusted

    return _adjust_defined(p, adjust)


def _adjust_defined(p: Sequence[float], adjust: Callable[[PValues], PValues]) -> list[float]:
    adjusted = np.array(p, dtype=np.float64)
    defined = ~np.isnan(adjusted)
    if defined.any():  # scipy refuses an empty list of tests
        adjusted[defined] = adjust(adjusted[defined])
    return [float(value) for value in adjusted]
