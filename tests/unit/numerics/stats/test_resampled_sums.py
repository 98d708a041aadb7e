import doctest
import tracemalloc
from math import isnan, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.core.errors import ShapeError
from heedful.core.rng import generator
from heedful.numerics.stats import clusters, resampled_sums
from heedful.numerics.stats.bootstrap import bootstrap_means, estimate_means
from heedful.numerics.stats.resampled_sums import interval_of, resample_sums


def ratio(rows):
    with np.errstate(invalid="ignore"):
        return rows[:, 0] / rows[:, 1]


def plain_sums(columns, ids, resamples, seed):
    """One resample, one cluster and one text at a time."""
    random, names = generator(seed, "bootstrap"), sorted(set(ids))
    for _ in range(resamples):
        drawn = [names[place] for place in random.integers(len(names), size=len(names))]
        pairs = [
            pair for name in drawn for pair in zip(columns, ids, strict=True) if pair[1] == name
        ]
        texts = [row for row, _ in pairs]
        yield [sum(0.0 if isnan(v) else v for v in column) for column in zip(*texts, strict=True)]


@given(st.integers(0, 999), st.integers(1, 30), st.integers(1, 8))
@settings(max_examples=30)
def test_sums_are_those_of_a_plain_loop(seed, n, count):
    random = np.random.default_rng(seed)
    columns = np.where(random.random((n, 3)) < 0.2, nan, random.normal(size=(n, 3)))
    ids = random.integers(count, size=n)
    sums = resample_sums(columns, ids, resamples=4, seed=seed)
    wanted = list(plain_sums(columns.tolist(), ids.tolist(), 4, seed))
    np.testing.assert_allclose(sums.draws, wanted, atol=1e-12)
    np.testing.assert_allclose(sums.whole, np.nansum(columns, 0), atol=1e-12)


def test_the_order_of_the_texts_changes_no_bit():
    random = np.random.default_rng(0)
    columns, ids = random.normal(size=(50, 2)), random.integers(20, size=50).astype(str)
    order = random.permutation(50)
    one, other = resample_sums(columns, ids), resample_sums(columns[order], ids[order])
    assert (one.draws == other.draws).all()
    assert (one.whole == other.whole).all()


def test_draws_are_those_of_means_over_texts():
    values = np.random.default_rng(0).normal(size=(30, 1))
    sums = resample_sums(np.hstack((values, np.ones((30, 1)))), resamples=20, seed=3)
    np.testing.assert_allclose(
        ratio(sums.draws), bootstrap_means(values, resamples=20, seed=3)[:, 0], atol=1e-14
    )


def test_copies_do_not_narrow_an_interval():
    columns = np.random.default_rng(0).exponential(size=(40, 2))
    once = interval_of(resample_sums(columns, np.arange(40)), ratio, n=40)
    copied = resample_sums(np.tile(columns, (5, 1)), np.tile(np.arange(40), 5))
    five = interval_of(copied, ratio, n=200)
    assert (five.value, five.low, five.high) == pytest.approx((once.value, once.low, once.high))


def test_a_ratio_of_few_texts_is_that_of_the_studentised_mean():
    values = np.random.default_rng(1).lognormal(size=40)
    one = interval_of(resample_sums(np.stack((values, np.ones(40)), axis=1)), ratio, n=40)
    wanted = estimate_means({"a": values})["a"]
    assert (one.value, one.low, one.high) == pytest.approx(
        (wanted.value, wanted.low, wanted.high), rel=1e-6
    )


def test_a_part_of_the_texts_has_the_interval_of_those_alone():
    """What other texts hold, and how many there are, is nothing to a ratio over some of them."""
    columns = np.random.default_rng(2).exponential(size=(150, 2))
    columns[:120] = nan
    some = interval_of(resample_sums(columns), ratio, n=30)
    alone = interval_of(resample_sums(columns[120:]), ratio, n=30)
    assert (some.low, some.high) == pytest.approx((alone.low, alone.high))


def test_a_ratio_that_few_resamples_define_has_no_interval():
    columns = np.zeros((20, 2))
    columns[3] = 1.0
    one = interval_of(resample_sums(columns), ratio, n=20)
    assert one.value == 1.0
    assert isnan(one.low)


def test_memory_stays_small_with_many_texts():
    columns = np.ones((100_000, 2))
    tracemalloc.start()
    resample_sums(columns, resamples=50)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64e6


def test_counts_that_cancel_do_not_make_an_interval_undefined():
    random = np.random.default_rng(0)
    columns = np.column_stack((random.random(40), random.random(40) + 1, np.ones(40)))
    sums = resample_sums(columns)

    def means(rows):
        with np.errstate(divide="ignore", invalid="ignore"):
            return (rows[:, 0] / rows[:, 2]) / (rows[:, 1] / rows[:, 2])

    one, other = (interval_of(sums, statistic, n=40) for statistic in (means, ratio))
    assert (one.low, one.high) == pytest.approx((other.low, other.high))
    assert interval_of(sums, lambda rows: rows[:, 0] / rows[:, 0], n=40).low == 1.0


def test_ids_must_be_one_per_text():
    with pytest.raises(ShapeError, match="3 texts need as many ids"):
        resample_sums(np.ones((3, 1)), ["a", "b"])


def test_no_texts_have_no_interval():
    one = interval_of(resample_sums(np.ones((0, 2))), lambda rows: np.full(len(rows), nan), n=0)
    assert one.n == 0
    assert isnan(one.value)
    assert isnan(one.low)


@pytest.mark.parametrize("module", [clusters, resampled_sums])
def test_examples_in_documentation(module):
    found = doctest.testmod(module)
    assert found.attempted
    assert not found.failed
