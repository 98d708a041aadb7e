"""Corrections for asking many questions at once; an undefined p (NaN) is no question asked."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float64
from scipy import stats


def benjamini_hochberg(
    p: Float64[np.ndarray, "*shape"], level: float = 0.05
) -> Bool[np.ndarray, "*shape"]:
    """Which p-values are significant when at most `level` of those called so may be false.

    The largest i with p₍ᵢ₎ ≤ i · level / m rejects the i smallest (Benjamini & Hochberg, 1995).

    >>> benjamini_hochberg(np.array([0.01, 0.03, np.nan, 0.5]))
    array([ True,  True, False, False])
    """
    significant = np.zeros(p.shape, dtype=np.bool_)
    defined = ~np.isnan(p)
    if defined.any():  # scipy has no answer for no questions
        significant[defined] = stats.false_discovery_control(p[defined]) <= level
    return significant


def holm(p: Float64[np.ndarray, "*shape"], level: float = 0.05) -> Bool[np.ndarray, "*shape"]:
    """Which p-values are significant when the chance of a single false one is at most `level`.

    Reject from the smallest on while p₍ᵢ₎ ≤ level / (m − i + 1) (Holm, 1979).

    >>> holm(np.array([0.01, 0.03, np.nan, 0.5]))
    array([ True, False, False, False])
    """
    significant = np.zeros(p.shape, dtype=np.bool_)
    defined = ~np.isnan(p)
    order = np.argsort(p[defined], kind="stable")
    kept = p[defined][order] * np.arange(len(order), 0, -1) <= level
    rejected = np.empty(len(order), dtype=np.bool_)
    rejected[order] = np.logical_and.accumulate(kept)  # the first to fail ends it
    significant[defined] = rejected
    return significant


def holm_adjusted(p: Sequence[float]) -> list[float]:
    """p-values that may be held against a level as they are: Holm's, each at least the one before.

    >>> holm_adjusted([0.01, 0.03, float("nan"), 0.5])
    [0.03, 0.06, nan, 0.5]
    """
    given = np.asarray(p, dtype=np.float64)
    defined = ~np.isnan(given)
    order = np.argsort(given[defined], kind="stable")
    raised = given[defined][order] * np.arange(len(order), 0, -1)
    adjusted, found = given.copy(), np.empty(len(order))
    found[order] = np.minimum(np.maximum.accumulate(raised), 1.0)
    adjusted[defined] = found
    return [float(one) for one in adjusted]


def benjamini_hochberg_adjusted(p: Sequence[float]) -> list[float]:
    """p-values that may be held against a level as they are: Benjamini and Hochberg's.

    >>> [round(one, 3) for one in benjamini_hochberg_adjusted([0.01, 0.03, float("nan"), 0.5])]
    [0.03, 0.045, nan, 0.5]
    """
    adjusted = np.array(p, dtype=np.float64)
    defined = ~np.isnan(adjusted)
    if defined.any():
        adjusted[defined] = stats.false_discovery_control(adjusted[defined])
    return [float(one) for one in adjusted]
