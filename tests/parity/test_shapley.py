"""Exact Shapley values against all orders of the players, and against shap."""

import doctest

import numpy as np
import pytest
import torch
from torch.testing import assert_close as close

from heedful.core.errors import NotApplicable
from heedful.methods import methods
from heedful.methods.erasure import additive
from heedful.methods.erasure.coalitions import Coalitions
from heedful.models.batch_context import BatchContext
from support import reference_removal, subjects

NAMES = ("bilstm", "bert", "gpt2")


def test_documentation():
    assert doctest.testmod(additive, extraglobs={"torch": torch}).failed == 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("players", reference_removal.PLAYERS)
@pytest.mark.parametrize("method", ["shapley", "kernel_shap"])
def test_is_the_mean_over_all_orders(name, players, method):
    context, target = reference_removal.sitting_of(name)
    of = {"bilstm": "probability", "bert": "log_odds", "gpt2": "logit"}[name]
    found = reference_removal.explained(method, context, target, of=of, players=players)
    for row, text in enumerate(reference_removal.texts_of(name)):
        values = reference_removal.table(context.subject, text, players, int(target[row]), of)
        want = reference_removal.shapley(values, len(reference_removal.members(text, players)))
        close(found[row], reference_removal.on_tokens(text, players, want), atol=1e-10, rtol=1e-9)
        whole, nothing = (values[(shown,) * len(want)] for shown in (True, False))
        assert float(found[row].sum()) == pytest.approx(whole - nothing, abs=1e-10)


@pytest.fixture(scope="module")
def shap():
    return pytest.importorskip("shap")


def looked_up(values):
    """A model for shap: from rows of zeros and ones to values, by the binary numbers they are."""

    def model(shown):
        return values[shown.astype(int) @ 2 ** np.arange(shown.shape[1])]

    return model


def played(context, target, row):
    """The values of all coalitions of one text, in the order of binary numbers."""
    everything = Coalitions(tuple(target.tolist()), 2**12, "tokens")
    return context.cached(everything)[row].values("probability").flip(0).numpy()


@pytest.mark.parametrize("name", NAMES)
def test_is_what_shap_finds(name, shap):
    context, target = reference_removal.sitting_of(name)
    for row, text in enumerate(reference_removal.texts_of(name)):
        model, count = (
            looked_up(played(context, target, row)),
            len(reference_removal.members(text, "tokens")),
        )
        nothing, whole = np.zeros((1, count)), np.ones((1, count))
        exact = shap.explainers.Exact(model, shap.maskers.Independent(nothing))(whole).values[0]
        explainer = shap.KernelExplainer(model, nothing)
        kernel = explainer.shap_values(whole, nsamples=200, silent=True, l1_reg=False)[0]
        for method, want, near in (("shapley", exact, 1e-12), ("kernel_shap", kernel, 1e-6)):
            found = reference_removal.explained(method, context, target)[row]
            close(found, reference_removal.on_tokens(text, "tokens", want), atol=near, rtol=0)


def test_from_as_many_coalitions_shap_is_no_nearer_to_the_truth(shap, monkeypatch):
    one = subjects.subject("bilstm", seed=3)
    context = BatchContext(one, subjects.batch(one, [9] * 12, seed=2))
    target = torch.ones(12, dtype=torch.long)
    exact, ours = (
        torch.stack(reference_removal.explained(name, context, target, **more))[:, 1:-1].numpy()
        for name, more in (("shapley", {}), ("kernel_shap", {"samples": 130}))
    )
    state = np.random.RandomState(0)  # shap draws from numpy's one generator
    for draw in ("choice", "permutation", "shuffle"):
        monkeypatch.setattr(np.random, draw, getattr(state, draw))
    settings = {"nsamples": 128, "silent": True, "l1_reg": False}
    theirs = np.concatenate(
        [
            shap.KernelExplainer(
                looked_up(played(context, target, row)), np.zeros((1, 9))
            ).shap_values(np.ones((1, 9)), **settings)
            for row in range(12)
        ]
    )
    scale = np.abs(exact).max(1)
    mine, other = (np.mean(np.abs(one - exact).max(1) / scale) for one in (ours, theirs))
    assert mine < 1.05 * other < 0.2  # and shap estimates the same thing


@pytest.mark.parametrize("players", reference_removal.PLAYERS)
def test_long_texts_are_refused_with_the_number_of_passes(players):
    one = subjects.subject("average")
    method = methods.build("shapley", players=players)
    assert type(method).most_players == 12
    longest = BatchContext(one, subjects.batch(one, [12, 2]))
    assert method(longest, longest.predicted).scores.any()
    longer = BatchContext(one, subjects.batch(one, [3, 13, 2]))
    said = f"13 {players} would take 8,192 passes; a text may have at most 12"
    with pytest.raises(NotApplicable, match=said):
        method(longer, longer.predicted)


def test_words_are_fewer_than_tokens():
    one = reference_removal.subject("bert")
    text = one.encode(reference_removal.Example(0, "unbelievable " * 5, 0))
    with pytest.raises(NotApplicable, match="15 tokens would take 32,768 passes"):
        reference_removal.explained("shapley", *reference_removal.alone(one, text, 0))
    (found,) = reference_removal.explained(
        "shapley", *reference_removal.alone(one, text, 0), players="words"
    )
    close(found[[1, 4]], found[[2, 5]])  # the pieces of a word have equal parts
