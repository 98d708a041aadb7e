"""Intervals of bounded means: exact for shares, and no point where all figures agree."""

import doctest

import numpy as np
import pytest
from scipy.stats import binomtest

from heedful.core.rng import generator
from heedful.numerics.stats import bounded_means
from heedful.numerics.stats.bounded_means import estimate_above_chance, estimate_bounded_mean


def test_examples_in_the_docstrings():
    found = doctest.testmod(bounded_means)
    assert (found.failed, found.attempted) == (0, 3)


@pytest.mark.parametrize(("ones", "n"), [(0, 8), (8, 8), (13, 20), (50, 60)])
def test_shares_have_the_interval_of_clopper_and_pearson(ones, n):
    found = estimate_bounded_mean(np.repeat([1.0, 0.0], [ones, n - ones]))
    exact = binomtest(ones, n).proportion_ci(0.95, "exact")
    assert found.value == pytest.approx(ones / n)
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=0.01)
    assert found.n == n


def test_the_interval_of_figures_that_hardly_vary_is_narrower_than_that_of_a_share():
    values = np.full(60, 0.8) + np.linspace(-0.02, 0.02, 60)
    found, share = estimate_bounded_mean(values), binomtest(48, 60).proportion_ci(0.95, "exact")
    assert found.high - found.low < (share.high - share.low) / 2


def test_the_true_mean_is_inside_at_least_as_often_as_said():
    held = 0
    for trial in range(200):
        values = generator(0, "skewed figures", trial).beta(0.3, 0.1, 10)
        found = estimate_bounded_mean(values, seed=trial)
        held += found.low <= 0.75 <= found.high
    assert held >= 188  # 94 %


def test_undefined_figures_take_no_part_and_one_figure_has_no_interval():
    found = estimate_bounded_mean(np.array([np.nan, 0.5, np.nan]))
    assert (found.value, found.n) == (0.5, 1)
    assert np.isnan(found.low)
    assert np.isnan(estimate_bounded_mean(np.array([np.nan])).value)


def test_above_chance_is_zero_at_chance_and_one_at_best():
    chance = np.array([0.2, 0.5, 0.35])
    assert estimate_above_chance(chance, chance).value == 0.0
    best = estimate_above_chance(np.ones(3), chance)
    assert (best.value, best.high) == (1.0, 1.0)
    assert best.low < 1.0
    worst = estimate_above_chance(np.zeros(3), chance)
    assert worst.value == pytest.approx(-0.35 / 0.65)
    assert np.isnan(estimate_above_chance(np.ones(2), np.ones(2)).value)
