"""What adversaries and deceivers go down, against sums written out by hand."""

import math

import pytest
import torch

from heedful.training.objectives import adversary_loss, attention_kl, hiding_penalty

OWN = [[0.7, 0.2, 0.1, 0.0], [0.25, 0.75, 0.0, 0.0]]
BASE = [[0.1, 0.3, 0.6, 0.0], [0.5, 0.5, 0.0, 0.0]]
LENGTHS = (3, 2)
MASK = torch.tensor([[place < length for place in range(4)] for length in LENGTHS])


def by_hand(one, other):
    return [
        sum(p * math.log(p / q) for p, q in zip(a[:n], b[:n], strict=True) if p > 0)
        for a, b, n in zip(one, other, LENGTHS, strict=True)
    ]


def tensors(*many):
    return tuple(torch.tensor(one, dtype=torch.float64) for one in many)


def test_kl_is_the_sum_and_knows_its_direction():
    own, base = tensors(OWN, BASE)
    assert attention_kl(own, base, MASK).tolist() == pytest.approx(by_hand(OWN, BASE))
    assert attention_kl(base, own, MASK).tolist() == pytest.approx(by_hand(BASE, OWN))
    assert by_hand(OWN, BASE)[0] != pytest.approx(by_hand(BASE, OWN)[0], abs=0.05)


def test_padding_gives_neither_nan_nor_slope():
    """The published loss is NaN here on today's torch: 0 · log 0."""
    own, base = tensors(OWN, BASE)
    old = torch.nn.functional.kl_div(base.log(), own, reduction="none").sum(-1)
    assert old.isnan().all()  # the trap is there
    own.requires_grad_()
    attention_kl(own, base, MASK).sum().backward()
    assert own.grad.isfinite().all()
    assert not own.grad[~MASK].any()
    # d/dp of p log(p/q) is log(p/q) + 1
    assert float(own.grad[0, 0]) == pytest.approx(math.log(7.0) + 1)


def test_weights_that_underflow_are_finite_both_ways():
    mask = torch.ones(1, 2, dtype=torch.bool)
    own, base = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    for one, other in ((own, base), (base, own)):
        moved = one.clone().requires_grad_()
        found = attention_kl(moved, other, mask)
        found.sum().backward()
        assert found.isfinite().all()
        assert 80 < float(found.detach()) < 90  # −log of the smallest normal float32
        assert moved.grad.isfinite().all()


def test_the_adversary_goes_down_tvd_and_up_kl():
    outputs = tensors([[0.9, 0.1], [0.4, 0.6]], [[0.6, 0.4], [0.4, 0.6]])
    own, base = tensors(OWN, BASE)
    found = adversary_loss(outputs, (own, base), MASK, weight=0.5)
    forward = by_hand(OWN, BASE)
    # TVD of two classes is |Δp|, not half of it
    assert found.tolist() == pytest.approx([0.3 - 0.5 * forward[0], 0.0 - 0.5 * forward[1]])
    turned = adversary_loss(outputs, (own, base), MASK, weight=0.5, reverse=True)
    backward = by_hand(BASE, OWN)
    assert turned.tolist() == pytest.approx([0.3 - 0.5 * backward[0], -0.5 * backward[1]])


def test_tvd_of_three_classes_is_half_the_sum():
    outputs = tensors([[0.5, 0.3, 0.2]], [[0.2, 0.3, 0.5]])
    same = torch.tensor([[1.0]], dtype=torch.float64)
    mask = torch.ones(1, 1, dtype=torch.bool)
    assert adversary_loss(outputs, (same, same), mask, weight=1.0).tolist() == pytest.approx([0.3])


ROWS = [[[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], [[0.2, 0.8, 0.0], [0.6, 0.4, 0.0]]]
HIDDEN = [[False, False, True], [False, False, False]]


def test_the_penalty_is_the_logarithm_of_what_is_left():
    rows, hidden = torch.tensor(ROWS, dtype=torch.float64), torch.tensor(HIDDEN)
    mean = (-math.log(0.8) - math.log(0.2)) / 2
    assert hiding_penalty(rows, hidden).tolist() == pytest.approx([mean, 0.0])
    assert hiding_penalty(rows, hidden, worst=True).tolist() == pytest.approx([-math.log(0.2), 0.0])


def test_a_text_without_hidden_words_has_no_slope_and_one_of_hidden_words_alone_no_infinity():
    rows = torch.tensor([[[1.0, 0.0]], [[0.4, 0.6]]], requires_grad=True)
    hidden = torch.tensor([[True, False], [False, False]])
    found = hiding_penalty(rows, hidden)
    found.sum().backward()
    assert found.tolist() == pytest.approx([-math.log(torch.finfo(rows.dtype).tiny), 0.0])
    assert not rows.grad[1].any()
    assert rows.grad.isfinite().all()


def test_the_slope_is_there_where_hiding_is_hardest():
    scores = torch.tensor([20.0, 0.0], requires_grad=True)
    hiding_penalty(scores.softmax(-1)[None, None], torch.tensor([[True, False]])).sum().backward()
    assert float(scores.grad[0]) == pytest.approx(1.0, abs=1e-4)


def test_it_falls_as_mass_leaves_the_hidden_words():
    hidden = torch.tensor([[True, False]])
    falling = [
        float(hiding_penalty(torch.tensor([[[mass, 1 - mass]]]), hidden))
        for mass in (0.9, 0.5, 0.1, 0.01)
    ]
    assert falling == sorted(falling, reverse=True)
