"""Leverage, the most that any attention can do, against points, random draws and scipy's ascent."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from heedful.checks.interventions import interventions
from heedful.core.batch import collate
from heedful.core.values import Example
from heedful.models.batch_context import BatchContext
from support import subjects

KINDS = [("bilstm", "additive"), ("average", "dot"), ("cnn", "additive")]
LENGTHS = [1, 2, 3, 5, 8, 12, 20]

kinds = pytest.mark.parametrize("kind", KINDS)
sharpness = pytest.mark.parametrize("sharper", [0.3, 1.0, 6.0])


def softmax(z):
    exact = np.exp(z - z.max(-1, keepdims=True))
    return exact / exact.sum(-1, keepdims=True)


def random_sitting(kind, sharper, *, classes, seed):
    """Random texts before a random subject; `sharper` weights saturate its outputs."""
    subject = subjects.subject(*kind, classes=classes, seed=seed)
    for parameter in subject.network.decoder.parameters():
        parameter.data.mul_(sharper)
    return BatchContext(subject, subjects.batch(subject, LENGTHS, seed=seed))


def given_sitting(values, weights):
    """A text of up to six words whose logits (T, C) and attention are these, by construction."""
    T, C = values.shape
    subject = subjects.subject("average", "dot", classes=C)
    network = subject.network
    network.embedding.weight.data[4:10] = torch.eye(6)
    network.encoder.project.weight.data[:] = torch.eye(8)[:, :6]  # word t: tanh(1) on axis t
    for bias in (network.encoder.project.bias, network.decoder.bias):
        bias.data.zero_()
    network.decoder.weight.data[:, :T] = torch.from_numpy(values.T / np.tanh(1))
    network.attention.query.weight.data[0, :T] = torch.from_numpy(
        np.log(weights) * np.sqrt(8) / np.tanh(1)
    )
    return BatchContext(
        subject, collate([subject.encode(Example(0, " ".join(subjects.WORDS[:T]), 0))])
    )


def judged(context, **settings):
    """Per text: change of output that leverage caused, its words' logits, the model's output."""
    attention = interventions.build("leverage", **settings)(context)
    assert attention.shape == (1, *context.batch.ids.shape)
    assert (attention >= 0).all()
    np.testing.assert_allclose(attention[0].sum(-1).numpy(), 1.0, atol=1e-12)
    decoder = context.subject.decoder(context.batch, context.forward)
    moved, before = softmax(decoder(attention)[0].numpy()), softmax(context.forward.logits.numpy())
    values = (decoder.contributions + decoder.bias).numpy()
    for b, mask in enumerate(context.batch.mask.numpy()):
        yield np.abs(moved[b] - before[b]).sum() / 2, values[b][mask], before[b]


def change(attention, values, before):
    return np.abs(softmax(attention @ values) - before).sum(-1) / 2


def draws(random, T):
    """5 000 attentions and more: from near one token to even."""
    return np.concatenate([random.dirichlet(np.full(T, k), 2_000) for k in (0.1, 1.0, 5.0)])


@kinds
@sharpness
def test_two_classes_all_weight_on_one_word_is_the_most(kind, sharper):
    random = np.random.default_rng(1)
    for found, values, before in judged(random_sitting(kind, sharper, classes=2, seed=2)):
        points = max(float(change(point, values, before)) for point in np.eye(len(values)))
        assert found == pytest.approx(points, abs=1e-12)
        assert change(draws(random, len(values)), values, before).max() <= found + 1e-12


@kinds
@sharpness
@pytest.mark.parametrize("classes", [3, 4])
def test_more_classes_no_point_and_for_three_no_draw_moves_more(kind, sharper, classes):
    random = np.random.default_rng(3)
    for found, values, before in judged(random_sitting(kind, sharper, classes=classes, seed=4)):
        points = max(float(change(point, values, before)) for point in np.eye(len(values)))
        assert found >= points - 1e-12
        if classes == 3:
            assert change(draws(random, len(values)), values, before).max() <= found + 1e-3


def most(values, target):
    """max log p_target over attentions: concave, so scipy's local answer is the global one."""
    T = len(values)

    def loss(a):
        z = a @ values
        return np.log(np.exp(z - z.max()).sum()) + z.max() - z[target]

    def slope(a):
        return values @ softmax(a @ values) - values[:, target]

    found = minimize(
        loss,
        np.full(T, 1 / T),
        jac=slope,
        method="SLSQP",
        bounds=[(0, 1)] * T,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1, "jac": lambda a: np.ones(T)},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    a = np.clip(found.x, 0, None)
    return softmax(a / a.sum() @ values)[target]


def truth(values, before):
    """Three classes: TVD is the largest |Δp_c|; the least p_c lies at a point, the most inside."""
    each = softmax(values)
    falls = [before[c] - each[:, c].min() for c in range(3)]
    return max(*falls, *(most(values, c) - before[c] for c in range(3)))


@kinds
@sharpness
def test_three_classes_equal_scipys_ascent_of_each_class(kind, sharper):
    for found, values, before in judged(random_sitting(kind, sharper, classes=3, seed=5)):
        assert found == pytest.approx(truth(values, before), abs=1e-3)


# Two words call for classes 1 and 2; mixed they leave class 0, which neither calls for.
MIXTURE = np.array([[0.1, 0.45, 0.45], [0.1, 0.8999, 0.0001], [0.1, 0.0001, 0.8999]])


def test_three_classes_where_a_mixture_moves_more_than_any_word():
    ((found, values, before),) = judged(
        given_sitting(np.log(MIXTURE), np.array([0.998, 0.001, 0.001]))
    )
    assert found > 0.2 + max(float(change(point, values, before)) for point in np.eye(3))


def test_the_ascent_ends_within_a_thousandth_of_the_optimum():
    ((found, values, before),) = judged(
        given_sitting(np.log(MIXTURE), np.array([0.998, 0.001, 0.001]))
    )
    assert found >= truth(values, before) - 1e-3


def test_three_classes_on_problems_where_mixtures_matter():
    random, met = np.random.default_rng(8), 0
    for _ in range(80):
        outputs = random.dirichlet(np.full(3, random.choice([0.1, 0.5])), 6) * 0.9 + 1e-6
        outputs[:, 0] += 0.1  # every word leaves class 0 some chance
        values = np.log(outputs / outputs.sum(1, keepdims=True))
        weights = random.dirichlet(np.full(6, 0.3)) + 1e-9
        weights /= weights.sum()
        before = softmax(weights @ values)
        points = max(float(change(point, values, before)) for point in np.eye(6))
        best = truth(values, before)
        if best > points + 1e-3:
            ((found, _, output),) = judged(given_sitting(values, weights))
            np.testing.assert_allclose(output, before, rtol=0, atol=1e-12)
            assert points - 1e-12 <= found <= best + 1e-9
            assert found >= best - 1e-3
            met += 1
    assert met > 3


def test_more_rounds_never_find_less():
    context = random_sitting(("bilstm", "dot"), 1.0, classes=3, seed=9)
    found = [[value for value, _, _ in judged(context, rounds=rounds)] for rounds in (1, 5, 50)]
    assert (np.diff(found, axis=0) >= -1e-12).all()
