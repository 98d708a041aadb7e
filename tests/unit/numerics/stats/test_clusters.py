"""Clusters of texts: sums, codes and counts."""

import doctest
from math import isnan, nan

import numpy as np
import pytest

from heedful.core.errors import ShapeError
from heedful.numerics.stats import clusters
from heedful.numerics.stats.clusters import (
    cluster_codes,
    count_clusters,
    sum_by_cluster,
    sum_values,
)


def test_codes_follow_the_order_of_the_ids():
    assert cluster_codes(4, ["b", "a", "c", "b"]).tolist() == [1, 0, 2, 1]
    assert cluster_codes(3, None).tolist() == [0, 1, 2]
    with pytest.raises(ShapeError, match="3 texts need as many ids"):
        cluster_codes(3, ["a", "b"])


def test_clusters_of_some_texts_are_counted():
    some = np.array([True, True, False, True])
    assert count_clusters(["a", "a", "b", "c"], some) == 2
    assert count_clusters(None, some) == 3


def test_a_cluster_without_a_value_has_no_sum():
    found = sum_values(np.array([1.0, nan, 2.0, nan]), ["a", "b", "a", "a"])
    assert found[0] == 3.0
    assert isnan(found[1])


def test_equal_values_in_any_order_have_equal_sums():
    values = np.array([[0.1], [1e17], [0.3], [-1e17]])
    one = sum_by_cluster(values, ["a"] * 4)
    assert all(
        (sum_by_cluster(values[np.random.default_rng(n).permutation(4)], ["a"] * 4) == one).all()
        for n in range(10)
    )


def test_examples_in_documentation():
    found = doctest.testmod(clusters)
    assert found.attempted
    assert not found.failed
