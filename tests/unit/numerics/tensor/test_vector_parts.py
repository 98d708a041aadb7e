"""Parts of vectors: closed forms and plain loops."""

import pytest
import torch
from torch.testing import assert_close as close

from heedful.numerics.tensor.vector_parts import VectorParts, normalise_rows


def drawn(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def made(texts=2, heads=3, count=5, width=7):
    weights = drawn(texts, heads, count, count).softmax(-1).tril()
    rest = [drawn(texts, count, width, seed=seed) for seed in (2, 3)]
    return VectorParts(weights, drawn(texts, count, heads, width, seed=1), *rest)


def by_loops(parts):
    """Every part, (B, Q, K, D)."""
    texts, heads, queries, keys = parts.weights.shape
    found = torch.zeros(texts, queries, keys, parts.added.shape[-1], dtype=torch.float64)
    for b, h, q, k in torch.cartesian_prod(
        *map(torch.arange, (texts, heads, queries, keys))
    ).tolist():
        found[b, q, k] += parts.weights[b, h, q, k] * parts.added[b, k, h]
        if q == k and h == 0:
            found[b, q, k] += parts.residual[b, q]
    return found


def test_all_parts_and_the_bias_are_the_whole():
    parts = made()
    close(by_loops(parts).sum(2) + parts.bias, parts.total())


def test_sizes_are_norms_of_the_parts():
    parts = made()
    close(parts.norms(), by_loops(parts).norm(dim=-1))


@pytest.mark.parametrize("vectors", [1, 17, 10_000])
def test_nearness_is_what_a_part_takes_off_the_distance_however_many_at_once(vectors):
    parts = made()
    whole = parts.total()
    left = (whole[:, :, None] - by_loops(parts)).abs().sum(-1)
    wanted = (whole.abs().sum(-1, keepdim=True) - left).clamp(min=0).tril()
    found = parts.nearness(whole, vectors=vectors)
    close(found, wanted)
    assert not found.triu(1).any()
    assert (found > 0).any()


def test_parts_on_axes_of_their_own_contribute_their_weights():
    """Token k adds its weight on axis k: of ‖y‖₁ = 1 it is exactly that weight."""
    weights = drawn(1, 1, 4, 4).softmax(-1)
    nothing = torch.zeros(1, 4, 4, dtype=torch.float64)
    parts = VectorParts(weights, torch.eye(4, dtype=torch.float64)[None, :, None], nothing, nothing)
    close(parts.nearness(parts.total(), vectors=9), weights[:, 0])
    close(parts.norms(), weights[:, 0])


def test_positions_that_attend_to_nothing_are_their_own():
    states = drawn(1, 4, 6)
    weights, added = torch.zeros(1, 2, 4, 4).double(), drawn(1, 4, 2, 6)
    parts = VectorParts(weights, added, states, torch.zeros_like(states))
    own = torch.eye(4).double()[None]
    close(normalise_rows(parts.nearness(states, vectors=9)), own)
    close(normalise_rows(parts.norms()), own)
    close(normalise_rows(torch.zeros(1, 4, 4).double()), own)
