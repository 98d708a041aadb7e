"""How well a check detects the truth, over kinds of subjects whose truth is known.

Subjects of one kind are similar, so all kinds have equal weight, however many subjects they have.
`detection_rates` resamples kinds and the subjects within each; `exact_rates` counts kinds, so that
kinds that were never judged wrong are no proof that none will be.
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
    where there is none. A truth of None is that of a mixed kind, of which either answer is wrong.
    """

    truth: bool | None
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
    drawn = [_resample_kinds(one, generator(seed, "power", n)) for n, one in enumerate(both)]
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


def exact_rates(trials: Sequence[KnownTruthAnswers]) -> DetectionRates | None:
    """The rates over kinds among the decided, with exact intervals (Clopper & Pearson, 1934).

    A kind is decided if any of its subjects is, and wrong if any decided one is. `skill` is
    1 − miss − false alarm, and its interval joins the ends of theirs. A mixed kind that is
    answered counts as a false alarm or a miss. None unless kinds of both truths are decided.

    >>> right = [KnownTruthAnswers(truth, (1 if truth else -1,)) for truth in (True, False)] * 13
    >>> round(exact_rates(right).skill.low, 2), round(exact_rates(right[:24]).skill.low, 2)
    (0.51, 0.47)
    """
    wrong: dict[int, list[bool]] = {1: [], -1: []}  # by the side that is true, each decided kind
    for kind in trials:
        for side in (1, -1):
            said = {one for one in kind.answers if one}
            if kind.truth is None and -side in said:
                wrong[side].append(True)
            elif said and kind.truth is (side == 1):
                wrong[side].append(-side in said)
    if not all(wrong.values()):
        return None
    miss, false_alarm = (_exact_share(sum(wrong[side]), len(wrong[side])) for side in (1, -1))
    skill = Estimate(
        1 - miss.value - false_alarm.value,
        1 - miss.high - false_alarm.high,
        1 - miss.low - false_alarm.low,
        miss.n + false_alarm.n,
    )
    known = [kind for kind in trials if kind.truth is not None]
    undecided = sum(not any(kind.answers) for kind in known)
    return DetectionRates(skill, miss, false_alarm, _exact_share(undecided, len(known)))


def _exact_share(count: int, of: int) -> Estimate:
    ends = binomtest(count, of).proportion_ci(0.95, "exact")
    return Estimate(count / of, float(ends.low), float(ends.high), of)


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
