import doctest
import math
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from heedful.numerics.tensor import ranking
from heedful.numerics.tensor.ranking import (
    dense_ranks,
    kendall,
    spearman,
    top1_match,
    top_k_overlaps,
    top_k_places,
)


def top_k_overlap(a, b, mask, *, k):
    """The share of the k top tokens that two rankings have in common, by one k for all texts."""
    in_a, in_b = (top_k_places(dense_ranks(values, mask), mask, k=k) for values in (a, b))
    return torch.minimum(in_a, in_b).sum(-1) / mask.sum(-1).clamp(max=k).double()


@st.composite
def texts(draw, rankings=3, most=60):
    """(values (B, K, T), mask (B, T)): rows of 0..most tokens anywhere in the row, tied or not."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    T, B = draw(st.integers(1, most)), draw(st.integers(1, 4))
    levels = draw(st.sampled_from((1, 2, 5, 10_000)))  # of one level, all tokens are tied
    values = random.integers(0, levels, (B, rankings, T)) / 7
    mask = random.random((B, T)) < draw(st.sampled_from((0.1, 0.7, 1.0)))
    return torch.from_numpy(values), torch.from_numpy(mask)


def ranked(values, mask):
    return dense_ranks(values, mask[:, None].expand(values.shape))


def rows(values, mask):
    """Each text's real tokens, one array per ranking."""
    return [values[b][:, mask[b]].numpy() for b in range(len(mask))]


def plain_kendall(x, y):
    """τ-b and concordant minus discordant, by looking at every pair of tokens."""
    balance = untied_x = untied_y = 0
    for i, j in combinations(range(len(x)), 2):
        dx, dy = np.sign(x[i] - x[j]), np.sign(y[i] - y[j])
        balance, untied_x, untied_y = balance + dx * dy, untied_x + abs(dx), untied_y + abs(dy)
    scale = math.sqrt(untied_x * untied_y)
    return (balance / scale if scale else math.nan), balance


def plain_dense_ranks(values, tolerance, floor):
    allowed = tolerance * max(map(abs, values), default=0.0) + floor
    ranks, rank_now, before = {}, 0, None
    for t in sorted(range(len(values)), key=values.__getitem__):
        if before is not None and values[t] - before > allowed:
            rank_now += 1
        ranks[t], before = rank_now, values[t]
    return [ranks[t] for t in range(len(values))]


@given(texts(), st.sampled_from((0.0, 1e-6, 0.05)))
def test_dense_ranks_are_those_of_a_plain_loop(text, tolerance):
    values, mask = text
    ranks = dense_ranks(values, mask[:, None].expand(values.shape), tolerance=tolerance)
    assert (ranks[~mask[:, None].expand(values.shape)] == -1).all()
    for ours, real in zip(rows(ranks, mask), rows(values, mask), strict=True):
        for k, row in enumerate(real):
            assert ours[k].tolist() == plain_dense_ranks(row.tolist(), tolerance, 1e-12)


def test_scores_within_a_millionth_of_the_largest_are_ties_and_chains_hold_together():
    everything = torch.ones(5, dtype=torch.bool)
    row = torch.tensor([1.0, 1.0 + 0.9e-6, 1.0 + 1.8e-6, 0.5, 0.5 + 3e-6], dtype=torch.float64)
    assert dense_ranks(row, everything).tolist() == [2, 2, 2, 0, 1]
    assert dense_ranks(1e-9 * row, everything).tolist() == [1, 1, 1, 0, 0]  # the floor: 1e-12
    assert dense_ranks(-row, everything).tolist() == [0, 0, 0, 2, 1]


def test_scores_outside_the_mask_neither_rank_nor_set_the_scale():
    row, mask = torch.tensor([0.1, 1e9, 0.2]), torch.tensor([True, False, True])
    assert dense_ranks(row, mask).tolist() == [0, -1, 1]


def test_rounding_to_float32_moves_no_rank():
    values = torch.rand(50, 40, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(50, 40, dtype=torch.bool)
    clear = values.sort(-1).values.diff(dim=-1).amin(-1) > 1e-5
    assert clear.any()
    assert torch.equal(dense_ranks(values, mask)[clear], dense_ranks(values.float(), mask)[clear])


@given(texts())
def test_tau_is_that_of_scipy_and_of_plain_pairs(text):
    values, mask = text
    found = kendall(ranked(values, mask), mask)
    for b, real in enumerate(rows(values, mask)):
        for i, j in np.ndindex(3, 3):
            tau, balance = plain_kendall(real[i], real[j])
            assert found.tau[b, i, j].item() == pytest.approx(tau, abs=1e-12, nan_ok=True)
            assert found.balance[b, i, j].item() == balance
            if len(real[i]) > 1:  # scipy warns of the others
                want = stats.kendalltau(real[i], real[j]).statistic
                assert found.tau[b, i, j].item() == pytest.approx(want, abs=1e-12, nan_ok=True)


@given(texts())
def test_tie_sums_are_those_of_counted_groups(text):
    values, mask = text
    found = kendall(ranked(values, mask), mask)
    assert found.n.tolist() == mask.sum(-1).tolist()
    for b, real in enumerate(rows(values, mask)):
        for k, row in enumerate(real):
            groups = [int(c) for c in np.unique(row, return_counts=True)[1]]
            assert found.tie_pairs[b, k] == sum(c * (c - 1) // 2 for c in groups)
            assert found.tie_triples[b, k] == sum(c * (c - 1) * (c - 2) for c in groups)
            assert found.tie_spread[b, k] == sum(c * (c - 1) * (2 * c + 5) for c in groups)


@given(texts(most=12), st.sampled_from((1, 100, 1000)))
def test_tau_does_not_depend_on_the_size_of_blocks(text, block):
    values, mask = text
    want = kendall(ranked(values, mask), mask)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "SIGNS_AT_A_TIME", block)
        assert torch.equal(kendall(ranked(values, mask), mask).balance, want.balance)


def test_tau_of_a_long_text_is_exact():
    random = np.random.default_rng(0)
    T = 4501  # ten million pairs, past 2^23 in one text
    values = np.stack([np.arange(T), np.arange(T) + random.integers(0, 9, T), np.arange(T)[::-1]])
    mask = torch.ones(1, T, dtype=torch.bool)
    found = kendall(ranked(torch.from_numpy(values[None] * 1.0), mask), mask)
    for i, j in combinations(range(3), 2):
        want = stats.kendalltau(values[i], values[j]).statistic
        assert found.tau[0, i, j].item() == pytest.approx(want, abs=1e-14)
    assert found.balance[0, 0, 2] == -T * (T - 1) // 2


def test_no_texts_give_no_tau():
    found = kendall(torch.zeros(0, 2, 5, dtype=torch.int64), torch.zeros(0, 5, dtype=torch.bool))
    assert found.tau.shape == (0, 2, 2)


@given(texts(rankings=2))
def test_spearman_is_that_of_scipy(text):
    values, mask = text
    found = spearman(values[:, 0], values[:, 1], mask)
    for b, (x, y) in enumerate(rows(values, mask)):
        defined = len(set(x)) > 1 and len(set(y)) > 1  # scipy warns of the others
        want = stats.spearmanr(x, y).statistic if defined else math.nan
        assert found[b].item() == pytest.approx(want, abs=1e-12, nan_ok=True)


@given(texts(rankings=2, most=8), st.integers(1, 9))
def test_top_tokens_are_those_of_plain_sets(text, k):
    values, mask = text
    a, b = values[:, 0], values[:, 1]
    top, overlap = top1_match(a, b, mask), top_k_overlap(a, b, mask, k=k)
    for row, (x, y) in enumerate(rows(values, mask)):
        if not len(x):
            assert top[row].isnan()
            assert overlap[row].isnan()
            continue
        assert top[row] == bool(
            set(np.flatnonzero(x == x.max())) & set(np.flatnonzero(y == y.max()))
        )
        if len(set(x)) == len(x) and len(set(y)) == len(y):
            common = set(np.argsort(x)[-k:]) & set(np.argsort(y)[-k:])
            assert overlap[row].item() == pytest.approx(len(common) / min(k, len(x)))
        assert top_k_overlap(a, a, mask, k=k)[row].item() == pytest.approx(1.0)


@given(texts(), st.integers(1, 9))
def test_overlaps_of_all_pairs_are_those_of_each(text, most):
    values, mask = text
    k = (mask.sum(-1) // 2).clamp(max=most)
    found = top_k_overlaps(ranked(values, mask), mask, k=k)
    for b in range(len(mask)):
        for i, j in np.ndindex(*found.shape[1:]):
            one = float(found[b, i, j])
            if k[b] == 0:
                assert math.isnan(one)
            else:
                pair = (values[b : b + 1, i], values[b : b + 1, j])
                want = top_k_overlap(*pair, mask[b : b + 1], k=int(k[b]))
                assert one == pytest.approx(float(want[0]))


def test_tokens_tied_across_the_border_share_its_places():
    a, b = torch.tensor([4.0, 1.0, 1.0, 0.0]), torch.tensor([4.0, 3.0, 2.0, 1.0])
    overlap = top_k_overlap(a, b, torch.ones(4, dtype=torch.bool), k=2)
    assert overlap.item() == pytest.approx((1 + 0.5) / 2)


def test_top_tokens_nearly_equal_are_ties():
    a, b = torch.tensor([[1.0, 1.0 + 1e-7, 0.2]]), torch.tensor([[0.9, 0.1, 0.1]])
    assert top1_match(a, b, torch.ones(1, 3, dtype=torch.bool)).item() == 1.0


@given(texts(rankings=2, most=20), st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_the_order_of_tokens_never_matters(text, random):
    values, mask = text
    order = list(range(mask.shape[-1]))
    random.shuffle(order)
    moved, moved_mask = values[..., order], mask[..., order]
    for measure in (spearman, top1_match, lambda *both: top_k_overlap(*both, k=3)):
        want = measure(values[:, 0], values[:, 1], mask)
        torch.testing.assert_close(
            measure(moved[:, 0], moved[:, 1], moved_mask), want, equal_nan=True
        )
    want = kendall(ranked(values, mask), mask).balance
    assert torch.equal(kendall(ranked(moved, moved_mask), moved_mask).balance, want)


def test_examples_in_documentation():
    found = doctest.testmod(ranking)
    assert found.attempted
    assert not found.failed
