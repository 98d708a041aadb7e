"""The sets of words on which long texts are proved."""

import numpy as np
import pytest

from heedful.planted.influence.kind import KnownText
from heedful.planted.influence.proof import DRAWN_SETS, ProvedBound, _draw_sets

LONG = " ".join(f"w{number}" for number in range(30))


def inside(known):
    sets = _draw_sets(known, seed=0)
    assert sets.shape == (DRAWN_SETS, 30)
    assert sets.any(1).all()
    return sets[: DRAWN_SETS // 2, sorted(known.decisive)]


def test_every_set_of_up_to_four_words_that_matter_is_tried():
    some = inside(KnownText(LONG, tiers=((3, 17), (5,), (29,))))
    assert len(np.unique(some, axis=0)) == 16


@pytest.mark.parametrize("count", [5, 12, 29])
def test_of_more_words_sets_with_none_one_and_many_are_tried(count):
    sizes = inside(KnownText(LONG, tiers=(tuple(range(count)),))).sum(1)
    quarter = DRAWN_SETS // 8
    assert (sizes == 0).sum() >= quarter
    assert (sizes == 1).sum() >= quarter
    assert (sizes > 1).any()


def test_a_bound_without_a_value_does_not_hold():
    assert not ProvedBound("x", float("nan"), 1.0, above=True).holds
    assert not ProvedBound("x", float("nan"), 1.0, above=False).holds
    assert ProvedBound("x", np.float64(1.0), 1.0, above=True).holds is True
