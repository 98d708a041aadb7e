"""Splits drawn by a cleaning: sizes as scikit-learn has them, rows once for all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split

from heedful.data.cleaning.filters import Selection
from heedful.data.cleaning.split_ratios import Shares
from heedful.data.cleaning.steps import Cleaning

CLASSES = st.lists(st.sampled_from("abb"), min_size=20, max_size=200).filter(
    lambda labels: min(labels.count("a"), labels.count("b")) >= 5
)


def sizes(mask, labels):
    return {one: sum(np.array(labels)[mask] == one) for one in "ab"}


@given(CLASSES)
def test_a_pool_falls_apart_in_sizes_like_theirs(labels):
    shares = Shares(dev=0.15, test=0.2, pooled=True, by_class=True)
    parts = {one: shares.split_mask(one, labels, purpose="x") for one in ("train", "dev", "test")}
    assert np.array_equal(sum(part.astype(int) for part in parts.values()), np.ones(len(labels)))
    rest, test = train_test_split(labels, test_size=0.2, stratify=labels, random_state=0)
    train, dev = train_test_split(rest, test_size=0.15, stratify=rest, random_state=0)
    for name, theirs in (("train", train), ("dev", dev), ("test", test)):
        assert parts[name].sum() == len(theirs)
        ours = sizes(parts[name], labels)
        assert all(
            abs(ours[one] - theirs.count(one)) <= 1 for one in "ab"
        )  # halves may fall anyhow


@given(st.integers(6, 300))
def test_dev_is_taken_out_of_train_and_some_of_test_is_kept(count):
    shares, labels = Shares(dev=0.2, test=0.2), ["a"] * count
    train, dev, test = (
        shares.split_mask(one, labels, purpose="x") for one in ("train", "dev", "test")
    )
    theirs = train_test_split(range(count), test_size=0.2)
    assert (train.sum(), dev.sum()) == tuple(map(len, theirs))
    assert not (train & dev).any()
    assert test.sum() == len(train_test_split(range(count), train_size=0.2)[0])


def test_rows_are_drawn_once_for_all_and_mixed():
    shares = Shares(test=0.2, pooled=True)
    one, same, other = (
        shares.split_mask("test", ["a"] * 500, purpose=purpose) for purpose in ("x", "x", "y")
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    assert 0 < one[:250].sum() < 100
    assert shares.splits == ("train", "test")


BOUNDS = {
    "longer_than": st.none() | st.integers(0, 4),
    "shorter_than": st.none() | st.integers(3, 9),
    "fewer_than": st.none() | st.integers(3, 9),
    "own_ends": st.booleans(),
}


def by_hand(one, lengths):
    """The rule, row by row."""
    left = [n for n in lengths if n > 0 and (one.fewer_than is None or n < one.fewer_than)]
    low, high = one.longer_than, one.shorter_than
    if one.own_ends and left:
        low = min(left) if low is None else low
        high = max(left) if high is None else high
    return [n for n in left if (low is None or n > low) and (high is None or n < high)]


@given(st.lists(st.integers(0, 9), max_size=30), st.fixed_dictionaries(BOUNDS))
def test_lengths_are_between_both_bounds_and_all_rows_accounted_for(lengths, bounds):
    one = Cleaning("mine", **bounds)
    kept, left = Selection(one).select_rows(np.array(lengths, dtype=np.int64), ["a"] * len(lengths))
    assert np.array(lengths, dtype=np.int64)[kept].tolist() == by_hand(one, lengths)
    assert left.total() + kept.sum() == len(lengths)
    assert all(left.values())


def test_reasons_are_told_one_by_one():
    one = Cleaning("mine", longer_than=2, own_ends=True, fewer_than=50)
    kept, left = Selection(one).select_rows(np.array([0, 1, 2, 3, 4, 9, 9, 50]), ["a"] * 8)
    assert kept.tolist() == [False] * 3 + [True, True] + [False] * 3
    assert left == {
        "without a word": 1,
        "of 50 words or more": 1,
        "of 2 words or fewer": 2,
        "longest of the split (9 words)": 2,
    }


@pytest.mark.parametrize("part", ["train", "dev", "test"])
def test_bounds_are_laid_on_each_part(part):
    one = Cleaning("paper/mine", own_ends=True, shares=Shares(0.3, 0.3, pooled=True))
    lengths, labels = np.arange(10, 110), ["a"] * 100
    mine = one.shares.split_mask(part, labels, purpose="split of mine")
    kept, left = Selection(one, part).select_rows(lengths, labels)
    assert kept.sum() == mine.sum() - 2 == left.total() + mine.sum() - 4
    assert not (kept & ~mine).any()
    assert lengths[mine & ~kept].tolist() == [lengths[mine].min(), lengths[mine].max()]
