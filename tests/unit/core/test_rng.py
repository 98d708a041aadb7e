"""Random draws belong to (seed, purpose, instance), and to nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from heedful.core.rng import WHOLE_RUN, generator, normal_keys, uniform_keys

BOTH = pytest.mark.parametrize("keys", [uniform_keys, normal_keys])


@BOTH
@given(rows=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 9)), min_size=1, max_size=6))
def test_a_row_is_the_same_alone_and_in_any_batch(keys, rows):
    instances, lengths = zip(*rows, strict=True)
    together = keys(3, "shuffle", instances, draws=4, lengths=lengths)
    assert together.shape == (len(rows), 4, max(lengths))
    for row, (instance, length) in enumerate(rows):
        alone = keys(3, "shuffle", [instance], draws=4, lengths=[length])
        np.testing.assert_array_equal(together[row, :, :length], alone[0])


@BOTH
def test_order_of_the_batch_does_not_matter(keys):
    ahead = keys(0, "shuffle", [5, 9], draws=3, lengths=[4, 2])
    turned = keys(0, "shuffle", [9, 5], draws=3, lengths=[2, 4])
    np.testing.assert_array_equal(ahead, turned[::-1])


@BOTH
@pytest.mark.parametrize(
    ("seed", "purpose", "instance"), [(1, "shuffle", 7), (0, "noise", 7), (0, "shuffle", 8)]
)
def test_seed_purpose_and_instance_each_change_the_draw(keys, seed, purpose, instance):
    one = keys(0, "shuffle", [7], draws=2, lengths=[5])
    other = keys(seed, purpose, [instance], draws=2, lengths=[5])
    assert not np.isin(one, other).any()


@BOTH
def test_draws_of_one_instance_differ(keys):
    drawn = keys(0, "shuffle", [7], draws=20, lengths=[5])
    assert len(np.unique(drawn)) == 100


def test_beyond_its_length_a_row_holds_ones_or_zeros():
    uniform = uniform_keys(0, "shuffle", [1, 2], draws=3, lengths=[1, 6])
    normal = normal_keys(0, "shuffle", [1, 2], draws=3, lengths=[1, 6])
    assert (uniform[0, :, 1:] == 1.0).all()
    assert (normal[0, :, 1:] == 0.0).all()


@BOTH
def test_no_instances_give_no_rows(keys):
    assert keys(0, "shuffle", [], draws=3, lengths=[]).shape == (0, 3, 0)


@BOTH
def test_every_instance_has_a_length(keys):
    with pytest.raises(ValueError, match="zip"):
        keys(0, "shuffle", [1, 2], draws=3, lengths=[1])


def test_uniform_draws_are_uniform_and_below_one():
    drawn = uniform_keys(0, "shuffle", range(200), draws=10, lengths=[10] * 200).ravel()
    assert 0.0 <= drawn.min() < drawn.max() < 1.0
    assert stats.kstest(drawn, "uniform").pvalue > 0.01


def test_normal_draws_are_standard_normal():
    drawn = normal_keys(0, "shuffle", range(200), draws=10, lengths=[10] * 200).ravel()
    assert stats.kstest(drawn, "norm").pvalue > 0.01


def test_neighbouring_instances_are_not_correlated():
    drawn = uniform_keys(0, "shuffle", range(400), draws=1, lengths=[1] * 400)[:, 0, 0]
    assert stats.pearsonr(drawn[:-1], drawn[1:]).pvalue > 0.01


def test_the_whole_data_set_has_a_stream_of_its_own():
    whole = generator(0, "bootstrap").random(4)
    np.testing.assert_array_equal(whole, generator(0, "bootstrap", WHOLE_RUN).random(4))
    assert not np.isin(whole, generator(0, "bootstrap", 0).random(4)).any()


def test_the_global_stream_is_left_where_it_was():
    before = np.random.get_state()[1].tolist()
    generator(0, "shuffle", 3).random(4)
    uniform_keys(0, "shuffle", [1], draws=2, lengths=[3])
    assert np.random.get_state()[1].tolist() == before
