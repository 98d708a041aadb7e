"""LIME against sklearn's ridge regression, and against the lime package."""

import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close as close

from heedful.methods.erasure.additive import lime_mass, weighted_ridge
from heedful.methods.erasure.coalitions import Coalitions, sample_coalitions
from heedful.models.batch_context import BatchContext
from support import reference_removal, subjects


def kernel(size, players):
    """exp(−d²/2·25²), d = 100 × cosine distance between the text and a part of it, written out."""
    cosine = size / math.sqrt(size * players) if size else 0.0
    return math.exp(-((100 * (1 - cosine)) ** 2) / (2 * 25**2))


def weight(shown, samples):
    """What one of all coalitions weighs among so many draws, sizes below the whole being even."""
    size, players = sum(shown), len(shown)
    if size == players:
        return 1.0
    return (samples - 1) / players / math.comb(players, size) * kernel(size, players)


@pytest.mark.parametrize("name", ["bilstm", "bert", "gpt2"])
@pytest.mark.parametrize("players", reference_removal.PLAYERS)
def test_is_a_weighted_ridge_regression_on_all_coalitions(name, players):
    linear_model = pytest.importorskip("sklearn.linear_model")
    context, target = reference_removal.sitting_of(name)
    found = reference_removal.explained("lime", context, target, samples=300, players=players)
    for row, text in enumerate(reference_removal.texts_of(name)):
        values = reference_removal.table(
            context.subject, text, players, int(target[row]), "probability"
        )
        shown, said = np.array(list(values), dtype=float), list(values.values())
        weights = [weight(one, 300) for one in values]
        fitted = linear_model.Ridge(alpha=1.0).fit(shown, said, sample_weight=weights)
        want = reference_removal.on_tokens(text, players, fitted.coef_)
        close(found[row], want, atol=1e-10, rtol=1e-9)


def test_a_drawn_regression_is_sklearns():
    linear_model = pytest.importorskip("sklearn.linear_model")
    draw = np.random.default_rng(0)
    x = sample_coalitions(30, 200, 0, 1).astype(float)
    y, w = draw.normal(size=len(x)), draw.random(len(x))
    want = linear_model.Ridge(alpha=1.0).fit(x, y, sample_weight=w).coef_
    close(
        weighted_ridge(*map(torch.from_numpy, (x, y, w))),
        torch.from_numpy(want),
        atol=1e-12,
        rtol=1e-9,
    )


def test_sizes_have_the_mass_of_so_many_draws():
    mass = lime_mass(4, 101)
    want = [25 * kernel(size, 4) for size in range(4)]
    close(mass, torch.tensor([*want, 1.0], dtype=torch.float64))
    assert kernel(0, 4) == pytest.approx(math.exp(-8))


@pytest.mark.parametrize("name", ["bilstm", "bert"])
def test_the_lime_package_draws_around_our_scores(name):
    lime_text = pytest.importorskip("lime.lime_text")
    context, target = reference_removal.sitting_of(name)
    text, samples, rounds = reference_removal.texts_of(name)[0], 1000, 12
    values = reference_removal.table(context.subject, text, "tokens", int(target[0]), "probability")
    words = [f"v{number}" for number in range(len(reference_removal.members(text, "tokens")))]

    def model(texts):
        shown = [tuple(word in one.split() for word in words) for one in texts]
        return np.array([[1 - values[row], values[row]] for row in shown])

    drawn = []
    for seed in range(rounds):
        explainer = lime_text.LimeTextExplainer(
            bow=False, feature_selection="none", random_state=seed
        )
        told = explainer.explain_instance(
            " ".join(words), model, num_features=len(words), num_samples=samples
        )
        drawn.append([dict(told.as_map()[1])[number] for number in range(len(words))])
    found = reference_removal.explained("lime", context, target, samples=samples)[0]
    found = found[found != 0].numpy()
    mean, error = np.mean(drawn, 0), np.std(drawn, 0, ddof=1) / math.sqrt(rounds)
    assert (np.abs(found - mean) < 5 * error + 1e-3 * np.abs(mean)).all()
    assert (error < 0.03 * np.abs(mean).max()).all()  # and chance does not allow everything


def test_one_player_and_two():
    context, target = reference_removal.sitting_of("bilstm")
    found = reference_removal.explained("lime", context, target, samples=50)
    for row, count in ((1, 1), (2, 2)):
        text = reference_removal.texts_of("bilstm")[row]
        values = reference_removal.table(
            context.subject, text, "tokens", int(target[row]), "probability"
        )
        x = torch.tensor([[*map(float, shown)] for shown in values], dtype=torch.float64)
        y = torch.tensor(list(values.values()), dtype=torch.float64)
        w = torch.tensor([weight(shown, 50) for shown in values], dtype=torch.float64)
        full = torch.cat([torch.ones(len(x), 1), x], 1)  # the intercept as a column of its own
        penalty = torch.diag(torch.tensor([0.0] + [1.0] * count, dtype=torch.float64))
        want = torch.linalg.inv(full.T @ (w[:, None] * full) + penalty) @ (full.T @ (w * y))
        close(found[row][1:-1], want[1:], atol=1e-12, rtol=1e-9)


def test_drawn_coalitions_estimate_what_all_of_them_would_give():
    one = subjects.subject("cnn", "additive", seed=3)
    context = BatchContext(one, subjects.batch(one, [9] * 8, seed=2))
    target = torch.ones(8, dtype=torch.long)
    found = reference_removal.explained("lime", context, target, samples=256)
    errors = []
    for game, scores in zip(
        context.cached(Coalitions((1,) * 8, 512, "tokens")), found, strict=True
    ):
        weights = [weight(shown.tolist(), 256) for shown in game.visible]
        want = weighted_ridge(
            game.visible.double(),
            game.values("probability"),
            torch.tensor(weights, dtype=torch.float64),
        )
        errors.append(float((scores[1:-1] - want).abs().max() / want.abs().max()))
    assert 0.0 < sum(errors) / len(errors) < 0.07
