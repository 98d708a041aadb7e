"""Coalitions that are drawn, and Shapley values estimated from them."""

import doctest
from math import comb

import numpy as np
import pytest
import torch
from torch.testing import assert_close as close

from heedful.methods.erasure import coalitions
from heedful.methods.erasure.additive import constrained_least_squares, shapley_mass
from heedful.methods.erasure.coalitions import CoalitionValues, pairs_by_size, sample_coalitions
from heedful.models.batch_context import BatchContext
from support import reference_removal, subjects

SHAPES = [(players, samples) for players in (3, 6, 9, 12, 30, 101) for samples in (4, 7, 64, 1000)]


def test_documentation():
    assert doctest.testmod(coalitions).failed == 0


@pytest.mark.parametrize(("players", "samples"), SHAPES)
def test_drawn_coalitions_are_pairs_and_no_more_than_asked_for(players, samples):
    drawn = sample_coalitions(players, samples, 0, 5)
    assert drawn.shape[0] <= max(samples, 2)
    assert drawn[0].all()
    assert not drawn[-1].any()
    sets = [tuple(row) for row in drawn]
    assert len(set(sets)) == len(sets)  # in the large strata too, for this seed
    for row in drawn:
        assert tuple(~row) in set(sets)
    if 2**players <= samples:
        assert len(sets) == 2**players
    else:
        assert len(sets) >= samples - 1
    sizes = np.bincount(drawn.sum(1), minlength=players + 1)
    if samples >= 4 * players + 2:
        assert sizes[1] == sizes[-2] == players
    given = pairs_by_size(players, (samples - 2) // 2) if 2**players > samples else {}
    for size, pairs in given.items():
        assert sizes[size] == pairs * (2 if 2 * size == players else 1)
        assert sizes[size] <= comb(players, size)


def test_every_player_of_a_size_is_drawn_alike():
    drawn = np.concatenate([sample_coalitions(20, 400, 0, instance) for instance in range(60)])
    for size in (3, 10, 17):
        of_size = drawn[drawn.sum(1) == size]
        share, n = of_size.mean(0), len(of_size)
        spread = np.sqrt(size / 20 * (1 - size / 20) / n)
        assert np.abs(share - size / 20).max() < 4.5 * spread


def test_draws_belong_to_the_seed_and_the_instance():
    one, same, seed, instance = (
        sample_coalitions(11, 100, *key) for key in ((0, 4), (0, 4), (1, 4), (0, 5))
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, seed)
    assert not np.array_equal(one, instance)


def test_weights_give_every_size_its_mass():
    drawn = torch.from_numpy(sample_coalitions(40, 24, 0, 1))  # too few for every size
    mass = torch.arange(1.0, 42.0, dtype=torch.float64)
    weights = CoalitionValues(drawn, torch.zeros(len(drawn), 2, dtype=torch.float64)).weights(mass)
    sizes = drawn.sum(1)
    assert float(weights.sum()) == pytest.approx(float(mass.sum()))
    assert (float(weights[0]), float(weights[-1])) == (41.0, 1.0)
    there = sorted(set(sizes.tolist()) - {0, 40})
    assert len(there) < 39
    want = dict.fromkeys(there, 0.0)
    for size in range(1, 40):
        want[min(there, key=lambda one: (abs(one - size), one))] += float(mass[size])
    for size in there:
        each = weights[sizes == size]
        close(each, torch.full_like(each, want[size] / len(each)))


def constrained(visible, values, weights):
    """The textbook's way: the last score is what the others leave, by ordinary least squares."""
    z, v, w = visible.astype(float), values, np.sqrt(weights)
    whole = v[0] - v[-1]
    x, y = z[:, :-1] - z[:, -1:], v - v[-1] - z[:, -1] * whole
    first = np.linalg.lstsq(w[:, None] * x, w * y, rcond=None)[0]
    return np.append(first, whole - first.sum())


@pytest.mark.parametrize(("players", "samples"), [(5, 32), (9, 64), (12, 1000), (30, 400)])
def test_the_regression_is_least_squares_with_the_constraint_put_in(players, samples):
    visible = sample_coalitions(players, samples, 0, 3)
    values = np.random.default_rng(players).normal(size=len(visible))
    given = torch.from_numpy(values)
    seen = torch.from_numpy(visible)
    weights = CoalitionValues(seen, torch.stack([given, given], -1)).weights(shapley_mass(players))
    found = constrained_least_squares(seen.double(), given, weights)
    close(found.numpy(), constrained(visible, values, weights.numpy()), atol=1e-10, rtol=1e-9)
    assert float(found.sum()) == pytest.approx(values[0] - values[-1], abs=1e-12)


@pytest.mark.parametrize("samples", [4, 9, 20, 66])
def test_with_any_number_of_samples_scores_add_up_and_a_linear_model_is_not_overstated(samples):
    context, added = reference_removal.linear([15, 9, 1, 2])
    found = reference_removal.explained(
        "kernel_shap", context, torch.ones(4).long(), of="logit", samples=samples
    )
    for scores, want in zip(found, added, strict=True):
        assert float(scores.sum()) == pytest.approx(float(want.sum()))
        want = want[: len(scores)]
        if samples == 66:  # enough to tell all players apart
            close(scores, want, atol=1e-10, rtol=0)
        words = slice(1, len(scores) - 1)  # a projection: never farther from even than the truth
        even = float(want.sum()) / (len(scores) - 2)
        assert (scores[words] - even).norm() <= (want[words] - even).norm() + 1e-9


def test_an_estimate_from_a_quarter_of_all_coalitions_is_near():
    one = subjects.subject("bilstm", seed=3)
    context = BatchContext(one, subjects.batch(one, [12] * 4, seed=4))
    exact = torch.stack(reference_removal.explained("shapley", context, context.predicted))
    found = torch.stack(reference_removal.explained("kernel_shap", context, context.predicted))
    error = (found - exact).abs().amax(-1) / exact.abs().amax(-1)
    assert 0.0 < float(error.max()) < 0.04


def test_lime_and_kernel_shap_share_their_passes():
    one = subjects.subject("average")
    batch = subjects.batch(one, [9, 3])
    ran = []
    for asked in (["lime"], ["kernel_shap"], ["lime", "kernel_shap"]):
        counted = reference_removal.Counted(one)
        context = BatchContext(counted, batch)
        for name in asked:
            for of in reference_removal.OF:
                reference_removal.explained(name, context, torch.tensor([0, 1]), samples=64, of=of)
        ran.append(counted.run)
    assert ran == [64 + 8] * 3
    reference_removal.explained("lime", context, torch.tensor([0, 1]), samples=64, players="words")
    assert counted.run == 2 * (64 + 8)
