"""The influence of words against plain loops over permutations, and the scores of rankings."""

from itertools import combinations, permutations
from math import factorial

import numpy as np
import pytest

from heedful.checks.influence.orders import (
    Influence,
    additions_in_orders,
    additions_near_full,
    draw_orders,
    every_set,
    exact_influence,
    mean_of_top,
    pair_agreement,
    pair_stakes,
    tied_ranks,
    top_set,
)

RANDOM = np.random.default_rng(3)


def output(sets):
    """A made-up output with redundancy, interaction and a word that never matters."""
    a, b, c, d = (sets[..., word].astype(float) for word in range(4))
    return 0.2 + 0.5 * np.maximum(a, b) + 0.2 * c * d + 0.05 * c


def influence_by_permutations(words):
    """m over all orders, one word and one order after the other."""
    total = np.zeros(words)
    for order in permutations(range(words)):
        for place in range(1, words):
            sets = np.zeros((2, words), dtype=bool)
            sets[:, order[:place]] = True
            sets[1, order[place]] = True
            before, after = output(sets)
            total[order[place]] += abs(after - before)
    # a word is first, with no text before it, in one of n orders: those are left out
    return total / factorial(words) / (1 - 1 / words)


def drawn_influence(orders):
    additions = additions_in_orders(orders)
    whole = float(output(np.ones(orders.shape[1], dtype=bool)))
    return Influence.of(additions, output(additions.sets), whole)


@pytest.mark.parametrize("words", [4, 5, 6])
def test_enumeration_equals_the_mean_over_all_permutations(words):
    exact = exact_influence(output(every_set(words)), words)
    assert np.allclose(exact, influence_by_permutations(words), atol=1e-14)
    assert exact[4:] == pytest.approx(0.0)
    assert exact[0] == pytest.approx(exact[1])


def test_drawn_orders_approach_the_enumeration():
    exact = exact_influence(output(every_set(5)), 5)
    drawn = drawn_influence(draw_orders(5, 4000, 0, "text"))
    assert np.allclose(drawn.whole, exact, atol=0.01)
    assert drawn.whole[4] == 0.0


def test_halves_hold_whole_pairs_and_average_to_the_whole():
    orders = draw_orders(5, 8, 1, "text")
    drawn = drawn_influence(orders)
    counts = [np.bincount(orders[half::4, 1:].ravel(), minlength=5) for half in range(4)]
    first, second = counts[0] + counts[1], counts[2] + counts[3]
    mean = (drawn.halves[0] * first + drawn.halves[1] * second) / (first + second)
    assert np.allclose(mean, drawn.whole)


def test_pairs_nearly_reverse_each_other_and_no_word_comes_first_in_both():
    pairs = draw_orders(9, 2000, 1, "text").reshape(-1, 2, 9)
    assert (np.sort(pairs) == np.arange(9)).all()
    assert (pairs[:, 0, 0] != pairs[:, 1, 0]).all()
    same = (pairs[:, 0] == pairs[:, 1, ::-1]).sum(1)
    assert same.min() >= 9 - 4  # two swaps move four words at most


def test_the_word_that_comes_first_has_any_other_place_in_the_other_order():
    """Or influence would be biased: the change where a word comes last would count too often."""
    pairs = draw_orders(6, 12000, 3, "text").reshape(-1, 2, 6)
    places = pairs.argsort(2)
    for one, other in ((0, 1), (1, 0)):
        first = places[:, one] == 0
        found = np.bincount(places[:, other][first], minlength=6)
        assert found[0] == 0
        assert np.abs(found[1:] / 6000 - 0.2).max() < 0.03


@pytest.mark.parametrize("half", [None, 0])
def test_drawn_influence_is_unbiased(half):
    """Words that each suffice: most of what they change, they change early or late."""
    sets = every_set(6)
    p = 0.2 + 0.6 * sets[:, :2].any(1) + 0.02 * sets.sum(1)
    exact, total = exact_influence(p, 6), np.zeros(6)
    for text in range(4000):
        added = additions_in_orders(draw_orders(6, 4, 0, f"{text}"))
        found = Influence.of(added, p[added.sets @ 2 ** np.arange(6) - 1], p[-1])
        total += found.whole if half is None else found.halves[half]
    assert np.abs(total / 4000 / exact - 1).max() < 0.03


def test_more_orders_begin_with_the_same_ones():
    assert (draw_orders(6, 16, 2, "text")[:4] == draw_orders(6, 4, 2, "text")).all()
    assert (draw_orders(6, 4, 2, "text") != draw_orders(6, 4, 2, "other")).any()


def test_near_full_sets_hold_most_words_and_add_every_word_as_often():
    additions = additions_near_full(17, 0, "text")
    assert additions.sets.sum(1).min() >= 0.7 * 17
    before = additions.sets[additions.before]
    after = np.vstack([additions.sets, np.ones(17, dtype=bool)])[additions.after]
    assert not before[np.arange(len(additions.added)), additions.added].any()
    assert [*zip(*np.nonzero(after ^ before), strict=True)] == [*enumerate(additions.added)]
    assert set(np.bincount(additions.added)) == {2}


def test_agreement_of_a_ranking_by_a_plain_loop():
    m, scores = RANDOM.random(9), RANDOM.integers(0, 4, 9).astype(float)
    agreed = sum(
        np.sign(scores[i] - scores[j]) * (m[i] - m[j]) for i, j in combinations(range(9), 2)
    )
    stakes = sum(abs(m[i] - m[j]) for i, j in combinations(range(9), 2))
    assert pair_agreement(tied_ranks(scores), m) == pytest.approx(agreed)
    assert pair_stakes(m) == pytest.approx(stakes)
    assert pair_agreement(tied_ranks(m), m) == pytest.approx(stakes)
    assert pair_agreement(np.zeros(9), m) == 0.0


def test_the_mean_agreement_of_all_rankings_is_zero():
    m = RANDOM.random(5)
    found = [pair_agreement(np.array(order, float), m) for order in permutations(range(5))]
    assert np.mean(found) == pytest.approx(0.0, abs=1e-15)


def test_ties_are_averaged():
    m = np.array([0.4, 0.2, 0.0])
    assert mean_of_top(tied_ranks(np.array([1.0, 1.0, 0.0])), m) == pytest.approx(0.3)
    assert tied_ranks(np.array([0.3, 0.3 + 1e-9, 0.1])).tolist() == [1, 1, 0]
    chosen = [top_set(np.array([1.0, 1.0, 0.0]), 1, RANDOM.random(3)) for _ in range(400)]
    assert np.mean(chosen, axis=0)[:2] == pytest.approx([0.5, 0.5], abs=0.1)
