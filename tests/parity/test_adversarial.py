"""Adversarial attention against grids, all vertices, random draws and a plain autograd search."""

import math
from itertools import combinations, product

import numpy as np
import pytest
import torch
from scipy.special import rel_entr

from heedful.checks.interventions import interventions
from heedful.checks.interventions.certified_optimum import jsd_bound
from heedful.core.errors import NotApplicable
from heedful.core.rng import normal_keys
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.linear_programs import farthest_in_slab, log_odds_bounds
from support import subjects

KINDS = [("bilstm", "additive"), ("average", "dot"), ("cnn", "additive")]


def jsd(a, q):
    """Jensen–Shannon divergence in nats, by scipy's p log p/m."""
    m = (a + q) / 2
    return (rel_entr(a, m) + rel_entr(q, m)).sum(-1) / 2


def sigmoid(z):
    return 1 / (1 + np.exp(-z)) if z > 0 else np.exp(z) / (1 + np.exp(z))


def slab_of(p, epsilon):
    """Log-odds of p ∓ ε, infinite where p runs out."""
    low = math.log((p - epsilon) / (1 - p + epsilon)) if p > epsilon else -math.inf
    high = math.log((p + epsilon) / (1 - p - epsilon)) if p < 1 - epsilon else math.inf
    return low, high


def all_vertices(q, s, low, high):
    """The largest JSD among all vertices of simplex ∩ slab: points inside, pairs on a face."""
    best, T = -1.0, len(q)
    for t in range(T):
        if low <= s[t] <= high:
            best = max(best, float(jsd(np.eye(T)[t], q)))
    for (i, j), face in product(combinations(range(T), 2), (low, high)):
        if math.isfinite(face) and min(s[i], s[j]) < face < max(s[i], s[j]):
            a = np.zeros(T)
            a[i] = (face - s[j]) / (s[i] - s[j])
            a[j] = 1 - a[i]
            best = max(best, float(jsd(a, q)))
    return best


def farthest(problems):
    """The answers to (q, s, ε) problems, as one batch between a first and a last sign."""
    width = max(len(q) for q, _, _ in problems) + 2
    q, s = np.zeros((len(problems), width)), np.full((len(problems), width), 7.0)
    mask = np.zeros(q.shape, dtype=bool)
    low, high = np.zeros(len(problems)), np.zeros(len(problems))
    for b, (weights, scores, epsilon) in enumerate(problems):
        inside = slice(1, len(weights) + 1)
        q[b, inside], s[b, inside], mask[b, inside] = weights, scores, True
        z = torch.tensor([[0.0, float(weights @ scores)]], dtype=torch.float64).softmax(-1)
        ends = log_odds_bounds(z[:, 1], z[:, 0], epsilon)
        low[b], high[b] = ends[0].item(), ends[1].item()
    found = farthest_in_slab(
        *map(torch.from_numpy, (q, s, mask)), low=torch.from_numpy(low), high=torch.from_numpy(high)
    )
    attention = found.attention(width).numpy()
    assert not attention[~mask].any()
    return [
        (value, attention[b, 1 : len(problems[b][0]) + 1])
        for b, value in enumerate(found.jsd.tolist())
    ]


def problem(random, T):
    """Attention flat or peaked, at times with zeros; scores small or saturating, at times tied."""
    q = random.dirichlet(np.full(T, random.choice([0.2, 1.0, 10.0])))
    if T > 2 and random.random() < 0.25:
        q[random.integers(T)] = 0.0
    s = random.normal(random.choice([0.0, 2.0]), random.choice([0.3, 1.0, 4.0, 30.0]), T)
    if random.random() < 0.25:
        s = np.round(s)  # ties
    return q / q.sum(), s, float(random.choice([0.01, 0.05, 0.2]))


def check(q, s, epsilon, value, a):
    """The answer is a distribution within ε, of the distance it claims, and the best vertex."""
    assert a.min() >= 0
    assert a.sum() == pytest.approx(1, abs=1e-12)
    assert value == pytest.approx(float(jsd(a, q)), abs=1e-9)
    p = sigmoid(q @ s)
    assert abs(sigmoid(a @ s) - p) <= epsilon + 1e-9
    assert value == pytest.approx(all_vertices(q, s, *slab_of(p, epsilon)), abs=1e-9)


def grid(T, n):
    """All distributions over T tokens in steps of 1/n."""
    bars = np.array(list(combinations(range(n + T - 1), T - 1)))
    edges = np.concatenate(
        [np.full((len(bars), 1), -1), bars, np.full((len(bars), 1), n + T - 1)], 1
    )
    return (np.diff(edges, axis=1) - 1) / n


@pytest.mark.parametrize(("T", "steps"), [(2, 4000), (3, 120), (4, 40)])
def test_no_point_of_a_grid_lies_farther(T, steps):
    random, points, met = np.random.default_rng(T), grid(T, steps), 0
    problems = [problem(random, T) for _ in range(200)]
    for (q, s, epsilon), (value, _) in zip(problems, farthest(problems), strict=True):
        z, p = points @ s, sigmoid(q @ s)
        change = np.abs(0.5 * (1 + np.tanh(z / 2)) - p)
        feasible = points[change <= epsilon]
        met += bool(len(feasible))
        assert not len(feasible) or jsd(feasible, q).max() <= value + 1e-9
    assert met > 100


@pytest.mark.parametrize("T", [1, 2, 3, 5, 8, 12])
def test_exact_answer_is_the_best_of_all_vertices(T):
    random = np.random.default_rng(100 + T)
    problems = [problem(random, T) for _ in range(60)]
    for one, (value, a) in zip(problems, farthest(problems), strict=True):
        check(*one, value, a)


@pytest.mark.parametrize(
    ("q", "s"),
    [
        ([1.0], [3.0]),  # one word
        ([0.2, 0.3, 0.5], [1.0, 1.0, 1.0]),  # the output never moves: the lightest token
        ([0.2, 0.3, 0.5], [0.0, 0.0, 2.0]),  # ties
        ([0.2, 0.3, 0.5], [900.0, 800.0, 700.0]),  # p = 1 in float64
        ([0.2, 0.3, 0.5], [-45.0, -40.0, -42.0]),
        ([0.2, 0.3, 0.5], [-60.0, 50.0, 12.0]),  # saturated, but other attentions are not
        ([0.0, 1.0, 0.0], [-1.0, 0.0, 1.0]),  # all weight on one word already
        ([0.0, 0.0, 1.0], [5.0, 6.0, 0.0]),
        ([0.5, 0.5], [-300.0, 300.0]),
    ],
)
@pytest.mark.parametrize("epsilon", [1e-6, 0.05, 0.5, 1.0])
def test_exact_answer_at_the_corners(q, s, epsilon):
    one = (np.array(q), np.array(s), epsilon)
    ((value, a),) = farthest([one])
    check(*one, value, a)


@pytest.mark.parametrize("epsilon", [0.01, 0.05, 0.3])
def test_slab_holds_every_output_in_the_ball_and_for_two_classes_no_other(epsilon):
    random = np.random.default_rng(5)
    for C in (2, 3):
        p, near = random.dirichlet(np.ones(C)), random.dirichlet(np.ones(C), 20_000)
        if C == 3:
            near = np.clip(p + (near - 1 / 3) * 2 * epsilon, 1e-12, 1)
            near /= near.sum(1, keepdims=True)
        low, high = (
            end.item() for end in log_odds_bounds(*torch.tensor(p)[[1, 0]].split(1), epsilon)
        )
        odds, inside = np.log(near[:, 1] / near[:, 0]), np.abs(near - p).sum(1) / 2 <= epsilon
        assert inside.any()
        assert (odds[inside] >= low - 1e-12).all()
        assert (odds[inside] <= high + 1e-12).all()
        assert C == 3 or (inside == ((odds >= low) & (odds <= high))).all()


def context(kind, lengths, *, classes=2, seed=0, sharper=1.0):
    """Random texts before a random subject; `sharper` weights saturate outputs and attention."""
    subject = subjects.subject(*kind, classes=classes, seed=seed)
    for name, parameter in subject.network.named_parameters():
        if name.startswith(("decoder", "attention.out", "attention.query")):
            parameter.data.mul_(sharper)
    return BatchContext(subject, subjects.batch(subject, lengths, seed=seed + 1))


def texts(found):
    """Per text: attention, contributions + bias of its words, output; float64 numpy."""
    decoder = found.subject.decoder(found.batch, found.forward)
    values = (decoder.contributions + decoder.bias).numpy()
    for b, mask in enumerate(found.batch.mask.numpy()):
        q, p = found.forward.attention[b].numpy()[mask], found.forward.probabilities[b].numpy()
        yield q, values[b][mask], p


def output(a, values):
    z = a @ values
    exact = np.exp(z - z.max(-1, keepdims=True))
    return exact / exact.sum(-1, keepdims=True)


def judged(found, attention):
    """(JSD from the model's own, change of output) of each text, by the subject's decoder."""
    logits = found.subject.decoder(found.batch, found.forward)(attention)
    change = (logits.softmax(-1) - found.forward.probabilities).abs().sum(-1) / 2
    return jsd(attention.numpy(), found.forward.attention.numpy()), change.numpy()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sharper", [1.0, 8.0])
@pytest.mark.parametrize("epsilon", [0.05, 0.3])
def test_certified_is_the_best_of_all_vertices_of_each_text(kind, sharper, epsilon):
    found = context(kind, [1, 2, 3, 7, 12, 5, 9, 4], sharper=sharper, seed=3)
    attention = interventions.build("certified", epsilon=epsilon)(found)
    assert attention.shape[0] == 1
    reached, change = judged(found, attention[0])
    assert change.max() <= epsilon + 1e-9
    for value, (q, values, p) in zip(reached, texts(found), strict=True):
        s = values[:, 1] - values[:, 0]
        assert value == pytest.approx(all_vertices(q, s, *slab_of(p[1], epsilon)), abs=1e-8)


def test_certified_refuses_more_than_two_classes():
    with pytest.raises(NotApplicable):
        interventions.build("certified")(context(KINDS[0], [3], classes=3))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.05, 0.3])
def test_no_random_attention_exceeds_the_bound(kind, epsilon):
    found, random, met = context(kind, [2, 3, 4, 6], classes=3, seed=6), np.random.default_rng(1), 0
    bound = jsd_bound(found, epsilon=epsilon).tolist()
    for limit, (q, values, p) in zip(bound, texts(found), strict=True):
        sharp = [random.dirichlet(np.full(len(q), k), 7_000) for k in (0.1, 0.4, 1.0)]
        near = 0.3 * q + 0.7 * sharp[0]
        draws = np.concatenate([*sharp, near])
        inside = np.abs(output(draws, values) - p).sum(1) / 2 <= epsilon
        met += inside.sum()
        assert not inside.any() or jsd(draws[inside], q).max() <= limit + 1e-12
        pairs = [math.inf, float(jsd(np.eye(len(q))[q.argmin()], q))]
        for i, j in combinations(range(3), 2):
            low = math.log((p[i] - epsilon) / (p[j] + epsilon)) if p[i] > epsilon else -math.inf
            high = math.log((p[i] + epsilon) / (p[j] - epsilon)) if p[j] > epsilon else math.inf
            pairs.append(all_vertices(q, values[:, i] - values[:, j], low, high))
        assert limit == pytest.approx(min(pairs), abs=1e-9)
    assert met > 100


@pytest.mark.parametrize("kind", KINDS)
def test_bound_for_two_classes_is_the_point_on_the_lightest_token(kind):
    found = context(kind, [1, 2, 5, 9])
    for limit, (q, _, _) in zip(jsd_bound(found, epsilon=0.05).tolist(), texts(found), strict=True):
        assert limit == pytest.approx(float(jsd(np.eye(len(q))[q.argmin()], q)), abs=1e-12)


def test_bound_of_a_text_without_words_is_zero_for_three_classes():
    assert jsd_bound(context(KINDS[0], [0, 3], classes=3), epsilon=0.05)[0].item() == 0.0


def plain_search(found, *, steps, candidates=5, rate=0.01, penalty=500.0, hinge=0.01, spread=3.0):
    """The published loss, minimised by torch's own Adam through autograd, text by text."""
    for b, (q, values, p) in enumerate(texts(found)):
        q, values, p = map(torch.from_numpy, (q, values, p))
        text, T = found.batch.content[b], len(q)
        noise = normal_keys(found.seed, "adversarial", [text], draws=candidates, lengths=[T])[0]
        logits = (math.log(1 / T) + spread * torch.from_numpy(noise)).requires_grad_()
        adam = torch.optim.Adam([logits], lr=rate, amsgrad=True)

        def distance(one, other, tiny=1e-10):
            m = (one + other) / 2
            each = (
                one * ((one + tiny) / (m + tiny)).log()
                + other * ((other + tiny) / (m + tiny)).log()
            )
            return each.sum(-1) / 2

        for _ in range(steps):
            adam.zero_grad()
            a = logits.softmax(-1)
            change = ((a @ values).softmax(-1) - p).abs().sum(-1) / 2
            loss = (-distance(a, q) + penalty * (change - hinge).clamp(min=0)).sum()
            (loss - distance(a[:, None], a[None]).mean()).backward()
            adam.step()
        a = logits.detach().softmax(-1).numpy()
        yield a, np.abs(output(a, values.numpy()) - p.numpy()).sum(1) / 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("epsilon", [1.0, 0.05])
def test_search_is_that_of_plain_autograd(kind, classes, epsilon):
    found = context(kind, [1, 2, 5, 9, 6], classes=classes, seed=11)
    attention = interventions.build("adversarial", epsilon=epsilon, steps=30)(found)[0].numpy()
    rows = zip(plain_search(found, steps=30), texts(found), found.batch.mask.numpy(), strict=True)
    for b, ((a, change), (q, _, _), mask) in enumerate(rows):
        a = np.concatenate([q[None], a[change <= epsilon]])  # the model's own is always there
        want = a[jsd(a, q).argmax()]
        np.testing.assert_allclose(attention[b, mask], want, rtol=0, atol=1e-6)


def test_every_setting_of_the_search_is_heard():
    found = context(KINDS[0], [4, 7], seed=2)
    settings = {"candidates": 3, "rate": 0.07, "penalty": 20.0, "hinge": 0.1, "spread": 1.5}
    attention = interventions.build("adversarial", epsilon=1.0, steps=12, **settings)(found)[0]
    rows = zip(plain_search(found, steps=12, **settings), texts(found), strict=True)
    for b, ((a, _), (q, _, _)) in enumerate(rows):
        mask = found.batch.mask[b].numpy()
        want = a[jsd(a, q).argmax()]
        np.testing.assert_allclose(attention[b].numpy()[mask], want, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tuned", [{}, {"candidates": 10, "rate": 0.1, "penalty": 20.0}])
def test_no_search_finds_more_than_the_certificate(kind, tuned):
    lengths = np.random.default_rng(4).integers(1, 16, 50).tolist()
    found = context(kind, lengths, seed=21)
    steps = 200 if tuned else 500
    searched = interventions.build("adversarial", steps=steps, **tuned)(found)[0]
    certified, bound = interventions.build("certified")(found)[0], jsd_bound(found, epsilon=0.05)
    (by_search, moved), (exact, change) = judged(found, searched), judged(found, certified)
    assert moved.max() <= 0.05 + 1e-12
    assert change.max() <= 0.05 + 1e-9
    assert (exact >= by_search - 1e-6).all()
    assert (bound.numpy() >= exact - 1e-9).all()
    assert by_search.mean() > 0.5 * exact.mean()  # and the search is a search


@pytest.mark.parametrize("kind", KINDS)
def test_search_stays_within_epsilon_and_the_bound_for_three_classes(kind):
    found = context(kind, [1, 3, 8, 12, 5], classes=3, seed=22)
    attention = interventions.build("adversarial", rate=0.1, steps=200)(found)[0]
    reached, change = judged(found, attention)
    assert change.max() <= 0.05 + 1e-12
    assert (reached <= jsd_bound(found, epsilon=0.05).numpy() + 1e-9).all()
