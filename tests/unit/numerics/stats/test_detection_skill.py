"""Rates and ROC-AUC over kinds: by hand, beside a plain loop, and where they do not exist."""

from itertools import product

import numpy as np
import pytest
from benchmarks.detection_auc import detection_auc
from scipy.optimize import brentq
from scipy.stats import binom, mannwhitneyu

from heedful.numerics.stats.detection_skill import (
    KnownTruthAnswers,
    detection_rates,
    exact_rates,
)


def test_rates_by_hand_with_kinds_alike():
    """A kind of many subjects weighs no more than one of few."""
    trials = [
        KnownTruthAnswers(True, (1, 1, 1, -1)),  # right 3/4, missed 1/4
        KnownTruthAnswers(True, (0,)),  # silent
        KnownTruthAnswers(False, (-1,) * 9 + (1,)),  # a false alarm in ten
    ]
    found = detection_rates(trials)
    assert found.miss.value == pytest.approx((1 / 4 + 0) / 2)
    assert found.false_alarm.value == pytest.approx(1 / 10)
    assert found.undecided.value == pytest.approx((1 / 2 + 0) / 2)
    skill = ((3 / 4 - 1 / 4 + 0) / 2 + (9 / 10 - 1 / 10)) / 2
    assert found.skill.value == pytest.approx(skill)
    assert found.skill.n == 15
    for one in (found.skill, found.miss, found.false_alarm, found.undecided):
        assert one.low <= one.value <= one.high


def test_an_oracle_a_liar_and_one_who_guesses():
    def said(right):
        return [
            KnownTruthAnswers(True, tuple(right)),
            KnownTruthAnswers(False, tuple(-one for one in right)),
        ]

    assert (
        detection_rates(said([1] * 20)).skill.value
        == detection_rates(said([1] * 20)).skill.low
        == 1.0
    )
    assert detection_rates(said([-1] * 20)).skill.high == -1.0
    guessing = detection_rates(said([1, -1] * 10)).skill
    assert guessing.low < 0.0 < guessing.high
    assert detection_rates(said([0] * 20)).skill.value == 0.0


def test_what_never_was_seen_may_yet_be():
    """0 of 15: the exact interval ends at 1 − 0.025^(1/15)."""
    found = detection_rates(
        [KnownTruthAnswers(True, (1,) * 15), KnownTruthAnswers(False, (-1,) * 15)]
    )
    assert found.miss.low == 0.0
    assert found.miss.high == pytest.approx(1 - 0.025 ** (1 / 15))
    assert found.false_alarm.n == 15
    assert found.skill.low == 1.0


def test_one_truth_alone_has_no_rates():
    assert detection_rates([KnownTruthAnswers(True, (1, 1))]) is None
    assert detection_rates([]) is None
    assert (
        detection_auc(
            [KnownTruthAnswers(True, (1,), (0.5,)), KnownTruthAnswers(False, (1,), (float("nan"),))]
        )
        is None
    )


def test_auc_beside_scipy_and_a_plain_loop():
    draw = np.random.default_rng(3)
    true, false = draw.normal(1, 1, 12).round(1), draw.normal(0, 1, 15).round(1)
    found = detection_auc(
        [
            KnownTruthAnswers(True, (0,) * 12, tuple(true)),
            KnownTruthAnswers(False, (0,) * 15, tuple(false)),
        ]
    )
    u = mannwhitneyu(true, false).statistic
    assert found.value == pytest.approx(u / (12 * 15))
    assert found.low < found.value < found.high
    kinds = [draw.normal(k, 1, 5) for k in range(4)]
    trials = [KnownTruthAnswers(k > 1, (0,) * 5, tuple(one)) for k, one in enumerate(kinds)]
    pairs = [
        np.mean([(a > b) + 0.5 * (a == b) for a, b in product(kinds[t], kinds[f])])
        for t, f in product((2, 3), (0, 1))
    ]
    assert detection_auc(trials).value == pytest.approx(np.mean(pairs))


def test_intervals_are_over_kinds():
    """Twenty subjects of one kind that fools a check are one mistake, which may not be repeated."""
    fooled = [
        KnownTruthAnswers(True, (1,) * 20),
        KnownTruthAnswers(True, (-1,) * 20),
        KnownTruthAnswers(False, (-1,) * 20),
    ]
    assert detection_rates(fooled).miss.low == 0.0
    assert detection_rates(fooled).miss.high == 1.0
    assert detection_rates(fooled) == detection_rates(fooled)  # the same draws every time


def kinds(true, false, mixed=()):
    return [
        *(KnownTruthAnswers(True, one) for one in true),
        *(KnownTruthAnswers(False, one) for one in false),
        *(KnownTruthAnswers(None, one) for one in mixed),
    ]


def upper(errors, count):
    """The exact upper end of a share, from the tail of the binomial distribution."""
    return brentq(lambda p: binom.cdf(errors, count, p) - 0.025, 1e-9, 1 - 1e-9)


def test_exact_rates_count_kinds():
    found = exact_rates(kinds([(1, 1)] * 9 + [(1, -1)], [(-1, 0)] * 8))
    assert (found.miss.value, found.false_alarm.value) == (0.1, 0.0)
    assert found.miss.high == pytest.approx(upper(1, 10))
    assert found.false_alarm.high == pytest.approx(upper(0, 8))
    assert found.skill.value == pytest.approx(0.9)
    assert found.skill.low == pytest.approx(1 - upper(1, 10) - upper(0, 8))


def test_thirteen_kinds_of_either_truth_are_needed_for_a_vote():
    def skill(count):
        return exact_rates(kinds([(1,)] * count, [(-1,)] * count)).skill.low

    assert skill(13) > 0.5 > skill(12)
    assert exact_rates(kinds([(1,)] * 3, [(-1,)] * 7)).skill.low == pytest.approx(-0.12, abs=0.005)


def test_undecided_kinds_are_not_counted_and_mixed_ones_that_are_answered_are_wrong():
    plain = exact_rates(kinds([(1,)] * 5, [(-1,)] * 5))
    assert exact_rates(kinds([(1,)] * 5 + [(0,)], [(-1,)] * 5)).miss == plain.miss
    mixed = exact_rates(kinds([(1,)] * 5, [(-1,)] * 5, [(0,), (1,), (-1, 1)]))
    assert (mixed.miss.value, mixed.miss.n) == (1 / 6, 6)
    assert (mixed.false_alarm.value, mixed.false_alarm.n) == (2 / 7, 7)
    assert exact_rates(kinds([(0,)], [(-1,)])) is None
