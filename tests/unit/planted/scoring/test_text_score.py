"""The measures of one text, each against an example worked out by hand."""

import doctest

import numpy as np
import pytest
import torch

from heedful.core.errors import ShapeError
from heedful.core.rng import generator
from heedful.planted.influence.kind import KnownText
from heedful.planted.influence.proof import pairs_of_tiers
from heedful.planted.scoring import text_score
from heedful.planted.scoring.text_score import score_text

SIX = KnownText("a b c d e f", tiers=((1,), (3, 4)))  # b first, then d and e; a, c, f never matter


def score(*scores, known=SIX):
    return score_text(torch.tensor(scores, dtype=torch.float64), known)


def test_examples_in_the_docstrings():
    found = doctest.testmod(text_score, extraglobs={"torch": torch})
    assert (found.failed, found.attempted) == (0, 2)


def test_a_perfect_ranking_has_every_measure_1():
    found = score(0.0, 0.9, 0.1, 0.5, -0.6, 0.2)  # the sign does not count
    assert (found.top_word, found.top_set, found.order) == (1.0, 1.0, 1.0)
    assert found.top_word_chance == pytest.approx(1 / 6)
    assert found.top_set_chance == pytest.approx(3 / 6)


def test_a_ranking_worked_out_by_hand():
    # top three: a, d, b: two of the three that matter
    # pairs: b over d no, over e yes, over a no, over c and f yes: 3 of 5
    # d over a no, c yes, f yes; e over a no, c yes, f tied: 3.5 of 6
    found = score(0.9, 0.5, 0.0, 0.7, 0.1, 0.1)
    assert (found.top_word, found.top_set) == (0.0, pytest.approx(2 / 3))
    assert found.order == pytest.approx((3 + 3.5) / 11)


def test_a_reversed_ranking_has_every_measure_0():
    known = KnownText("a b c d e", tiers=((0,), (1,)))
    found = score(0.1, 0.2, 0.9, 0.8, 0.7, known=known)
    assert (found.top_word, found.top_set, found.order) == (0.0, 0.0, 0.0)


def test_equal_scores_rank_nothing_and_reach_chance():
    found = score(*[0.3] * 6)
    assert found.top_word == pytest.approx(found.top_word_chance)
    assert found.top_set == pytest.approx(found.top_set_chance)
    assert found.order == 0.5


def test_tied_words_share_the_places_left():
    found = score(0.5, 0.9, 0.5, 0.5, 0.5, 0.1)  # one sure place, two of four tied words
    assert found.top_set == pytest.approx((1 + 2 * 2 / 4) / 3)


def test_random_scores_are_at_chance_on_average():
    draw = generator(0, "random scores")
    found = [score(*draw.random(6)) for _ in range(4000)]
    for name, chance in (("top_word", 1 / 6), ("top_set", 0.5), ("order", 0.5)):
        assert np.mean([getattr(one, name) for one in found]) == pytest.approx(chance, abs=0.025)


def test_a_text_in_which_no_word_or_every_word_matters_is_not_scored():
    nothing = score(0.1, 0.2, known=KnownText("a b", tiers=()))
    assert np.isnan([nothing.top_word, nothing.top_set, nothing.order]).all()
    everything = score(0.1, 0.2, known=KnownText("a b", tiers=((1,), (0,))))
    assert np.isnan(everything.top_set)
    assert (everything.top_word, everything.order) == (1.0, 1.0)


def test_order_counts_the_pairs_that_the_proof_of_a_kind_counts():
    draw = generator(0, "pairs")
    values = draw.integers(0, 4, 6).astype(float)
    signs = [np.sign(values[a] - values[b]) for a, b in pairs_of_tiers(SIX)]
    assert score(*values).order == pytest.approx(np.mean(signs) / 2 + 0.5)


@pytest.mark.parametrize("scores", [[0.1] * 5, [0.1] * 5 + [float("nan")]])
def test_each_word_needs_a_finite_score(scores):
    with pytest.raises(ShapeError, match="6 words needs as many finite scores"):
        score(*scores)
