"""Intervals over seeds and texts: what they cover, and what they leave to the one or the other."""

import numpy as np
import pytest

from heedful.numerics.stats.bootstrap import bootstrap_means
from heedful.numerics.stats.crossed_bootstrap import (
    below_margin_p,
    estimate_from_draws,
    mean_over_seeds,
    median_over_seeds,
    resample_crossed,
)

DRAW = np.random.default_rng(0)


def test_one_seed_is_the_bootstrap_over_texts():
    values = DRAW.normal(size=40)
    found = resample_crossed({"a": values[None]}, resamples=300, seed=3)["a"]
    wanted = bootstrap_means(values[:, None], resamples=300, seed=3)[:, 0]
    np.testing.assert_allclose(found, wanted)


def test_seeds_that_differ_widen_the_interval():
    texts = DRAW.normal(size=200)
    same = np.stack([texts] * 5)
    other = same + np.array([-0.2, -0.1, 0.0, 0.1, 0.2])[:, None]
    narrow, wide = (
        resample_crossed({"a": one}, resamples=2000)["a"].std() for one in (same, other)
    )
    seeds = np.array([-0.2, -0.1, 0.0, 0.1, 0.2]).std() / np.sqrt(5)
    assert narrow == pytest.approx(texts.std() / np.sqrt(200), rel=0.1)
    assert wide == pytest.approx(np.hypot(narrow, seeds), rel=0.1)


def test_arms_share_their_texts_and_not_their_seeds():
    texts = DRAW.normal(size=50)
    arms = {"a": np.stack([texts, texts]), "b": np.stack([texts, texts]) - 0.25}
    draws = resample_crossed(arms, resamples=200)
    np.testing.assert_allclose(draws["a"] - draws["b"], 0.25)  # paired over texts
    shifted = np.stack([texts, texts + 1])
    apart = resample_crossed({"a": shifted, "b": shifted}, resamples=400)
    assert 0.3 < np.mean(np.abs(apart["a"] - apart["b"]) > 1e-9) < 0.9  # own seeds each


def test_the_plain_loop_gives_the_same():
    """Resampled texts and seeds written out as lists, from the same streams."""
    from heedful.core.rng import generator

    table = DRAW.normal(size=(3, 7))
    texts, seeds = generator(5, "bootstrap"), generator(5, "bootstrap of seeds, a")
    wanted = []
    for _ in range(50):
        chosen = texts.integers(7, size=7).tolist()
        rows = seeds.integers(3, size=3).tolist()
        wanted.append(np.mean([np.mean([table[row][text] for row in rows]) for text in chosen]))
    found = resample_crossed({"a": table}, resamples=50, seed=5)["a"]
    np.testing.assert_allclose(found, wanted)


def test_the_median_is_taken_over_the_seeds_of_each_text():
    table = np.array([[0.0, 5.0], [1.0, 6.0], [9.0, 7.0]])
    assert median_over_seeds(table).tolist() == [1.0, 6.0]
    assert mean_over_seeds(table).tolist() == pytest.approx([10 / 3, 6.0])
    found = resample_crossed({"a": table}, centre=median_over_seeds, resamples=500)["a"]
    assert set(np.unique(found)) <= {
        a / 2 + b / 2 for a in (0, 1, 9, 5, 6, 7) for b in (0, 1, 9, 5, 6, 7)
    }


def test_the_order_and_company_of_measures_change_nothing():
    table = DRAW.normal(size=(3, 20))
    other = DRAW.normal(size=(2, 20))
    alone = resample_crossed({"a": table}, resamples=50)["a"]
    both = resample_crossed({"b": other, "a": table}, resamples=50)["a"]
    np.testing.assert_array_equal(alone, both)


def test_coverage_of_the_mean_over_seeds_and_texts():
    """Of many studies about 95 in 100 must hold the truth; few seeds make it somewhat fewer."""
    held, draw = 0, np.random.default_rng(11)
    for study in range(100):
        effects = draw.normal(0, 0.3, 8)[:, None] + draw.normal(0, 0.3, 60)[None]
        table = effects + draw.normal(0, 0.3, (8, 60))
        draws = resample_crossed({"a": table}, resamples=300, seed=study)["a"]
        found = estimate_from_draws(float(table.mean()), draws, n=60)
        held += found.low <= 0 <= found.high
    assert 84 <= held <= 100


def test_only_a_difference_below_the_margin_is_significant():
    inside = np.linspace(-0.005, 0.005, 999)
    assert below_margin_p(inside, 0.01, n=2000) == pytest.approx(0.001)
    assert below_margin_p(inside - 0.02, 0.01, n=2000) == pytest.approx(0.001)
    assert below_margin_p(inside + 0.02, 0.01, n=2000) == 1.0
    wide = np.linspace(-0.05, 0.05, 999)  # no difference to be seen is no equivalence
    assert below_margin_p(wide, 0.01, n=2000) == pytest.approx(0.4, abs=0.01)


def test_texts_that_are_all_alike_prove_little_when_few():
    """At a true gain of the margin the test must not answer in more than about 5 of 100."""
    draw, wrong = np.random.default_rng(5), {}
    for n in (20, 50, 200):
        wrong[n] = 0
        for study in range(60):
            gains = (draw.random(n) < 0.01).astype(float)  # 1 in 100 is right with attention alone
            draws = resample_crossed({"gain": gains[None]}, resamples=200, seed=study)["gain"]
            wrong[n] += below_margin_p(draws, 0.01, n=n) < 0.05
    assert max(wrong.values()) <= 7


def test_undefined_draws_count_as_beyond():
    assert below_margin_p(np.full(99, np.nan), 0.01, n=5000) == 1.0


def test_one_text_has_no_interval():
    found = estimate_from_draws(0.5, np.full(100, 0.5), n=1)
    assert np.isnan([found.low, found.high]).all()


def test_undefined_texts_are_left_out():
    table = DRAW.normal(size=(2, 30))
    holes = table.copy()
    holes[0, 4] = holes[1, 9] = np.nan  # undefined under one seed: left out where that is drawn
    draws = resample_crossed({"a": holes}, resamples=200, seed=1)["a"]
    assert not np.isnan(draws).any()
    one = resample_crossed({"a": holes[:1]}, resamples=200, seed=1)["a"]
    np.testing.assert_allclose(one, bootstrap_means(holes[0][:, None], resamples=200, seed=1)[:, 0])


def test_copies_of_every_text_change_no_draw():
    table = DRAW.normal(size=(3, 20))
    ids = np.arange(20)
    once = resample_crossed({"a": table}, ids, resamples=100)["a"]
    copied = resample_crossed({"a": np.tile(table, 3)}, np.tile(ids, 3), resamples=100)["a"]
    np.testing.assert_allclose(copied, once)


@pytest.mark.parametrize("centre", [mean_over_seeds, median_over_seeds])
def test_the_order_of_the_texts_changes_no_bit(centre):
    table, ids = DRAW.normal(size=(3, 40)), DRAW.integers(25, size=40)
    order = DRAW.permutation(40)
    one = resample_crossed({"a": table}, ids, centre=centre, resamples=100)["a"]
    other = resample_crossed({"a": table[:, order]}, ids[order], centre=centre, resamples=100)["a"]
    assert (one == other).all()


def test_the_number_of_clusters_widens_the_interval():
    draws = DRAW.normal(size=2000)
    many = estimate_from_draws(0.0, draws, n=200)
    few = estimate_from_draws(0.0, draws, n=200, units=8)
    assert few.n == 200
    assert few.high - few.low > 1.1 * (many.high - many.low)
    assert np.isnan(estimate_from_draws(0.0, draws, n=200, units=1).low)
