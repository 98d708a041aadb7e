import doctest
import tracemalloc
from math import isnan, nan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from heedful.core.errors import ShapeError
from heedful.core.rng import generator
from heedful.numerics.stats import bootstrap
from heedful.numerics.stats.bootstrap import (
    bootstrap_means,
    estimate_means,
    estimate_place,
    percentile_interval,
)
from support.subjects import tails


def table(seed, n=40, M=3, holes=0.0):
    random = np.random.default_rng(seed)
    return np.where(random.random((n, M)) < holes, nan, random.normal(size=(n, M)))


def plain_means(values, resamples, seed):
    """One resample at a time, one column at a time, one instance at a time."""
    random = generator(seed, "bootstrap")
    means = []
    for _ in range(resamples):
        chosen = [values[i] for i in random.integers(len(values), size=len(values))]
        columns = [[v for v in column if v == v] for column in zip(*chosen, strict=True)]
        means.append([sum(c) / len(c) if c else nan for c in columns])
    return means


@given(st.integers(0, 999), st.integers(1, 30), st.sampled_from((0.0, 0.3, 0.95)))
@settings(max_examples=30)
def test_means_are_those_of_a_plain_loop(seed, n, holes):
    values = table(seed, n, holes=holes)
    found = bootstrap_means(values, resamples=5, seed=seed)
    np.testing.assert_allclose(found, plain_means(values, 5, seed), atol=1e-12)


def test_draws_belong_to_the_seed_and_more_of_them_begin_alike():
    values = table(0)
    few, many = (bootstrap_means(values, resamples=r, seed=3) for r in (10, 500))
    assert (few == many[:10]).all()
    assert (few != bootstrap_means(values, resamples=10, seed=4)).all()


def test_columns_are_resampled_together():
    values = table(0)[:, [0, 0, 1]]
    draws = bootstrap_means(values, resamples=200, seed=0)
    assert np.ptp(draws[:, 0] - draws[:, 1]) < 1e-15
    alone = bootstrap_means(values[:, [2]], resamples=200, seed=0)
    np.testing.assert_allclose(alone[:, 0], draws[:, 2], atol=1e-14)


def test_memory_stays_small_with_many_instances():
    values = np.ones((50_000, 4))
    tracemalloc.start()
    bootstrap_means(values, resamples=20, seed=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32e6


def test_the_interval_is_that_of_scipy_to_monte_carlo_error():
    values = np.random.default_rng(0).exponential(size=200)
    ours = estimate_means({"x": values}, resamples=20_000)["x"]
    theirs = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=20_000,
        method="percentile",
        confidence_level=1 - 2 * tails(200)[0],
        rng=np.random.default_rng(1),
    ).confidence_interval
    # the error of a 2.5 % quantile of R draws: √(p(1−p)/R) / density, about 2.7 σ/√R; five of it
    within = 5 * sqrt(2) * 2.7 * values.std() / sqrt(200) / sqrt(20_000)
    assert ours.low == pytest.approx(theirs.low, abs=within)
    assert ours.high == pytest.approx(theirs.high, abs=within)


def test_intervals_hold_the_truth_as_often_as_they_say():
    samples = np.random.default_rng(0).normal(0.3, 1.0, (60, 400))
    found = estimate_means({str(i): column for i, column in enumerate(samples.T)}, resamples=500)
    share = np.mean([one.low <= 0.3 <= one.high for one in found.values()])
    assert share == pytest.approx(0.95, abs=0.01 + 4 * sqrt(0.95 * 0.05 / 400))


@pytest.mark.parametrize("n", [5, 12, 100])
def test_of_normal_draws_the_expanded_percentiles_are_students_interval(n):
    """Resampled means vary by the biased standard deviation: that, too, is made up for."""
    values = np.random.default_rng(n).normal(2.0, 1.0, n)
    even = (np.arange(200_000) + 0.5) / 200_000
    draws = stats.norm.ppf(even, values.mean(), values.std() / sqrt(n))[:, None]
    ends = np.concatenate(percentile_interval(draws, 0.9, n=n))
    wanted = stats.t.interval(0.9, n - 1, values.mean(), values.std(ddof=1) / sqrt(n))
    np.testing.assert_allclose(ends, wanted, rtol=1e-4)


def test_few_instances_are_covered_as_often_as_many():
    samples = np.random.default_rng(1).normal(0.3, 1.0, (8, 600))
    found = estimate_means({str(i): column for i, column in enumerate(samples.T)}, resamples=1000)
    share = np.mean([one.low <= 0.3 <= one.high for one in found.values()])
    assert share == pytest.approx(0.95, abs=0.015 + 3 * sqrt(0.95 * 0.05 / 600))


def test_a_share_that_is_none_or_all_of_a_few_texts_is_not_certain():
    none = np.repeat([0.0, nan], [40, 5])
    some = np.repeat([0.0, 1.0, nan], [37, 3, 5])
    shares = {"flip_top": none, "top1_gradient": none + 1, "any": some}
    found = estimate_means(shares | {"js_top": none}, shares={"flip_top", "top1_gradient"})
    z = 1.959963984540054  # Wilson's interval of none of n: [0, z² / (n + z²)]
    assert (found["flip_top"].low, found["flip_top"].high) == pytest.approx((0, z**2 / (40 + z**2)))
    assert found["top1_gradient"].low == pytest.approx(1 - z**2 / (40 + z**2))
    assert (found["js_top"].low, found["js_top"].high) == (0, 0)  # no share: it may be 0 of all
    middle, half = (3 + z**2 / 2) / (40 + z**2), z / (40 + z**2) * sqrt(3 * 37 / 40 + z**2 / 4)
    assert (found["any"].low, found["any"].high) == pytest.approx((middle - half, middle + half))


def test_percentiles_leave_out_undefined_draws_up_to_one_in_twenty():
    draws = np.tile(np.arange(100.0)[:, None], (1, 3))
    draws[:5, 1] = draws[:6, 2] = nan
    low, high = percentile_interval(draws, 0.9)
    np.testing.assert_allclose(low[:2], [np.quantile(np.arange(s, 100), 0.05) for s in (0, 5)])
    np.testing.assert_allclose(high[:2], [np.quantile(np.arange(s, 100), 0.95) for s in (0, 5)])
    assert isnan(low[2])
    assert isnan(high[2])


def test_missing_values_are_left_out_and_counted():
    values = table(1, n=50, M=1)[:, 0]
    holes = np.insert(values, [0, 7, 50], nan)
    one = estimate_means({"x": holes})["x"]
    assert one.value == pytest.approx(values.mean())
    assert one.n == 50
    assert one.low < one.value < one.high


def test_too_few_values_have_no_interval():
    columns = {"none": np.full(4, nan), "one": np.array([nan, 2.0, nan, nan])}
    found = estimate_means(columns)
    assert isnan(found["none"].value)
    assert (found["none"].n, found["one"].n, found["one"].value) == (0, 1, 2.0)
    found["alone"] = estimate_means({"alone": np.array([2.0])})["alone"]
    assert found["alone"].value == 2.0
    assert all(isnan(end) for one in found.values() for end in (one.low, one.high))


def test_no_instances_and_no_columns():
    assert estimate_means({}) == {}
    assert estimate_means({"x": np.zeros(0)})["x"].n == 0
    empty = estimate_place(np.zeros(0), np.zeros(0), np.zeros(0))
    assert empty.place.n == 0
    assert isnan(empty.place.value)


def test_columns_of_unequal_length_are_refused():
    with pytest.raises(ShapeError, match=r"one value per instance.*'a': 2, 'b': 3"):
        estimate_means({"a": np.zeros(2), "b": np.zeros(3)})


def test_place_is_the_paired_ratio_of_plain_means():
    subject, control, reference = table(5, n=130).T + np.array([[0.5], [0.0], [3.0]])
    subject[3] = control[9] = reference[20] = nan
    found = estimate_place(subject, control, reference, resamples=50, seed=2)
    whole = [
        row for row in zip(subject, control, reference, strict=True) if not any(map(isnan, row))
    ]
    s, c, r = (sum(column) / len(whole) for column in zip(*whole, strict=True))
    draws = [(a - b) / (d - b) for a, b, d in plain_means(whole, 50, 2)]
    assert (found.place.n, found.gap.n) == (127, 127)
    assert found.place.value == pytest.approx((s - c) / (r - c))
    assert found.gap.value == pytest.approx(r - c)
    assert found.place.low == pytest.approx(np.quantile(draws, tails(127)[0]))
    assert found.place.high == pytest.approx(np.quantile(draws, tails(127)[1]))
    assert found.gap.low > 0


def test_place_of_the_ends_is_certain():
    _, control, reference = table(5, n=30).T + np.array([[0.0], [0.0], [3.0]])
    for subject, where in ((control, 0.0), (reference, 1.0)):
        place = estimate_place(subject, control, reference).place
        assert (place.value, place.low, place.high) == pytest.approx((where,) * 3, abs=1e-12)


def test_a_reference_no_better_than_the_control_shows_in_the_gap():
    subject, control, reference = table(5, n=30).T
    assert estimate_place(subject, control, reference).gap.low <= 0
    same = estimate_place(subject, control, control)
    assert same.gap.low == same.gap.high == 0.0
    assert isnan(same.place.value)


@pytest.mark.parametrize("n", [30, 130])
def test_copies_of_every_text_change_no_interval(n):
    columns = dict(zip("abc", table(6, n=n, holes=0.1).T, strict=True))
    columns["share"] = (columns["a"] > 0).astype(float)
    ids = np.arange(n)
    once = estimate_means(columns, ids, resamples=300)
    copies = {name: np.tile(one, 4) for name, one in columns.items()}
    four = estimate_means(copies, np.tile(ids, 4), resamples=300)
    alone = estimate_means(copies, resamples=300)
    for name in columns:
        assert four[name].n == 4 * once[name].n
        wanted = once[name].value, once[name].low, once[name].high
        assert (four[name].value, four[name].low, four[name].high) == pytest.approx(wanted)
        assert alone[name].high - alone[name].low < 0.6 * (once[name].high - once[name].low)
    ends = [columns[name] for name in "abc"]
    place = estimate_place(*ends, ids).place
    copied = estimate_place(*(np.tile(one, 4) for one in ends), np.tile(ids, 4)).place
    assert (copied.low, copied.high) == pytest.approx((place.low, place.high))


@pytest.mark.parametrize("n", [30, 130])
def test_the_order_of_the_texts_changes_no_bit(n):
    random = np.random.default_rng(n)
    columns = dict(zip("abc", table(7, n=n, holes=0.1).T, strict=True))
    columns["share"] = (columns["a"] > 0).astype(float)
    ids, order = random.integers(n, size=n).astype(str), random.permutation(n)
    mixed = {name: one[order] for name, one in columns.items()}
    assert estimate_means(columns, ids) == estimate_means(mixed, ids[order])
    one, other = (
        estimate_place(*(each[name] for name in "abc"), named)
        for each, named in ((columns, ids), (mixed, ids[order]))
    )
    assert one == other


def test_ids_in_the_order_of_the_texts_give_the_intervals_without_ids():
    columns = {"a": np.random.default_rng(8).exponential(size=150)}
    assert estimate_means(columns, np.arange(150)) == estimate_means(columns)


def test_one_cluster_has_no_interval():
    columns = {"a": np.arange(6.0), "share": np.array([0, 1, 0, 1, 0, nan])}
    found = estimate_means(columns, ["same"] * 6)
    assert found["a"].value == 2.5
    assert isnan(found["a"].low)
    assert isnan(found["share"].high)


def test_examples_in_documentation():
    found = doctest.testmod(bootstrap)
    assert found.attempted
    assert not found.failed
