"""Labels: one class name for every way to write it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.labels import build_label_index, is_missing, parse_label, sort_labels


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (1, "1"),
        (1.0, "1"),
        ("1", "1"),
        ("1.00", "1"),
        (-0.0, "0"),
        (np.int64(3), "3"),
        (np.float32(2.0), "2"),
        (np.bool_(True), "true"),
        (False, "false"),
        (" good ", "good"),
        ("version 1.0", "version 1.0"),
        ("0.5", "0.5"),
        (0.5, None),
        ({}, None),
        (np.zeros(2), None),
    ],
)
def test_names(value, name):
    assert parse_label(value) == name


def test_missing():
    assert all(map(is_missing, (None, float("nan"), np.float32("nan"), "", "\t")))
    assert not any(map(is_missing, (0, False, 0.0, "0", [])))


def test_order():
    assert sort_labels(["10", "-1", "9"]) == ("-1", "9", "10")
    assert sort_labels(["b", "10", "a", "9"]) == ("10", "9", "a", "b")
    assert sort_labels(["9" * 5000, "1"]) == ("1", "9" * 5000)


@given(st.sets(st.text(min_size=1), min_size=1))
def test_every_label_finds_itself(names):
    labels = sort_labels(names)
    find = build_label_index(labels)
    assert [find(name) for name in labels] == list(range(len(labels)))


def test_other_spellings():
    find = build_label_index(("LABEL_0", "LABEL_1"))
    assert [find(n) for n in ("label_1", "0", "1", "2", "-1", "good")] == [
        1,
        0,
        1,
        None,
        None,
        None,
    ]
    assert build_label_index(("a", "A"))("á") is None
    assert build_label_index(("good", "GOOD"))("Good") is None  # ambiguous without regard to case
    assert build_label_index(("1", "2"))("0") is None  # integers are names here, not positions
