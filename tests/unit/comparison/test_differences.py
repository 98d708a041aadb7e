"""Differences, intervals and p-values beside plain loops and scipy."""

from math import isnan, nan

import numpy as np
import pytest
from scipy import stats

from heedful.checks import checks
from heedful.comparison.differences import (
    DEGREE_MEASURES,
    EQUAL_VALUES,
    ResamplingSettings,
    degree_difference,
    difference_parts,
    mean_differences,
    seeded_difference,
    seeded_keys,
)
from heedful.comparison.records import DEGREE_KEY, OVER_SEEDS
from heedful.core.records import MeasureKey
from heedful.core.rng import generator
from heedful.numerics.stats.bootstrap import estimate_place
from heedful.results.tables import MeasurementColumns
from support.run_folders import TAUS, taus
from support.subjects import tails

ONE, TWO = MeasureKey("permutation", "median_tvd"), MeasureKey("permutation", "leverage")
DRAW = ResamplingSettings(resamples=400, permutations=400)


def columns(values):
    n = len(next(iter(values.values())))
    names = np.array(["a"] * n, dtype=object)
    keyed = {MeasureKey(*key): one for key, one in values.items()}
    return MeasurementColumns(np.arange(n), names, names, keyed)


def drawn(seed, n=80, mean=0.0):
    random = np.random.default_rng(seed)
    return {ONE: random.normal(mean, 1, n), TWO: random.normal(mean, 1, n)}


def test_means_intervals_and_gaps_are_those_of_a_plain_loop():
    one, other = drawn(0), drawn(1, mean=0.3)
    one[ONE][:5], other[ONE][3:9] = nan, nan
    found, _ = mean_differences(columns(one), columns(other), [ONE, TWO], DRAW)
    pairs = [(i, a, b) for i, (a, b) in enumerate(zip(one[ONE], other[ONE], strict=True))]
    pairs = {i: (a, b) for i, a, b in pairs if a == a and b == b}
    random, apart = generator(0, "bootstrap"), []
    for _ in range(400):
        chosen = [pairs[i] for i in random.integers(80, size=80).tolist() if i in pairs]
        apart.append(sum(b - a for a, b in chosen) / len(chosen))
    low, high = np.quantile(apart, tails(71))
    assert found.difference.low == pytest.approx(low)
    assert found.difference.high == pytest.approx(high)
    assert found.difference.value == pytest.approx(np.mean([b - a for a, b in pairs.values()]))
    assert found.second.value - found.first.value == pytest.approx(found.difference.value)
    assert (found.difference.n, found.undefined) == (71, (5, 6))


def test_interval_and_p_are_near_those_of_scipy():
    one, other = drawn(2), drawn(3, mean=0.35)
    many = ResamplingSettings(resamples=20_000, permutations=20_000)
    found = mean_differences(columns(one), columns(other), [ONE], many)[0]
    apart = other[ONE] - one[ONE]
    ends = stats.bootstrap(
        (apart,),
        np.mean,
        n_resamples=20_000,
        method="percentile",
        confidence_level=1 - 2 * tails(80)[0],
        rng=1,
    ).confidence_interval
    assert found.difference.low == pytest.approx(ends.low, abs=0.01)
    assert found.difference.high == pytest.approx(ends.high, abs=0.01)
    test = stats.permutation_test(
        (other[ONE], one[ONE]),
        lambda x, y, axis: np.mean(x, axis=axis) - np.mean(y, axis=axis),
        permutation_type="samples",
        n_resamples=20_000,
        rng=1,
    )
    assert found.p == pytest.approx(test.pvalue, abs=0.01)


def test_independent_samples_are_drawn_on_their_own_and_are_near_scipy():
    one, other = drawn(2, n=60), drawn(3, n=90, mean=0.4)
    many = ResamplingSettings(paired=False, resamples=20_000, permutations=20_000)
    found = mean_differences(columns(one), columns(other), [ONE], many)[0]
    ends = stats.bootstrap(
        (other[ONE], one[ONE]),
        lambda x, y, axis: np.mean(x, axis=axis) - np.mean(y, axis=axis),
        n_resamples=20_000,
        method="percentile",
        confidence_level=1 - 2 * tails(150)[0],
        rng=1,
    ).confidence_interval
    assert found.difference.low == pytest.approx(ends.low, abs=0.02)
    assert found.difference.high == pytest.approx(ends.high, abs=0.02)
    assert (found.first.n, found.second.n, found.difference.n) == (60, 90, 150)
    alike = mean_differences(columns(one), columns(one), [ONE], many)[0]
    assert alike.difference.value == 0
    assert alike.difference.high - alike.difference.low > 0.3  # as if they were other texts


@pytest.mark.parametrize("paired", [True, False])
def test_too_few_values_have_no_interval_and_none_no_p(paired):
    one, other = {ONE: np.array([1.0, nan, nan])}, {ONE: np.array([2.0, nan, 4.0])}
    draw = ResamplingSettings(paired=paired, resamples=200)
    found = mean_differences(columns(one), columns(other), [ONE], draw)[0].difference
    assert isnan(found.low)
    nothing = {ONE: np.full(3, nan)}
    found = mean_differences(columns(one), columns(nothing), [ONE], draw)[0]
    assert isnan(found.difference.value)
    assert isnan(found.p)


def test_what_rounding_does_is_no_difference():
    one = drawn(0)
    other = {key: value + 0.9 * EQUAL_VALUES for key, value in one.items()}
    for found in mean_differences(columns(one), columns(other), [ONE, TWO], DRAW):
        assert (found.difference.value, found.p) == (0.0, 1.0)


def test_degrees_are_those_of_estimate_place_and_their_difference_of_a_plain_loop():
    one, other = taus(130, seed=1), taus(130, seed=2, degree=0.8)
    one["agreement", TAUS[0]][:4] = nan
    found, reason = degree_difference(columns(one), columns(other), DRAW)
    assert (found.key, reason, found.undefined) == (DEGREE_KEY, "", (4, 0))
    kept = np.arange(4, 130)
    for side, values in ((found.first, one), (found.second, other)):
        parts = [values["agreement", name][kept] for name in TAUS]
        assert side == estimate_place(*parts, resamples=400).place
    tables = [np.stack([v["agreement", name][kept] for name in TAUS], 1) for v in (one, other)]
    random, apart = generator(0, "bootstrap"), []
    for _ in range(400):
        rows = random.integers(126, size=126)
        a, b = (table[rows].mean(0) for table in tables)
        apart.append((b[0] - b[1]) / (b[2] - b[1]) - (a[0] - a[1]) / (a[2] - a[1]))
    low, high = np.quantile(apart, tails(126))
    assert (found.difference.low, found.difference.high) == pytest.approx((low, high))
    assert found.difference.value == pytest.approx(found.second.value - found.first.value)


@pytest.mark.parametrize("paired", [True, False])
def test_p_of_a_degree_is_that_of_scipy(paired):
    n, m = (40, 40) if paired else (40, 30)
    one, other = taus(n, seed=1), taus(m, seed=2, degree=0.56)
    found, _ = degree_difference(
        columns(one), columns(other), ResamplingSettings(paired=paired, permutations=20_000)
    )
    tables = [np.stack([v["agreement", name] for name in TAUS], 1) for v in (one, other)]

    def place(rows, table):
        a, b, c = table[rows.astype(int)].mean(0)
        return (a - b) / (c - b)

    both = np.concatenate(tables)
    test = stats.permutation_test(
        (np.arange(n, n + m), np.arange(n)),
        lambda x, y: place(x, both) - place(y, both),
        permutation_type="samples" if paired else "independent",
        vectorized=False,
        n_resamples=2000,
        rng=1,
    )
    assert found.p == pytest.approx(test.pvalue, abs=0.04)


def test_a_degree_that_means_nothing_is_not_compared():
    one, other = taus(50), taus(50, seed=1)
    other["agreement", TAUS[2]] = np.random.default_rng(0).normal(0, 0.1, 50)
    found, reason = degree_difference(columns(one), columns(other), DRAW)
    assert found is None
    assert "in the second gradient and leave-one-out agree no better than chance" in reason
    assert len(DEGREE_MEASURES) == 3


TRAINED, UNIFORM = (MeasureKey("necessity", f"score_{one}") for one in ("trained", "uniform"))


def scores(seed, n=60, seeds=4, shift=0.0):
    random = np.random.default_rng(seed)
    rows = (random.random((seeds, n)) < 0.6 + shift).astype(float)
    uniform = (random.random((seeds, n)) < 0.5).astype(float)
    values = {TRAINED: rows.mean(0), UNIFORM: uniform.mean(0)}
    values |= {("necessity", "gain"): rows.mean(0) - uniform.mean(0)}
    for s in range(seeds):
        values[TRAINED._replace(seed=s + 1)] = rows[s]
        values[UNIFORM._replace(seed=s + 1)] = uniform[s]
    return columns(values)


@pytest.mark.parametrize("measure", ["score_trained", "gain"])
def test_seeds_are_drawn_too_and_by_each_side_on_its_own(measure):
    one, other, key = scores(0), scores(1, shift=0.2), MeasureKey("necessity", measure)
    assert key in seeded_keys(one, other)
    found = seeded_difference(one, other, key, ResamplingSettings(resamples=3000))
    assert found.over == OVER_SEEDS
    assert found.difference.value == pytest.approx(
        (other.values[key] - one.values[key]).mean(), abs=1e-12
    )
    random, apart = np.random.default_rng(0), []
    for _ in range(3000):  # plainly, with draws of its own
        texts = random.integers(60, size=60)
        means = []
        for side in (one, other):
            names = ("score_trained", "score_uniform") if measure == "gain" else ("score_trained",)
            each = [
                side.by_seed(MeasureKey("necessity", name))[random.integers(4, size=4)][
                    :, texts
                ].mean()
                for name in names
            ]
            means.append(each[0] - (each[1] if measure == "gain" else 0.0))
        apart.append(means[1] - means[0])
    ends = np.quantile(apart, (0.025, 0.975))
    assert (found.difference.low, found.difference.high) == pytest.approx(ends, abs=0.02)
    alone = mean_differences(one, other, [key], ResamplingSettings(resamples=3000))[0].difference
    assert found.difference.high - found.difference.low > alone.high - alone.low


def test_the_same_models_do_not_differ_and_turned_round_signs_turn():
    one, other, key = scores(0), scores(1, shift=0.2), MeasureKey("necessity", "gain")
    same = seeded_difference(one, scores(0), key, DRAW)
    assert (same.difference.value, same.difference.low, same.difference.high, same.p) == (
        0,
        0,
        0,
        1,
    )
    there, back = (seeded_difference(*two, key, DRAW) for two in ((one, other), (other, one)))
    assert there.difference.low == pytest.approx(-back.difference.high)
    assert there.p == back.p


def test_texts_without_a_value_under_a_seed_are_left_out_and_counted():
    one = scores(0)
    one.values[TRAINED._replace(seed=2)][7] = nan
    found = seeded_difference(one, scores(1), TRAINED, DRAW)
    assert (found.difference.n, found.undefined) == (59, (1, 0))


def test_differences_are_those_that_the_checks_describe():
    assert difference_parts(MeasureKey("necessity", "gain")) == (TRAINED, UNIFORM)
    lime = MeasureKey("roar", "beyond_random", "lime", setting="0.5")
    assert difference_parts(lime) == (
        MeasureKey("roar", "score", "random", setting="0.5"),
        MeasureKey("roar", "score", "lime", setting="0.5"),
    )
    assert difference_parts(MeasureKey("roar", "score", "random")) is None
    assert difference_parts(MeasureKey("of a plug-in that is not here", "gain")) is None
    for spec in checks.specs():
        known = {one.name for one in spec.measures}
        sides = {side.measure for pair in spec.differences.values() for side in pair}
        assert {*spec.differences, *spec.over_seeds, *sides} <= known


def test_seeds_are_averaged_as_the_check_says():
    """The median over seeds where one seed strays."""
    random, key = np.random.default_rng(0), MeasureKey("seeds", "jsd_seeds")
    table = random.random((5, 40))
    table[0] += 9
    values = {key._replace(seed=s): row for s, row in enumerate(table)}
    side = columns({**values, key: np.median(table, axis=0)})
    found = seeded_difference(side, side, key, DRAW)
    assert found.first.value == pytest.approx(np.median(table, axis=0).mean())
