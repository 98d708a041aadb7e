import doctest
from itertools import product
from math import isnan, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from heedful.core.rng import generator
from heedful.numerics.stats import multiple_testing, permutation_tests
from heedful.numerics.stats.multiple_testing import benjamini_hochberg_adjusted
from heedful.numerics.stats.permutation_tests import (
    relabelled_means,
    swapped_means,
    two_sided_p,
    two_sided_sign_flip_p,
)

MANY = 20_000


def normal(seed, *shape, mean=0.0):
    return np.random.default_rng(seed).normal(mean, 1.0, shape)


def mean_difference(one, other, axis):
    return one.mean(axis=axis) - other.mean(axis=axis)


@pytest.mark.parametrize("mean", [0.0, 0.4, -0.9])
def test_signs_of_few_values_are_all_tried_by_hand(mean):
    values = normal(1, 9, 1, mean=mean)
    sums = [
        sum(s * v for s, v in zip(turn, values[:, 0], strict=True))
        for turn in product((-1, 1), repeat=9)
    ]
    exact = np.mean(np.abs(sums) >= abs(values.sum()) - 1e-12)
    assert two_sided_sign_flip_p(values, resamples=MANY)[0] == pytest.approx(exact, abs=0.012)


def test_two_sided_p_is_that_of_scipy():
    one, other = normal(2, 60), normal(3, 60, mean=0.3)
    found = stats.permutation_test(
        (one, other), mean_difference, permutation_type="samples", n_resamples=MANY, rng=0
    )
    assert two_sided_sign_flip_p((other - one)[:, None], resamples=MANY)[0] == pytest.approx(
        found.pvalue, abs=0.012
    )


def test_columns_turn_the_same_signs_and_know_their_own_gaps():
    values = normal(4, 50, 3)
    values[::3, 1] = nan
    both = two_sided_sign_flip_p(values, resamples=500, seed=3)
    for column in (0, 2):
        assert two_sided_sign_flip_p(values[:, [column]], resamples=500, seed=3)[0] == both[column]
    filled = np.where(np.isnan(values), 0.0, values)
    assert (two_sided_sign_flip_p(filled, resamples=500, seed=3) == both).all()
    assert (two_sided_sign_flip_p(-values, resamples=500, seed=3) == both).all()
    assert isnan(two_sided_sign_flip_p(np.full((5, 1), nan))[0])
    assert two_sided_sign_flip_p(np.zeros((5, 1)))[0] == 1.0


def test_false_alarms_come_as_often_as_the_level_says():
    values = normal(5, 30, 2000)
    assert np.mean(two_sided_sign_flip_p(values, resamples=400) <= 0.05) == pytest.approx(
        0.05, abs=0.015
    )


@given(st.integers(0, 999), st.integers(1, 12))
@settings(max_examples=20)
def test_swaps_are_those_of_a_plain_loop(seed, n):
    one, other = normal(seed, n, 2), normal(seed + 1, n, 2)
    random = generator(seed, "swaps")
    falls = random.integers(2, size=(5, n), dtype=np.int8)
    first, second = swapped_means(one, other, resamples=5, seed=seed)
    for draw, coins in enumerate(falls):
        a = [y if coin else x for x, y, coin in zip(one, other, coins, strict=True)]
        b = [x if coin else y for x, y, coin in zip(one, other, coins, strict=True)]
        np.testing.assert_allclose(first[draw], np.mean(a, axis=0), atol=1e-12)
        np.testing.assert_allclose(second[draw], np.mean(b, axis=0), atol=1e-12)


def test_deals_are_those_of_a_plain_loop_and_leave_gaps_out():
    one, other = normal(0, 7, 2), normal(1, 5, 2)
    one[2, 0] = other[1, 1] = nan
    both, random = np.concatenate([one, other]), generator(9, "deals")
    first, second = relabelled_means(one, other, resamples=6, seed=9)
    for draw in range(6):
        order = random.permutation(12)
        for found, rows in ((first, order[:7]), (second, order[7:])):
            np.testing.assert_allclose(found[draw], np.nanmean(both[rows], axis=0), atol=1e-12)


def test_p_of_independent_samples_is_that_of_scipy():
    one, other = normal(2, 40), normal(3, 55, mean=0.4)
    found = stats.permutation_test((one, other), mean_difference, n_resamples=MANY, rng=0)
    first, second = relabelled_means(one[:, None], other[:, None], resamples=MANY)
    own = np.array([other.mean() - one.mean()])
    assert two_sided_p(own, second - first)[0] == pytest.approx(found.pvalue, abs=0.012)


def test_adjusted_p_values_are_those_of_scipy_and_gaps_stay():
    p = [0.04, 0.001, nan, 0.02, 0.5]
    found = benjamini_hochberg_adjusted(p)
    assert isnan(found[2])
    known = [one for one in p if one == one]
    assert [one for one in found if one == one] == stats.false_discovery_control(known).tolist()
    assert benjamini_hochberg_adjusted([]) == []
    assert isnan(benjamini_hochberg_adjusted([nan])[0])


@pytest.mark.parametrize("module", [multiple_testing, permutation_tests])
def test_examples_in_documentation(module):
    found = doctest.testmod(module)
    assert found.attempted
    assert not found.failed
