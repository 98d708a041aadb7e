import doctest
from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from heedful.numerics.stats import multiple_testing
from heedful.numerics.stats.multiple_testing import benjamini_hochberg_adjusted, holm_adjusted

# Benjamini & Hochberg (1995), section 4: fifteen p-values, of which their procedure rejects the
# four smallest at 0.05, and Bonferroni's (Holm's too) the three smallest.
PUBLISHED = np.array(
    [
        [0.0001, 0.0004, 0.0019, 0.0095, 0.0201],
        [0.0278, 0.0298, 0.0344, 0.0459, 0.3240],
        [0.4262, 0.5719, 0.6528, 0.7590, 1.0000],
    ]
).ravel()
p_values = st.lists(st.one_of(st.floats(0, 1), st.floats(0, 0.1), st.just(nan)), max_size=30)


def holm(p, level=0.05):
    """Which p-values Holm's correction rejects."""
    return (np.array(holm_adjusted(p.ravel().tolist())) <= level).reshape(p.shape)


def benjamini_hochberg(p, level=0.05):
    """Which p-values Benjamini and Hochberg's correction rejects."""
    return (np.array(benjamini_hochberg_adjusted(p.ravel().tolist())) <= level).reshape(p.shape)


def plain_benjamini_hochberg(p, level):
    defined = sorted(one for one in p if one == one)
    passed = [one for i, one in enumerate(defined, 1) if one * len(defined) / i <= level]
    return [one <= max(passed, default=-1.0) for one in p]


def plain_holm(p, level):
    order = sorted((one, place) for place, one in enumerate(p) if one == one)
    rejected = [False] * len(p)
    for i, (one, place) in enumerate(order):
        if one * (len(order) - i) > level:
            break
        rejected[place] = True
    return rejected


def test_the_published_example():
    assert benjamini_hochberg(PUBLISHED).sum() == 4
    assert holm(PUBLISHED).sum() == 3


@given(p_values, st.sampled_from((0.01, 0.05, 0.2)))
def test_corrections_are_those_of_plain_loops(p, level):
    array = np.array(p, dtype=np.float64)
    assert benjamini_hochberg(array, level).tolist() == plain_benjamini_hochberg(p, level)
    assert holm(array, level).tolist() == plain_holm(p, level)


@given(p_values)
def test_benjamini_hochberg_is_that_of_scipy_and_rejects_whatever_holm_does(p):
    defined = np.array([one for one in p if one == one] + [0.5])
    found = benjamini_hochberg(defined)
    assert (found == (stats.false_discovery_control(defined) <= 0.05)).all()
    assert (found | ~holm(defined)).all()


@pytest.mark.parametrize("correct", [benjamini_hochberg, holm])
def test_undefined_p_values_are_not_counted(correct):
    with_gaps = np.insert(PUBLISHED, [0, 3, 15], nan)
    found = correct(with_gaps)
    assert not found[np.isnan(with_gaps)].any()
    assert (found[~np.isnan(with_gaps)] == correct(PUBLISHED)).all()
    assert not correct(np.array([nan, nan])).any()
    assert correct(np.zeros(0)).shape == (0,)


@pytest.mark.parametrize("correct", [benjamini_hochberg, holm])
def test_the_level_itself_is_significant(correct):
    assert correct(np.array([0.025, 0.05]), 0.05).all()


@pytest.mark.parametrize("correct", [benjamini_hochberg, holm])
def test_a_table_of_p_values_keeps_its_shape(correct):
    table = PUBLISHED.reshape(5, 3)
    assert (correct(table).ravel() == correct(PUBLISHED)).all()


def test_examples_in_documentation():
    found = doctest.testmod(multiple_testing)
    assert found.attempted
    assert not found.failed
