"""Studentised intervals: against a plain loop, without errors, and how often they are right."""

import doctest
from math import isnan, nan, sqrt

import numpy as np
import pytest
from benchmarks.simulated_texts import scenarios
from scipy import stats

from heedful.core.rng import generator
from heedful.numerics.stats import studentised
from heedful.numerics.stats.studentised import StudentisedDraws, studentise, studentise_ratios

AUDITS = 300


def lognormal(n, seed=0):
    return np.random.default_rng(seed).lognormal(size=(n, 1))


def test_means_are_those_of_a_plain_loop():
    values = lognormal(12)
    found = studentise_ratios(values, np.ones((12, 1)), resamples=20, seed=4)[0]
    random = generator(4, "bootstrap")
    for draw, error in zip(found.draws, found.errors, strict=True):
        chosen = values[random.integers(12, size=12), 0]
        assert draw == pytest.approx(chosen.mean())
        assert error == pytest.approx(chosen.std(ddof=1) / sqrt(12))
    assert found.error == pytest.approx(values.std(ddof=1) / sqrt(12))


def test_the_interval_is_that_of_the_formula():
    values = lognormal(30)[:, 0]
    found = studentise_ratios(values[:, None], np.ones((30, 1)), resamples=500, seed=0)[0]
    below, above = np.quantile((found.draws - found.value) / found.errors, (0.05, 0.95))
    wide = 30 / 29 * values.std(ddof=1) / sqrt(30)
    wanted = found.value - above * wide, found.value - below * wide
    assert found.interval(0.9) == pytest.approx(wanted)


def test_derivatives_give_the_errors_of_ratios():
    sums = np.random.default_rng(3).exponential(size=(25, 3))
    one = studentise(
        lambda rows: rows[:, 2] / rows[:, 0], sums, np.array([0, 2]), resamples=40, seed=1
    )
    other = studentise_ratios(sums[:, [2]], sums[:, [0]], resamples=40, seed=1)[0]
    assert (one.value, one.error) == pytest.approx((other.value, other.error), rel=1e-7)
    np.testing.assert_allclose(one.draws, other.draws)
    np.testing.assert_allclose(one.errors, other.errors, rtol=1e-6)


def test_the_error_of_a_root_is_that_of_the_delta_method():
    values = lognormal(40)
    sums = np.hstack((values, np.ones((40, 1))))
    root = studentise(
        lambda rows: np.sqrt(rows[:, 0] / rows[:, 1]), sums, np.array([0, 1]), resamples=5, seed=0
    )
    mean = values.mean()
    assert root.error == pytest.approx(values.std(ddof=1) / sqrt(40) / (2 * sqrt(mean)), rel=1e-6)


def test_values_all_alike_are_certain():
    found = studentise_ratios(np.full((7, 1), 0.1), np.ones((7, 1)), resamples=100, seed=0)[0]
    assert found.interval(0.95) == pytest.approx((0.1, 0.1), abs=1e-12)


def test_where_resamples_are_often_all_alike_the_interval_is_cautious():
    """One text of ten differs: a third of the resamples lack it, and have no error."""
    values = np.zeros((10, 1))
    values[4] = 0.7
    found = studentise_ratios(values, np.ones((10, 1)), resamples=2000, seed=0)[0]
    assert (found.errors < 1e-7).mean() > 0.3
    low, high = found.interval(0.95)
    student = stats.t.interval(0.95, 9, 0.07, 0.07)
    assert low <= student[0]
    assert high >= student[1]
    assert high >= np.quantile(found.draws, 0.975)


def test_two_and_three_texts_have_at_least_students_interval():
    for n in (2, 3):
        values = np.arange(float(n))[:, None]
        low, high = studentise_ratios(values, np.ones((n, 1)), resamples=500, seed=0)[0].interval(
            0.95
        )
        student = stats.t.interval(0.95, n - 1, values.mean(), values.std(ddof=1) / sqrt(n))
        assert low <= student[0] + 1e-9
        assert high >= student[1] - 1e-9


def test_the_interval_holds_the_value():
    above = StudentisedDraws(1.0, 0.1, np.linspace(2.0, 3.0, 50), np.full(50, 0.1), 20)
    low, high = above.interval(0.95)
    assert low < high == 1.0


@pytest.mark.parametrize(("undefined", "known"), [(5, True), (6, False)])
def test_undefined_draws_are_left_out_up_to_one_in_twenty(undefined, known):
    draws, errors = np.linspace(-1.0, 1.0, 100), np.ones(100)
    draws[:undefined] = errors[:undefined] = nan
    low, _ = StudentisedDraws(0.0, 1.0, draws, errors, 50).interval(0.9)
    assert isnan(low) is not known


def test_a_value_that_does_not_exist_has_no_interval():
    found = studentise_ratios(np.ones((5, 1)), np.zeros((5, 1)), resamples=20, seed=0)[0]
    assert isnan(found.interval(0.95)[0])


@pytest.mark.parametrize("name", [name for name, one in scenarios().items() if one.judged])
def test_intervals_hold_the_truth_as_often_as_they_say(name):
    hits = scenarios()[name].hits(AUDITS, name)
    share = stats.binomtest(hits, AUDITS).proportion_ci(0.999, "exact")
    assert share.high >= 0.93
    assert share.low <= 0.97


def test_without_ids_copies_would_be_too_narrow():
    """The simulation can tell: what ids correct is far outside."""
    one = scenarios()["30 documents of 5–20 texts"]
    random, hits = np.random.default_rng(0), 0
    for _ in range(AUDITS):
        texts = one.draw(random)
        found = one.estimate(type(texts)(texts.columns))
        hits += found.low <= one.truth <= found.high
    assert hits / AUDITS < 0.85


def test_examples_in_documentation():
    found = doctest.testmod(studentised)
    assert found.attempted
    assert not found.failed
