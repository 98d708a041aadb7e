"""Gradients against central differences along the words' own vectors, and against captum."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close as close

from heedful.core.batch import collate
from heedful.methods import methods
from heedful.models.batch_context import BatchContext
from support import subjects

KINDS = [
    ("bilstm", "additive", 2),
    ("bilstm", "dot", 3),
    ("cnn", "additive", 3),
    ("average", "dot", 2),
    ("mlp", "additive", 2),
    ("average", "uniform", 3),
]
LENGTHS = [7, 1, 4, 2, 11]
STEP = 1e-4  # central differences err by about STEP² · third derivative, and by 1e-16 / STEP

kinds = pytest.mark.parametrize(("encoder", "attention", "classes"), KINDS)


def case(encoder, attention, classes):
    """A subject, its texts, their batch, and one target class per text."""
    subject = subjects.subject(encoder, attention, classes=classes, seed=8)
    encoded = subjects.encoded(subject, LENGTHS, seed=9)
    return subject, encoded, collate(encoded), torch.arange(len(LENGTHS)) % classes


def chance(subject, batch, x, target, weights):
    """p_target of a text alone, its vectors x, attention held at the weights or free (None)."""
    forward = subject.forward(batch, x)
    logits = forward.logits
    if weights is not None:
        mixed = torch.einsum("bt,btd->bd", weights, forward.states)
        layer = subject.network.decoder
        logits = mixed @ layer.weight.T + layer.bias
        if logits.shape[1] == 1:
            logits = torch.cat([torch.zeros_like(logits), logits], 1)
    exact = torch.exp(logits - logits.amax(1, keepdim=True))
    return exact[:, target] / exact.sum(1)


def slopes(subject, text, target, weights, towards):
    """d/dc p(x + c · towards) at c = 0, for N directions: N copies of the text, unpadded."""
    batch = collate([text] * len(towards))
    x, held = subject.embed(batch), None if weights is None else weights.expand(len(towards), -1)
    up, down = (
        chance(subject, batch, x + sign * STEP * towards, target, held) for sign in (1.0, -1.0)
    )
    return (up - down) / (2 * STEP)


def shuffled(mask, weights, seed=0):
    """The words' weights in another order, text by text."""
    random, found = np.random.default_rng(seed), weights.clone()
    for row in range(len(mask)):
        places = mask[row].nonzero()[:, 0]
        found[row, places] = weights[row, places[random.permutation(len(places))]]
    return found


@kinds
@pytest.mark.parametrize("held", ["fixed", "free"])
def test_one_hot_gradient_is_the_slope_along_each_words_own_vector(
    encoder, attention, classes, held
):
    subject, encoded, batch, target = case(encoder, attention, classes)
    found = methods.build("one_hot_gradient", attention=held)(BatchContext(subject, batch), target)
    assert not found.scores[~batch.mask].any()
    for row, text in enumerate(encoded):
        alone, words = collate([text]), range(1, len(text.ids) - 1)
        weights = subject.forward(alone).attention if held == "fixed" else None
        x = subject.embed(alone)[0]
        towards = torch.zeros(len(words), *x.shape, dtype=torch.float64)
        for number, t in enumerate(words):
            towards[number, t] = x[t]
        want = slopes(subject, text, int(target[row]), weights, towards).abs()
        close(found.scores[row, 1 : len(words) + 1], want, atol=1e-8, rtol=1e-5)


@kinds
@pytest.mark.parametrize("held", ["fixed", "free"])
def test_one_hot_gradient_is_captums_input_x_gradient(encoder, attention, classes, held):
    captum = pytest.importorskip("captum.attr")
    subject, encoded, batch, target = case(encoder, attention, classes)
    found = methods.build("one_hot_gradient", attention=held)(BatchContext(subject, batch), target)
    for row, text in enumerate(encoded):
        alone = collate([text])
        weights = subject.forward(alone).attention if held == "fixed" else None

        def output(x, alone=alone, row=row, weights=weights):
            return chance(subject, alone, x, int(target[row]), weights)

        x = subject.embed(alone).detach().requires_grad_()
        want = captum.InputXGradient(output).attribute(x).sum(-1).abs()[0]
        n = len(text.ids)
        words = batch.mask[row, :n]
        close(found.scores[row, :n][words], want[words].detach(), atol=1e-12, rtol=1e-9)


@kinds
@pytest.mark.parametrize("held", ["own", "shuffled", "free"])
def test_gradient_is_the_slope_in_every_coordinate(encoder, attention, classes, held):
    subject, encoded, batch, target = case(encoder, attention, classes)
    context = BatchContext(subject, batch)
    own = context.forward.attention
    weights = {"own": own, "shuffled": shuffled(batch.mask, own), "free": None}[held]
    found = context.gradient(target, attention=weights)
    assert not found[~batch.present].any()
    assert not found.requires_grad
    for row, text in enumerate(encoded):
        n = len(text.ids)
        held_at = None if weights is None else weights[row : row + 1, :n]
        towards = torch.eye(n * 6, dtype=torch.float64).reshape(n * 6, n, 6)
        want = slopes(subject, text, int(target[row]), held_at, towards).reshape(n, 6)
        close(found[row, :n], want, atol=1e-8, rtol=1e-5)  # the two signs too: a BiLSTM reads them


def test_holding_attention_fixed_matters_and_the_order_of_calls_does_not():
    subject, _, batch, target = case("bilstm", "additive", 2)
    one, other = BatchContext(subject, batch), BatchContext(subject, batch)
    own = one.forward.attention
    moved = shuffled(batch.mask, own)
    asked = [own, None, moved]
    first = [one.gradient(target, attention=weights) for weights in asked]
    last = [other.gradient(target, attention=weights) for weights in reversed(asked)][::-1]
    for a, b in zip(first, last, strict=True):
        close(a, b, atol=0, rtol=0)
    assert (first[0] - first[1]).abs().max() > 1e-3
    assert (first[0] - first[2]).abs().max() > 1e-3


@pytest.mark.parametrize("encoder", ["average", "mlp"])
def test_held_fixed_the_gradient_of_a_word_wise_model_carries_the_factor_alpha(encoder):
    subject, _, batch, target = case(encoder, "additive", 2)
    context = BatchContext(subject, batch)
    own = context.forward.attention
    moved = shuffled(batch.mask, own, seed=3)
    p, q = context.forward.probabilities[:, 1], context.decode(moved).softmax(-1)[:, 1]
    factor = ((q * (1 - q)) / (p * (1 - p)))[:, None] * (moved / own.masked_fill(~batch.mask, 1.0))
    want = context.gradient(target, attention=own) * factor[..., None]
    close(context.gradient(target, attention=moved), want, atol=1e-12, rtol=1e-9)
