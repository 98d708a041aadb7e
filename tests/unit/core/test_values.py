"""Tensors in flight: padded rightly, and refused at birth where they break a promise."""

from dataclasses import FrozenInstanceError

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.core.batch import Batch, Encoded, collate
from heedful.core.errors import ShapeError
from heedful.core.values import Explanation, Forward, LinearDecoder


def token_lists(least=0):
    """Texts as lists of (id, whether it carries a word)."""
    tokens = st.tuples(st.integers(1, 99), st.booleans())
    return st.lists(st.lists(tokens, min_size=least, max_size=6), min_size=1, max_size=5)


def encode(texts):
    """The texts as a subject might hand them over, under scattered indices."""
    return [
        Encoded(
            (7 * row) % 5,
            0,
            tuple(one for one, _ in text),
            tuple(at if real else -1 for at, (_, real) in enumerate(text)),
            ("w",) * len(text),
        )
        for row, text in enumerate(texts)
    ]


@given(token_lists(), st.integers(0, 5))
def test_collate_pads_on_the_right_and_nothing_else(texts, pad):
    texts = encode(texts)
    batch = collate(texts, pad_id=pad)
    width = max(len(one.ids) for one in texts)
    assert batch.ids.shape == batch.present.shape == batch.mask.shape == (len(texts), width)
    for row, one in enumerate(texts):
        rest = width - len(one.ids)
        assert batch.ids[row].tolist() == [*one.ids, *[pad] * rest]
        assert batch.present[row].tolist() == [True] * len(one.ids) + [False] * rest
        assert batch.mask[row].tolist() == [w >= 0 for w in one.word] + [False] * rest
    assert batch.instances == tuple(one.index for one in texts)
    assert batch.lengths.tolist() == [one.explained_tokens for one in texts]
    assert len(batch) == len(texts)


@given(token_lists(least=1), st.data())
def test_without_is_deletion_from_a_list(texts, data):
    texts = encode(texts)
    batch = collate(texts)
    places = [(row, at) for row, one in enumerate(texts) for at in range(len(one.ids))]
    chosen = data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=8))
    rows, positions = (torch.tensor(one) for one in zip(*chosen, strict=True))
    shorter = batch.delete_tokens(rows, positions)
    assert shorter.ids.shape == (len(chosen), batch.ids.shape[1] - 1)
    for number, (row, at) in enumerate(chosen):
        for whole, part in (
            (batch.ids, shorter.ids),
            (batch.present, shorter.present),
            (batch.mask, shorter.mask),
        ):
            want = whole[row].tolist()
            del want[at]
            assert part[number].tolist() == want
        assert shorter.instances[number] == batch.instances[row]


def test_explained_counts_the_tokens_that_carry_words():
    assert Encoded(0, 0, (2, 8, 8, 9, 3), (-1, 0, 0, 1, -1), ("ab", "c")).explained_tokens == 3


def batch(ids=((1, 2),), present=((True, True),), mask=((True, True),), instances=(0,)):
    return Batch(torch.tensor(ids), torch.tensor(present), torch.tensor(mask), instances)


def test_a_mask_over_padding_is_refused():
    with pytest.raises(ShapeError) as caught:
        batch(present=((True, False),))
    assert str(caught.value) == "The mask of a batch covers padding; mask must lie inside present."


def test_a_token_may_be_present_and_not_explained():
    assert batch(mask=((True, False),)).lengths.tolist() == [1]


@pytest.mark.parametrize("instances", [(), (0, 1)])
def test_every_text_is_an_instance(instances):
    with pytest.raises(ShapeError) as caught:
        batch(instances=instances)
    assert str(caught.value) == f"1 texts came with {len(instances)} instances."


@pytest.mark.parametrize("score", [0.5, -0.5, float("nan")])
def test_a_score_on_padding_is_refused(score):
    with pytest.raises(ShapeError) as caught:
        Explanation("guess", torch.tensor([[1.0, score]]), torch.tensor([[True, False]]))
    assert str(caught.value) == "guess scored padding; fill with 0 where mask is False."


@pytest.mark.parametrize("score", [float("nan"), float("inf"), float("-inf")])
def test_a_score_that_is_not_finite_is_refused(score):
    with pytest.raises(ShapeError) as caught:
        Explanation("guess", torch.tensor([[1.0, score]]), torch.tensor([[True, True]]))
    assert str(caught.value) == "guess gave a score that is not finite."


def test_values_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        batch().instances = (1,)


def test_forward_knows_its_probabilities_and_its_choice():
    logits = torch.tensor([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]])
    forward = Forward(logits, torch.ones(2, 1), torch.ones(2, 1, 4))
    assert forward.predicted.tolist() == [1, 0]
    want = [[torch.exp(z) / torch.exp(row).sum() for z in row] for row in logits]
    torch.testing.assert_close(forward.probabilities, torch.tensor(want))


def decoder():
    draw = torch.Generator().manual_seed(0)
    contributions = torch.randn(2, 3, 4, generator=draw, dtype=torch.float64)
    return LinearDecoder(contributions, torch.randn(4, generator=draw, dtype=torch.float64))


def test_a_linear_decoder_is_the_weighted_sum_of_contributions_and_bias():
    linear, weights = decoder(), torch.rand(5, 2, 3, dtype=torch.float64)
    found = linear(weights)
    assert found.shape == (5, 2, 4)
    for k in range(5):
        for b in range(2):
            for c in range(4):
                want = sum(weights[k, b, t] * linear.contributions[b, t, c] for t in range(3))
                assert float(found[k, b, c]) == pytest.approx(float(want + linear.bias[c]))


def test_difference_is_what_one_token_alone_would_say():
    linear = decoder()
    for t in range(3):
        alone = linear(torch.eye(3, dtype=torch.float64)[t].expand(2, 3))
        torch.testing.assert_close(linear.difference(3, 1)[:, t], alone[:, 3] - alone[:, 1])
