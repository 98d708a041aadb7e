"""Hard concrete gates against draws of them, and by their definition."""

import math

import pytest
import torch

from heedful.models.diffmask import (
    blend_with_blank,
    hard_concrete,
    log_open_probability,
)
from heedful.numerics.tensor.distributions import kl_of_logits

DRAWS = 200_000


def uniform(*shape):
    draw = torch.Generator().manual_seed(3)
    return torch.rand(*shape, generator=draw, dtype=torch.float64).clamp(1e-6, 1 - 1e-6)


@pytest.mark.parametrize("logit", [-4.0, -1.0, -0.3, 0.0, 0.3, 2.0])
def test_the_closed_form_is_the_share_of_draws_above_zero(logit):
    logits = torch.full((DRAWS,), logit, dtype=torch.float64)
    share = float((hard_concrete(logits, uniform(DRAWS)) > 0).double().mean())
    chance = float(log_open_probability(logits[:1]).exp())
    assert share == pytest.approx(chance, abs=4 * math.sqrt(chance * (1 - chance) / DRAWS))


def test_a_gate_is_the_stretched_sigmoid_cut_at_zero():
    for logit, u in ((-1.0, 0.2), (0.4, 0.5), (1.5, 0.9), (-3.0, 0.99)):
        noisy = (math.log(u) - math.log(1 - u) + logit) / 0.2
        want = max(0.0, 1.2 / (1 + math.exp(-noisy)) - 0.2)
        found = hard_concrete(*torch.tensor([[logit], [u]], dtype=torch.float64))
        assert float(found) == pytest.approx(want, abs=1e-12)


def test_some_gates_are_exactly_zero_and_none_is_exactly_one():
    drawn = uniform(DRAWS).clamp(max=0.99)  # beyond, rounding makes a 1
    gates = hard_concrete(torch.zeros_like(drawn), drawn)
    assert bool((gates == 0).any())
    assert not bool((gates == 1).any())


def test_independent_gates_are_all_open_with_the_product_of_their_chances():
    logits = torch.tensor([0.5, -0.2, 1.0]).double()
    drawn = hard_concrete(logits[:, None].expand(-1, DRAWS), uniform(3, DRAWS)).prod(0)
    chance = float(log_open_probability(logits).sum().exp())
    assert float((drawn > 0).double().mean()) == pytest.approx(chance, abs=0.005)


def test_open_gates_leave_vectors_and_closed_ones_the_blank():
    vectors, blank = uniform(2, 3, 4), uniform(4)
    assert torch.equal(blend_with_blank(vectors, torch.ones(2, 3).double(), blank), vectors)
    assert torch.equal(
        blend_with_blank(vectors, torch.zeros(2, 3).double(), blank), blank.expand(2, 3, 4)
    )


def test_kl_of_logits_is_that_of_probabilities_and_its_slope_is_finite():
    own, other = uniform(5, 3) * 9, uniform(5, 3) * -9
    p, q = own.softmax(-1), other.softmax(-1)
    torch.testing.assert_close(kl_of_logits(own, other), (p * (p / q).log()).sum(-1))
    far = torch.tensor([0.0, 1e4], requires_grad=True)
    kl_of_logits(torch.tensor([3.0, 0.0]), far).backward()
    assert far.grad.isfinite().all()
