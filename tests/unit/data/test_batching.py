"""Batches: every text once, none too wide."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.core.batch import Encoded
from heedful.core.errors import ConfigError
from heedful.data import batches
from heedful.data.batching import max_batched_length


def encoded(lengths):
    return [Encoded(i, 0, (1,) * n, (0,) * n, ("a",)) for i, n in enumerate(lengths)]


@given(st.lists(st.integers(0, 30)), st.integers(1, 60))
def test_every_text_once_sorted_and_within_bounds(lengths, most):
    found = list(batches(encoded(lengths), max_batch_tokens=most))
    flat = [index for batch in found for index in batch]
    assert flat == sorted(range(len(lengths)), key=lambda i: (lengths[i], i))
    assert all(found)
    for batch in found:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= most


@given(st.lists(st.integers(1, 30), min_size=2), st.integers(1, 60))
def test_no_batch_could_take_the_next_text(lengths, most):
    found = list(batches(encoded(lengths), max_batch_tokens=most))
    for batch, after in pairwise(found):
        after_length = lengths[after[0]]
        full = (len(batch) + 1) * after_length > most
        assert full or after_length > max_batched_length(lengths[batch[0]])


@given(st.lists(st.integers(1, 300), min_size=1))
def test_little_of_a_batch_is_padding(lengths):
    for batch in batches(encoded(lengths), max_batch_tokens=10**6):
        shortest, longest = lengths[batch[0]], lengths[batch[-1]]
        assert longest <= 1.25 * shortest + 4


def test_a_bound_below_one_is_an_error_at_once():
    with pytest.raises(ConfigError, match="max_batch_tokens must be at least 1; got 0"):
        batches([], max_batch_tokens=0)
