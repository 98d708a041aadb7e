import doctest
from itertools import product
from math import isnan, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.numerics.stats import classification_scores
from heedful.numerics.stats.classification_scores import accuracy, f1, roc_auc

labels = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30)
scored = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1)), min_size=1, max_size=30)


def plain_f1(pairs, positive):
    true = sum(p == g == positive for p, g in pairs)
    called, gold = (sum(pair[side] == positive for pair in pairs) for side in (0, 1))
    if not called and not gold:
        return nan
    precision, recall = true / called if called else 0.0, true / gold if gold else 0.0
    return 2 * precision * recall / (precision + recall) if true else 0.0


def plain_roc_auc(pairs):
    positives, negatives = ([s for s, g in pairs if g == which] for which in (1, 0))
    wins = [(a > b) + 0.5 * (a == b) for a, b in product(positives, negatives)]
    return sum(wins) / len(wins) if wins else nan


@given(labels)
def test_scores_are_those_of_plain_counting(pairs):
    predicted, gold = np.array(pairs).T
    assert accuracy(predicted, gold) == pytest.approx(sum(p == g for p, g in pairs) / len(pairs))
    for positive in range(3):
        found = f1(predicted, gold, positive=positive)
        assert found == pytest.approx(plain_f1(pairs, positive), nan_ok=True)


@given(scored)
def test_roc_auc_is_that_of_all_pairs(pairs):
    scores, gold = np.array(pairs).T
    found = roc_auc(scores / 7, gold)
    assert found == pytest.approx(plain_roc_auc(pairs), nan_ok=True)
    turned = roc_auc(scores / 7, gold, positive=0)
    assert turned == pytest.approx(1 - found, nan_ok=True)


def test_nothing_to_score_has_no_score():
    none = np.zeros(0, dtype=np.int64)
    assert all(isnan(one(none, none)) for one in (accuracy, f1))
    assert isnan(roc_auc(np.array([0.1, 0.9]), np.array([1, 1])))
    assert isnan(f1(np.array([0, 0]), np.array([0, 0])))


def test_examples_in_documentation():
    found = doctest.testmod(classification_scores)
    assert found.attempted
    assert not found.failed
