import doctest
from itertools import permutations
from math import comb, factorial, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from heedful.numerics.stats import kendall_test
from heedful.numerics.stats.kendall_test import Ties, kendall_p


def facts(x, y):
    """n, concordant minus discordant, and the tie sums of both, by plain counting."""
    signs = [np.sign(row[:, None] - row[None, :]) for row in (x, y)]
    balance = int((signs[0] * signs[1]).sum()) // 2
    groups = [[int(c) for c in np.unique(row, return_counts=True)[1]] for row in (x, y)]
    ties = [
        (
            sum(comb(c, 2) for c in row),
            sum(c * (c - 1) * (c - 2) for c in row),
            sum(c * (c - 1) * (2 * c + 5) for c in row),
        )
        for row in groups
    ]
    return len(x), balance, *ties


def p_of(pairs):
    n, balance, x, y = zip(*(facts(*pair) for pair in pairs), strict=True)
    ties = (Ties(*np.array(one, dtype=np.int64).T.reshape(3, -1)) for one in (x, y))
    return kendall_p(np.array(n), np.array(balance), *ties)


def assert_as_scipy(pairs):
    # scipy warns of a single token
    want = [stats.kendalltau(x, y).pvalue if len(x) > 1 else nan for x, y in pairs]
    np.testing.assert_allclose(p_of(pairs), want, rtol=1e-9, atol=0)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8), st.integers(0, 2**32 - 1))
def test_p_is_that_of_scipy_on_random_rows(lengths, seed):
    random = np.random.default_rng(seed)
    untied = [(random.random(n), random.random(n)) for n in lengths]
    tied = [(random.integers(0, 5, n), random.random(n).round(1)) for n in lengths]
    leaning = [(np.arange(n), np.arange(n) + random.normal(0, 9, n)) for n in lengths]
    assert_as_scipy(untied + tied + leaning)


@pytest.mark.parametrize("n", [2, 3, 33, *range(34, 51), 169, 170, 171, 172, 400])
def test_p_is_that_of_scipy_near_perfect_order(n):
    rows = [np.arange(n)]
    for place in range(0, n - 1, 7):  # one pair out of order; then two
        rows.append(np.arange(n))
        rows[-1][[place, place + 1]] = place + 1, place
    if n > 4:
        rows.append(np.r_[2, 0, 1, np.arange(3, n)])
    both_ways = rows + [row[::-1] for row in rows]
    assert_as_scipy([(np.arange(n), row) for row in both_ways])


@pytest.mark.parametrize("n", range(1, 8))
def test_the_exact_distribution_is_that_of_all_orders(n):
    out_of_order = [
        sum(a > b for i, a in enumerate(order) for b in order[i + 1 :])
        for order in permutations(range(n))
    ]
    assert list(kendall_test._orders(n)) == np.bincount(out_of_order).tolist()


def test_the_exact_counts_are_whole_and_complete():
    orders = kendall_test._orders(33)
    assert sum(orders) == factorial(33)
    assert (orders == orders[::-1]).all()


def test_undefined_tau_has_no_p():
    one = (np.array([1.0]), np.array([2.0]))
    all_tied = (np.ones(9), np.arange(9.0))
    assert np.isnan(p_of([one, all_tied, all_tied[::-1]])).all()


def test_rankings_against_rankings_by_broadcasting():
    random = np.random.default_rng(0)
    texts = random.integers(0, 6, (4, 3, 12))
    ties = np.array([[facts(row, row)[2] for row in text] for text in texts])
    balance = np.array([[[facts(x, y)[1] for y in text] for x in text] for text in texts])
    sums = Ties(*np.moveaxis(ties, -1, 0))
    p = kendall_p(np.full((4, 1, 1), 12), balance, sums[:, :, None], sums[:, None, :])
    want = [[[stats.kendalltau(x, y).pvalue for y in text] for x in text] for text in texts]
    np.testing.assert_allclose(p, want, rtol=1e-9)


def test_long_texts_do_not_overflow():
    random = np.random.default_rng(0)
    x = random.integers(0, 2, 3000)
    assert_as_scipy([(x, random.permutation(3000)), (x, random.integers(0, 2, 3000))])


def test_no_texts_give_no_p():
    none = Ties(*np.zeros((3, 0), dtype=np.int64))
    empty = np.zeros(0, dtype=np.int64)
    assert kendall_p(empty, empty, none, none).shape == (0,)


def test_under_the_null_one_in_twenty_is_significant():
    random = np.random.default_rng(0)
    pairs = [(random.random(25), random.random(25)) for _ in range(2000)]
    assert (p_of(pairs) <= 0.05).mean() == pytest.approx(0.05, abs=4 * (0.05 * 0.95 / 2000) ** 0.5)


def test_examples_in_documentation():
    found = doctest.testmod(kendall_test)
    assert found.attempted
    assert not found.failed
