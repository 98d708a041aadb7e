"""Distributions over tokens and the distances between them, against plain loops and scipy."""

import doctest
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

from heedful.numerics.tensor import distributions as simplex
from heedful.numerics.tensor import linear_programs, weight_removal
from heedful.numerics.tensor.distributions import (
    jsd,
    jsd_to_pair,
    jsd_to_point,
    masked_softmax,
    permute_weights,
    positions_first,
    tvd,
    uniform_weights,
)

seeds = st.integers(0, 2**32 - 1)


@st.composite
def distributions(draw, rows=2, most=12):
    """`rows` distributions over the same 1..most tokens, flat to peaked, some weights zero."""
    random = np.random.default_rng(draw(seeds))
    T, sharp = draw(st.integers(1, most)), draw(st.sampled_from((0.05, 1.0, 30.0)))
    weights = random.dirichlet(np.full(T, sharp), rows) + 1e-300
    weights[random.random((rows, T)) < draw(st.sampled_from((0.0, 0.3)))] = 0.0
    weights[:, random.integers(T)] += 1e-3  # no row may lose all its weight
    return weights / weights.sum(1, keepdims=True)


@st.composite
def masked(draw, most=9):
    """(scores (B, T), mask (B, T)): tokens in the mask lie anywhere, also nowhere."""
    random = np.random.default_rng(draw(seeds))
    B, T = draw(st.integers(1, 4)), draw(st.integers(1, most))
    scores = random.normal(0, draw(st.sampled_from((1.0, 300.0, 1e4))), (B, T))
    return scores, random.random((B, T)) < draw(st.sampled_from((0.2, 0.7, 1.0)))


def plain_kl(p, q):
    total = 0.0
    for one, other in zip(p, q, strict=True):
        if one > 0:
            total += one * math.log(one / other) if other > 0 else math.inf
    return total


def plain_jsd(p, q):
    m = [(one + other) / 2 for one, other in zip(p, q, strict=True)]
    return 0.5 * plain_kl(p, m) + 0.5 * plain_kl(q, m)


def plain_softmax(scores, mask):
    inside = [s for s, real in zip(scores, mask, strict=True) if real]
    parts = [
        math.exp(s - max(inside)) if real else 0.0 for s, real in zip(scores, mask, strict=True)
    ]
    return [part / sum(parts) if inside else 0.0 for part in parts]


def on(values):
    return torch.as_tensor(np.asarray(values), dtype=torch.float64)


@given(masked())
def test_softmax_and_uniform_are_those_of_plain_loops(text):
    scores, mask = text
    found = masked_softmax(on(scores), torch.from_numpy(mask))
    even = uniform_weights(torch.from_numpy(mask), dtype=torch.float64)
    assert not found[~torch.from_numpy(mask)].any()
    for b in range(len(mask)):
        assert found[b].tolist() == pytest.approx(plain_softmax(scores[b], mask[b]), abs=1e-14)
        want = [1 / mask[b].sum() if real else 0.0 for real in mask[b]]
        assert even[b].tolist() == pytest.approx(want, abs=1e-15)


def test_softmax_broadcasts_its_mask_and_passes_a_finite_gradient_to_empty_rows():
    scores = torch.randn(3, 2, 4, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, True, False, False], [False] * 4])
    weights = masked_softmax(scores, mask)
    torch.testing.assert_close(weights.sum(-1), torch.tensor([[1.0, 0.0]]).double().expand(3, 2))
    (gradient,) = torch.autograd.grad(weights[..., 0].sum(), scores)
    assert gradient.isfinite().all()
    assert not gradient[:, ~mask].any()


def test_softmax_does_not_hear_scores_outside_the_mask():
    mask = torch.tensor([[True, False, True]])
    for loud in (1e300, math.inf, -math.inf, math.nan):
        found = masked_softmax(on([[0.0, loud, 0.0]]), mask)
        assert found.tolist() == [[0.5, 0.0, 0.5]]


@given(masked())
def test_positions_first_keeps_both_orders(text):
    mask = text[1]
    found = positions_first(torch.from_numpy(mask)).tolist()
    for row, order in zip(mask, found, strict=True):
        inside = [t for t, real in enumerate(row) if real]
        assert order == inside + [t for t, real in enumerate(row) if not real]


@given(masked(), st.integers(1, 4), seeds)
def test_permuted_deals_the_words_weights_out_in_the_order_of_the_keys(text, draws, seed):
    weights, mask = text
    random = np.random.default_rng(seed)
    keys = random.random((len(mask), draws, max(1, mask.sum(1).max())))
    found = permute_weights(on(weights), torch.from_numpy(mask), keys=on(keys)).numpy()
    for b, row in enumerate(mask):
        words = np.flatnonzero(row)
        for k in range(draws):
            order = sorted(range(len(words)), key=keys[b, k].__getitem__)
            want = weights[b].copy()
            for place, source in zip(words, order, strict=True):
                want[place] = weights[b][words[source]]
            assert found[k, b].tolist() == want.tolist()


@given(st.lists(st.integers(0, 6), min_size=1, max_size=4), seeds)
def test_a_text_is_permuted_alike_in_every_batch(lengths, seed):
    random = np.random.default_rng(seed)
    width, longest = max(lengths) + 2, max(1, *lengths)
    mask = np.array([[0 < t <= n for t in range(width)] for n in lengths])
    weights, keys = random.random(mask.shape), np.ones((len(lengths), 3, longest))
    for b, n in enumerate(lengths):
        keys[b, :, :n] = random.random((3, n))
    together = permute_weights(on(weights), torch.from_numpy(mask), keys=on(keys))
    for b, n in enumerate(lengths):
        alone = slice(b, b + 1), slice(0, n + 2)
        own = on(keys[b : b + 1, :, : max(n, 1)])
        found = permute_weights(on(weights[alone]), torch.from_numpy(mask[alone]), keys=own)
        assert torch.equal(found[:, 0], together[:, b, : n + 2])
        assert torch.equal(together[:, b, n + 2 :], on(weights[b, n + 2 :]).expand(3, -1))


@given(distributions())
def test_distances_are_those_of_plain_loops_and_of_scipy(pair):
    p, q = pair
    found = {name: f(on(p), on(q)).item() for name, f in (("tvd", tvd), ("jsd", jsd))}
    assert found["tvd"] == pytest.approx(sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2)
    assert found["jsd"] == pytest.approx(plain_jsd(p, q), rel=1e-9, abs=1e-12)
    assert found["jsd"] == pytest.approx(float(jensenshannon(p, q)) ** 2, abs=1e-9)
    assert 0 <= found["tvd"] <= 1 + 1e-15
    assert -1e-15 <= found["jsd"] <= math.log(2) + 1e-15


@given(distributions(rows=6))
def test_distances_broadcast_and_are_symmetric_where_they_should_be(rows):
    p, q = on(rows[:5]), on(rows[5:])
    for f in (tvd, jsd):
        each = torch.stack([f(p[i], q[0]) for i in range(5)])
        torch.testing.assert_close(f(p, q), each)
        assert not f(p, p).abs().gt(1e-15).any()
    torch.testing.assert_close(jsd(p, q), jsd(q.expand_as(p), p))


def test_distances_where_zero_meets_zero():
    p, q = on([0.5, 0.5, 0.0]), on([0.0, 0.5, 0.5])
    assert jsd(p, q).item() == pytest.approx(0.5 * math.log(2))
    assert jsd(on([1.0, 0.0]), on([0.0, 1.0])).item() == pytest.approx(math.log(2))


@given(distributions(rows=1))
def test_to_point_is_the_jsd_from_each_point(rows):
    q = rows[0]
    found = jsd_to_point(on(q))
    for t in range(len(q)):
        point = [float(t == other) for other in range(len(q))]
        assert found[t].item() == pytest.approx(plain_jsd(point, q), abs=1e-12)
    assert (found.diff()[np.diff(q) > 0] <= 1e-15).all()  # decreasing in q


@given(distributions(rows=1), st.sampled_from((0.0, 1e-9, 0.3, 0.5, 1.0)), seeds)
def test_to_pair_is_the_jsd_from_the_explicit_vector(rows, share, seed):
    q = rows[0]
    if len(q) < 2:
        return
    one, other = np.random.default_rng(seed).choice(len(q), 2, replace=False)
    a = np.zeros(len(q))
    a[one], a[other] = share, 1 - share
    found = jsd_to_pair(on(share), on(q[one]), on(q[other])).item()
    assert found == pytest.approx(plain_jsd(a, q), abs=1e-12)
    assert found == pytest.approx(jsd(on(a), on(q)).item(), abs=1e-12)


@pytest.mark.parametrize("module", [simplex, weight_removal, linear_programs])
def test_examples_of_the_documentation_run(module):
    found = doctest.testmod(module)
    assert found.failed == 0
    assert found.attempted or module is linear_programs
