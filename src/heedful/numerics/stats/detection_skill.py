"""How well a check detects the truth, over kinds of subjects whose truth is known.

Subjects of one kind are similar, so all kinds have equal weight, however many subjects they have,
and intervals come from resampling kinds and the subjects within each.
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
    """The answers about subjects of one kind, and whether the claim holds for that kind.

    Answers are 1 (for), −1 (against) and 0 (undecided); `scores` are the numbers behind them, NaN
    where there is none.
    """

    truth: bool
    answers: tuple[int, ...]
    scores: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class DetectionRates:
    """Rates of answers, as means over kinds.

    `skill` is the share of right minus that of wrong answers: 1 for an oracle, 0 for no answers or
    guesses; its interval is over kinds. `miss` is the share of subjects where the claim holds and
    the answer is against, `false_alarm` the share where it does not hold and the answer is for,
    `undecided` the share without an answer; their intervals are over kinds, and never narrower than
    the exact interval of the number of cases.
    """

    skill: Estimate
    miss: Estimate
    false_alarm: Estimate
    undecided: Estimate


def detection_rates(trials: Sequence[KnownTruthAnswers], *, seed: int = 0) -> DetectionRates | None:
    """The rates over kinds; None unless there are kinds of both truths.

    >>> answers = [KnownTruthAnswers(True, (1, 1, 1)), KnownTruthAnswers(False, (-1, -1, 0))]
    >>> rates = detection_rates(answers)
    >>> round(rates.skill.value, 3), rates.false_alarm.value
    (0.833, 0.0)
    """
    both = [[kind for kind in trials if kind.truth is truth] for truth in (True, False)]
    if not all(both):
        return None
    n = sum(len(kind.answers) for kind in trials)
    drawn = [
        _resample_kinds(kinds, generator(seed, "power", number))
        for number, kinds in enumerate(both)
    ]
    own = [np.mean([_shares(np.array([kind.answers])) for kind in kinds], axis=0) for kinds in both]
    statistics = [np.stack(_statistics(*parts)) for parts in (own, drawn)]
    low, high = percentile_interval(statistics[1].T)
    skill, miss, false_alarm, undecided = (
        Estimate(float(value), float(least), float(most), n)
        for (value,), least, most in zip(statistics[0], low, high, strict=True)
    )
    true, false = (sum(len(kind.answers) for kind in kinds) for kinds in both)
    return DetectionRates(
        skill,
        _widen_to_exact(miss, true),
        _widen_to_exact(false_alarm, false),
        _widen_to_exact(undecided, n),
    )


def _widen_to_exact(share: Estimate, cases: int) -> Estimate:
    """Widen to the exact interval of so many cases: what was never observed may still occur."""
    ends = binomtest(round(share.value * cases), cases).proportion_ci(0.95, "exact")
    return Estimate(share.value, min(share.low, ends.low), max(share.high, ends.high), cases)


def _shares(answers: Int64[np.ndarray, "R n"]) -> Float64[np.ndarray, "R 2"]:
    """The shares of answers for and against."""
    return np.stack([(answers == 1).mean(-1), (answers == -1).mean(-1)], axis=-1)


def _resample_kinds(
    kinds: Sequence[KnownTruthAnswers], random: np.random.Generator
) -> Float64[np.ndarray, "R 2"]:
    """The same in resamples of kinds, and of the subjects of each."""
    each = []
    for kind in kinds:
        answers = np.array(kind.answers)
        places = random.integers(len(answers), size=(POWER_RESAMPLES, len(answers)))
        each.append(_shares(answers[places]))
    chosen = random.integers(len(kinds), size=(len(kinds), POWER_RESAMPLES))
    drawn: Float64[np.ndarray, "R 2"] = np.stack(each)[chosen, np.arange(POWER_RESAMPLES)].mean(0)
    return drawn


def _statistics(
    true: Float64[np.ndarray, "R 2"], false: Float64[np.ndarray, "R 2"]
) -> tuple[Float64[np.ndarray, "R"], ...]:
    right_less_wrong = (true[..., 0] - true[..., 1] + false[..., 1] - false[..., 0]) / 2
    decided = (true.sum(-1) + false.sum(-1)) / 2
    return right_less_wrong, true[..., 1], false[..., 0], 1 - decided
