"""Every measure of every check, worked out again text by text from the formulas."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from test_adversarial import all_vertices, jsd, slab_of
from test_leverage import truth

from heedful.checks import checks
from heedful.checks.interventions import interventions
from heedful.checks.interventions.certified_optimum import jsd_bound
from heedful.core.batch import collate
from heedful.core.records import Series
from heedful.core.rng import uniform_keys
from heedful.core.values import Example
from heedful.methods import methods
from heedful.models.batch_context import BatchContext
from support import measured_values, subjects

KINDS = [
    ("bilstm", "additive", 2),
    ("average", "dot", 2),
    ("cnn", "additive", 2),
    ("bilstm", "additive", 3),
    ("average", "dot", 3),
]
LENGTHS = [1, 2, 3, 6, 9, 14, 21, 36]
SEED = 5

kinds = pytest.mark.parametrize("kind", KINDS, ids=str)


class Text:
    """One text before its subject, alone and unpadded: all quantities in float64 numpy."""

    def __init__(self, subject, encoded):
        self.subject, self.encoded, self.words = subject, encoded, encoded.words
        forward = self.alone(self.words)
        self.n, self.p = len(self.words), self.softmax(forward.logits[0].numpy())
        self.target = int(self.p.argmax())
        self.alpha = forward.attention[0, 1:-1].numpy()
        self.states = forward.states[0, 1:-1].numpy()
        layer = subject.network.decoder
        weight, bias = layer.weight.numpy(), layer.bias.numpy()
        if len(weight) == 1:
            weight, bias = np.stack([0 * weight[0], weight[0]]), np.array([0.0, bias[0]])
        self.parts, self.bias = self.states @ weight.T, bias  # what state t adds to each logit

    @staticmethod
    def softmax(z):
        exact = np.exp(z - z.max())
        return exact / exact.sum()

    def alone(self, words, x=None):
        example = Example(self.encoded.index, " ".join(words), 0)
        return self.subject.forward(collate([self.subject.encode(example)]), x)

    def output(self, alpha):
        return self.softmax(alpha @ self.parts + self.bias)

    def change(self, alpha):
        return np.abs(self.output(alpha) - self.p).sum() / 2

    def leave_one_out(self, target=None):
        """Distance of the outputs with and without each word (two classes: |Δp|), or one |Δp|."""
        shorter = [self.words[:t] + self.words[t + 1 :] for t in range(self.n)]
        after = [self.softmax(self.alone(words).logits[0].numpy()) for words in shorter]
        moved = np.abs(np.array(after) - self.p)
        return moved.sum(1) / 2 if target is None else moved[:, target]

    def gradient(self, alpha):
        """|⟨x_t, ∂p/∂x_t⟩| of the predicted class, attention held at alpha."""
        x = self.subject.embed(collate([self.encoded])).detach().requires_grad_()
        states = self.alone(self.words, x).states[0, 1:-1]
        layer = self.subject.network.decoder
        z = torch.from_numpy(alpha) @ states @ layer.weight.T + layer.bias
        z = torch.cat([torch.zeros(1), z]) if len(z) == 1 else z
        z.softmax(-1)[self.target].backward()
        return (x * x.grad).sum(-1).abs().detach().numpy()[0, 1:-1]

    def shuffles(self, purpose, draws):
        """alpha dealt out in the order of the text's keys, `draws` times."""
        content = self.encoded.content
        keys = uniform_keys(SEED, purpose, [content], draws=draws, lengths=[self.n])[0]
        return [np.array([self.alpha[k] for k in np.argsort(row)]) for row in keys]


def ranks(scores):
    """Ranks with ties: neighbours within a millionth of the largest score are equal."""
    allowed, found, now, before = 1e-6 * np.abs(scores).max() + 1e-12, {}, 0, None
    for t in sorted(range(len(scores)), key=scores.__getitem__):
        now += before is not None and scores[t] - before > allowed
        found[t], before = now, scores[t]
    return [found[t] for t in range(len(scores))]


def kendall(a, b):
    """(τ, p) of scipy on tied ranks; NaN where scipy says so."""
    if len(a) < 2:
        return math.nan, math.nan
    found = stats.kendalltau(ranks(a), ranks(b))
    return float(found.statistic), float(found.pvalue)


def share_a_top(a, b):
    a, b = ranks(a), ranks(b)
    return float(any(x == max(a) and y == max(b) for x, y in zip(a, b, strict=True)))


def columns(findings):
    return measured_values.columns(findings)


def case(kind, lengths=LENGTHS):
    encoder, attention, classes = kind
    subject = subjects.subject(encoder, attention, classes=classes, seed=12)
    encoded = subjects.encoded(subject, lengths, seed=13)
    return BatchContext(subject, collate(encoded), seed=SEED), [
        Text(subject, one) for one in encoded
    ]


def same(found, want, **tolerance):
    np.testing.assert_allclose(
        found, want, **({"rtol": 0, "atol": 1e-9} | tolerance), equal_nan=True
    )


def test_every_registered_check_is_worked_out_here():
    apart = {"erasure", "faithfulness", "plausibility", "randomisation"}
    apart |= {"identifiability", "influence"}  # in tests of their own
    apart |= {one for one in checks if checks.spec(one).retrains}  # in test_retraining_checks
    assert set(checks) - apart == {"agreement", "permutation", "adversarial", "mechanism"}


@kinds
def test_agreement(kind):
    context, texts = case(kind)
    check = checks.build("agreement", shuffles=4, level=0.2, methods=("random", "leave_one_out"))
    found = columns(check(context))
    want = {name: [] for name in found if "_pair[" not in name}  # in test_method_pairs
    draws = methods.build("random")(context, context.predicted).scores
    for row, text in enumerate(texts):
        gradient, loo = text.gradient(text.alpha), text.leave_one_out()
        shuffled = text.shuffles("shuffled", 4)
        for name, one, other in (
            ("gradient", text.alpha, gradient),
            ("leave_one_out", text.alpha, loo),
            ("gradient_leave_one_out", gradient, loo),
            ("gradient_shuffled", shuffled[0], text.gradient(shuffled[0])),
            ("leave_one_out[random]", draws[row, 1 : text.n + 1].numpy(), loo),
            ("leave_one_out[leave_one_out]", text.leave_one_out(text.target), loo),
        ):
            tau, p = kendall(one, other)
            want[f"tau_{name}"].append(tau)
            if name in ("gradient", "leave_one_out", "gradient_leave_one_out"):
                want[f"significant_{name}"].append(math.nan if math.isnan(p) else p <= 0.2)
            if name in ("gradient", "leave_one_out"):
                want[f"p_{name}"].append(p)
                top = math.nan if math.isnan(tau) else share_a_top(one, other)
                want[f"top1_{name}"].append(top)
        with_both = [want["tau_gradient"][-1], want["tau_leave_one_out"][-1]]
        want["tau_references"].append(want["tau_gradient_leave_one_out"][-1])
        want["tau_attention_references"].append(sum(with_both) / 2)
        want["tau_shuffled_leave_one_out"].append(np.mean([kendall(a, loo)[0] for a in shuffled]))
    for name, values in want.items():
        same(found[name], values, err_msg=name)
    whole = check.measure_all({Series(name): values for name, values in found.items()})
    known = {*map(measured_values.plain, found), *whole}
    listed = measured_values.measures(checks.spec("agreement"))
    assert listed - known == {"references_gap", "word_mass"}  # a difference, and of layers
    assert known <= listed
    for name in ("gradient", "leave_one_out"):
        p = found[f"p_{name}"]
        held = np.full(len(p), math.nan)
        held[~np.isnan(p)] = stats.false_discovery_control(p[~np.isnan(p)]) <= 0.2
        same(whole[f"significant_{name}_bh"], held)


@kinds
@pytest.mark.parametrize("draws", [6, 7])
def test_permutation(kind, draws):
    context, texts = case(kind)
    found = columns(checks.build("permutation", draws=draws)(context))
    for row, text in enumerate(texts):
        median = np.median([text.change(a) for a in text.shuffles("permutation", draws)])
        same(found["median_tvd"][row], median)
        same(found["max_attention"][row], text.alpha.max())
        if kind[2] == 2:
            leverage = max(text.change(point) for point in np.eye(text.n))
        else:
            leverage = truth(text.parts + text.bias, text.p)
        same(found["leverage"][row], leverage, atol=1e-9 if kind[2] == 2 else 1e-3)
        share = median / found["leverage"][row] if text.n > 1 else math.nan
        same(found["median_of_leverage"][row], share)


@kinds
def test_adversarial(kind):
    context, texts = case(kind, [1, 2, 3, 6, 9, 14])
    settings = {
        "epsilon": 0.08,
        "steps": 25,
        "candidates": 3,
        "rate": 0.05,
        "penalty": 50.0,
        "hinge": 0.02,
    }
    findings = checks.build("adversarial", **settings)(context)
    found = columns(findings)
    searched = interventions.build("adversarial", **settings)(context)[0].numpy()
    ascended = interventions.build("ascent", epsilon=0.08)(context)[0].numpy()
    bound = jsd_bound(context, epsilon=0.08).tolist()  # itself under test in test_adversarial
    for row, text in enumerate(texts):
        best, moved = jsd(searched[row, 1 : text.n + 1], text.alpha), searched[row, 1 : text.n + 1]
        same(found["epsilon_max_jsd"][row], best)
        same(found["bound_jsd"][row], bound[row])
        if kind[2] == 2:
            s = text.parts[:, 1] + text.bias[1]
            exact = all_vertices(text.alpha, s, *slab_of(text.p[1], 0.08))
            same(found["certified_jsd"][row], exact, atol=1e-8)
            exactly = interventions.build("certified", epsilon=0.08)(context)[
                0, row, 1 : text.n + 1
            ]
            best, moved = exact, exactly.numpy()
        else:  # by linear programs, under test in test_ascent; the farther of both counts
            climbed = ascended[row, 1 : text.n + 1]
            same(found["ascent_jsd"][row], jsd(climbed, text.alpha))
            if jsd(climbed, text.alpha) > best:
                best, moved = jsd(climbed, text.alpha), climbed
        same(found["of_bound"][row], best / bound[row] if text.n > 1 else math.nan, atol=1e-7)
        same(found["output_tvd"][row], text.change(moved), atol=1e-8)
        assert found["output_tvd"][row] <= 0.08 + 1e-9
    missing = set(measured_values.missing(findings))
    assert missing == {"ascent_jsd" if kind[2] == 2 else "certified_jsd"}
    assert not missing & set(found)


@kinds
def test_mechanism(kind):
    context, texts = case(kind)
    found = columns(checks.build("mechanism")(context))
    for row, text in enumerate(texts):
        spread = text.parts - text.parts.mean(1, keepdims=True)  # softmax sees differences only
        weighted = text.alpha * np.sqrt((spread**2).sum(1))
        if kind[2] == 2:
            weighted = np.abs(text.alpha * text.parts[:, 1])
        same(found["tau_weighting"][row], kendall(text.alpha, weighted)[0])
        same(found["tau_mixing"][row], kendall(weighted, text.leave_one_out())[0])
        mean = text.states.mean(0)
        cosines = [h @ mean / math.sqrt((h @ h) * (mean @ mean)) for h in text.states]
        same(found["conicity"][row], np.mean(cosines))


@pytest.mark.parametrize("encoder", ["bilstm", "average"])
def test_an_undefined_tau_is_no_number(encoder):
    context, texts = case((encoder, "uniform", 2), [1, 1, 2, 8, 15])
    found = {}
    for name in ("agreement", "mechanism"):
        found |= columns(checks.build(name)(context))
    of_attention = ["tau_gradient", "tau_leave_one_out", "tau_shuffled_leave_one_out"]
    of_attention += ["tau_gradient_shuffled", "tau_weighting", "p_gradient", "p_leave_one_out"]
    of_attention += ["significant_gradient", "significant_leave_one_out"]
    for name in of_attention:  # all words tied
        assert np.isnan(found[name]).all(), name
    of_others = ["tau_gradient_leave_one_out", "significant_gradient_leave_one_out", "tau_mixing"]
    for name in of_others:  # one word
        assert np.isnan(found[name]).tolist() == [text.n == 1 for text in texts], name
    series = {Series(name): values for name, values in found.items()}
    whole = checks.build("agreement").measure_all(series)
    assert all(np.isnan(values).all() for values in whole.values())


@pytest.mark.parametrize("classes", [2, 3])
def test_one_word_has_no_share_of_anything(classes):
    context, _ = case(("bilstm", "additive", classes), [1, 1])
    found = columns(checks.build("permutation")(context))
    found |= columns(checks.build("adversarial", steps=3)(context))
    for name in ("median_tvd", "leverage", "epsilon_max_jsd", "bound_jsd", "output_tvd"):
        same(found[name], 0.0, atol=1e-12)
    for name in ("median_of_leverage", "of_bound"):
        assert np.isnan(found[name]).all(), name
