"""ROC-AUC of the scores of a check, over kinds of subjects whose truth is known."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

from heedful.core.records import Estimate
from heedful.core.rng import generator
from heedful.numerics.stats.bootstrap import percentile_interval
from heedful.numerics.stats.detection_skill import POWER_RESAMPLES, KnownTruthAnswers


def detection_auc(trials: Sequence[KnownTruthAnswers], *, seed: int = 0) -> Estimate | None:
    """How often a subject where the claim holds has the higher score; kinds have equal weight.

    Ties count half. None unless scores exist for both truths; subjects without a score are left
    out.

    >>> one = KnownTruthAnswers(True, (0,), (0.9,))
    >>> two = KnownTruthAnswers(False, (0, 0), (0.1, 0.9))
    >>> detection_auc([one, two]).value
    0.75
    """
    both = [_scored(trials, truth=truth) for truth in (True, False)]
    if not all(both):
        return None
    pairs = np.array([[_above(t, f) for f in both[1]] for t in both[0]])
    n = sum(len(one) for kinds in both for one in kinds)
    random = generator(seed, "auc")
    draws = np.empty(POWER_RESAMPLES)
    for place in range(POWER_RESAMPLES):
        again = [
            [
                _resample_scores(kinds[k], random)
                for k in random.integers(len(kinds), size=len(kinds))
            ]
            for kinds in both
        ]
        draws[place] = np.mean([[_above(t, f) for f in again[1]] for t in again[0]])
    low, high = percentile_interval(draws[:, None])
    return Estimate(float(pairs.mean()), float(low[0]), float(high[0]), n)


def _scored(trials: Sequence[KnownTruthAnswers], *, truth: bool) -> list[Float64[np.ndarray, "_"]]:
    found = [np.array(one.scores) for one in trials if one.truth is truth]
    return [one[~np.isnan(one)] for one in found if not np.isnan(one).all()]


def _above(one: Float64[np.ndarray, "a"], other: Float64[np.ndarray, "b"]) -> float:
    apart = one[:, None] - other
    return float(((apart > 0) + 0.5 * (apart == 0)).mean())


def _resample_scores(
    scores: Float64[np.ndarray, "n"], random: np.random.Generator
) -> Float64[np.ndarray, "n"]:
    return scores[random.integers(len(scores), size=len(scores))]
