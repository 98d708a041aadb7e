"""Wilson's interval of shares, of single texts and of clusters of them."""

import doctest
from math import isnan

import numpy as np
import pytest
from scipy.stats import binomtest

from heedful.numerics.stats import shares
from heedful.numerics.stats.shares import share_interval


def wilson(ones, n):
    ends = binomtest(ones, n).proportion_ci(0.95, method="wilson")
    return ends.low, ends.high


def test_single_texts_have_wilsons_interval():
    ones = np.array([1.0] * 3 + [0.0] * 37)
    assert share_interval(ones, np.ones(40), 0.95) == wilson(3, 40)


def test_texts_without_a_value_do_not_count():
    ones, counts = np.array([1.0, 0.0, 0.0]), np.array([1.0, 0.0, 1.0])
    assert share_interval(ones, counts, 0.95) == wilson(1, 2)
    assert isnan(share_interval(ones, 0 * counts, 0.95)[0])


@pytest.mark.parametrize("copies", [2, 7])
def test_as_many_copies_of_each_text_change_nothing(copies):
    ones = np.array([1.0] * 3 + [0.0] * 17)
    assert share_interval(copies * ones, copies * np.ones(20), 0.95) == wilson(3, 20)


def test_a_share_of_none_counts_each_cluster_once():
    counts = np.array([5.0, 5.0, 5.0, 4.0])
    low, high = share_interval(np.zeros(4), counts, 0.95)
    assert low == 0.0
    assert high > wilson(0, 4)[1]


def test_texts_of_a_cluster_that_are_alike_say_less_than_those_that_differ():
    counts = np.array([6.0, 5.0] * 10)
    alike = np.where(np.arange(20) % 2 == 0, counts, 0.0)
    mixed = np.array([3.0, 3.0] * 10)
    narrow, wide = (share_interval(one, counts, 0.95) for one in (mixed, alike))
    assert wide[1] - wide[0] > 1.5 * (narrow[1] - narrow[0])
    assert narrow[1] - narrow[0] >= wilson(60, 110)[1] - wilson(60, 110)[0]


def test_examples_in_documentation():
    found = doctest.testmod(shares)
    assert found.attempted
    assert not found.failed
