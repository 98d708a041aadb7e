"""How well answers tell true from false: over kinds of subjects whose truth is known.

Subjects of one kind are alike, so kinds weigh the same, however many subjects each has, and
intervals come from drawing kinds anew, and the subjects in each.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64
from scipy.stats import binomtest

from heedful.core.records import Estimate
from heedful.core.rng import generator
from heedful.numerics.stats.bootstrap import percentile_interval

POWER_RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class KnownTruthAnswers:
    """What was said of the subjects of one kind: whether the claim holds there, and each answer.

    Answers are 1 (for), −1 (against) and 0 (undecided); `scores` are the figures behind them, NaN
    where there was none.
    """

    truth: bool
    answers: tuple[int, ...]
    scores: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class DetectionRates:
    """Shares of answers: right less wrong, true ones missed, false ones raised; means over kinds.

    `skill` is 1 for an oracle, 0 for one who is silent or guesses; its interval is over kinds.
    `miss` is the share of subjects where the claim holds and the answer is against, `false_alarm`
    the share where it does not hold and the answer is for, `undecided` the share without an answer;
    their intervals are over kinds, and no narrower than the number of cases allows.
    """

    skill: Estimate
    miss: Estimate
    false_alarm: Estimate
    undecided: Estimate


def detection_rates(trials: Sequence[KnownTruthAnswers], *, seed: int = 0) -> DetectionRates | None:
    """The rates over kinds; None unless there are kinds of both truths.

    >>> found = rates([Trials(True, (1, 1, 1)), Trials(False, (-1, -1, 0))])
    >>> round(found.skill.value, 3), found.false_alarm.value
    (0.833, 0.0)
    """
    both = [[one for one in trials if one.truth is truth] for truth in (True, False)]
    if not all(both):
        return None
    n = sum(len(one.answers) for one in trials)
    drawn = [
        _resample_kinds(kinds, generator(seed, "power", number))
        for number, kinds in enumerate(both)
    ]
    own = [np.mean([_shares(np.array([one.answers])) for one in kinds], axis=0) for kinds in both]
    statistics = [np.stack(_statistics(*parts)) for parts in (own, drawn)]
    low, high = percentile_interval(statistics[1].T)
    skill, *shares = (
        Estimate(float(value), float(least), float(most), n)
        for (value,), least, most in zip(statistics[0], low, high, strict=True)
    )
    cases = [sum(len(one.answers) for one in kinds) for kinds in both]
    return DetectionRates(
        skill, *(_widen_to_exact(one, few) for one, few in zip(shares, (*cases, n), strict=True))
    )


def _widen_to_exact(share: Estimate, cases: int) -> Estimate:
    """At least as wide as the exact interval of so many cases: what never was seen may yet be."""
    ends = binomtest(round(share.value * cases), cases).proportion_ci(0.95, "exact")
    return Estimate(share.value, min(share.low, ends.low), max(share.high, ends.high), cases)


def _shares(answers: Int64[np.ndarray, "R n"]) -> Float64[np.ndarray, "R 2"]:
    """The shares of answers for and against."""
    return np.stack([(answers == 1).mean(-1), (answers == -1).mean(-1)], axis=-1)


def _resample_kinds(
    kinds: Sequence[KnownTruthAnswers], random: np.random.Generator
) -> Float64[np.ndarray, "R 2"]:
    """The same with kinds drawn anew, and the subjects of each."""
    each = np.stack([_shares(_resampled(np.array(one.answers), random)) for one in kinds])
    chosen = random.integers(len(kinds), size=(len(kinds), POWER_RESAMPLES))
    drawn: Float64[np.ndarray, "R 2"] = each[chosen, np.arange(POWER_RESAMPLES)].mean(0)
    return drawn


def _resampled(
    answers: Int64[np.ndarray, "n"], random: np.random.Generator
) -> Int64[np.ndarray, "R n"]:
    return answers[random.integers(len(answers), size=(POWER_RESAMPLES, len(answers)))]


def _statistics(
    true: Float64[np.ndarray, "R 2"], false: Float64[np.ndarray, "R 2"]
) -> tuple[Float64[np.ndarray, "R"], ...]:
    right_less_wrong = (true[..., 0] - true[..., 1] + false[..., 1] - false[..., 0]) / 2
    decided = (true.sum(-1) + false.sum(-1)) / 2
    return right_less_wrong, true[..., 1], false[..., 0], 1 - decided


def detection_auc(trials: Sequence[KnownTruthAnswers], *, seed: int = 0) -> Estimate | None:
    """How often a subject where the claim holds has the higher score, ties half; kinds weigh alike.

    None unless scores exist for both truths. Subjects without a score are left out.

    >>> one, two = Trials(True, (0,), (0.9,)), Trials(False, (0, 0), (0.1, 0.9))
    >>> roc_auc([one, two]).value
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
