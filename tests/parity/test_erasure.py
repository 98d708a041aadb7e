"""Erasure against all subsets, plain loops text by text, and finite differences."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
import torch
from scipy.special import rel_entr
from test_checks import SEED, case, columns, kinds, same

import heedful
from heedful.checks import checks
from heedful.checks.attention.erasure.check import _log_odds_gradient
from heedful.core.batch import Batch, collate
from heedful.core.errors import ConfigError
from heedful.core.rng import generator
from heedful.core.values import Example, Forward, LinearDecoder
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.weight_removal import fewest_removals_to_flip, removals_to_flip
from support import subjects, tiny_models

ORDERS = ("attention", "gradient", "attention_x_gradient")


def decision(weights, values, left):
    """The class decided for by the words left, weights renormalised; None if they have none."""
    mass = sum(weights[t] for t in left)
    if not mass:
        return None
    logits = [sum(weights[t] / mass * values[t][c] for t in left) for c in range(len(values[0]))]
    return logits.index(max(logits))  # the first of equal ones


def flips(weights, values, removed):
    words = range(len(weights))
    before = decision(weights, values, words)
    return decision(weights, values, [t for t in words if t not in removed]) not in (None, before)


def smallest(weights, values):
    """The size of the smallest flipping set, by trying all of them; 0 if there is none."""
    for size in range(1, len(weights)):
        for removed in combinations(range(len(weights)), size):
            if flips(weights, values, removed):
                return size
    return 0


def in_order(weights, values, order):
    for size in range(1, len(order)):
        if flips(weights, values, order[:size]):
            return size
    return 0


def drawn_at_random(random, T, C, *, exact):
    """Weights flat or peaked, at times 0; with `exact` few values, so that sums tie."""
    if exact:
        weights = [Fraction(int(k), 8) for k in random.integers(0, 3, T)]
        weights[random.integers(T)] = Fraction(1)
        return weights, [[Fraction(int(v)) for v in random.integers(-2, 3, C)] for _ in range(T)]
    weights = random.dirichlet(np.full(T, random.choice([0.3, 1.0, 8.0])))
    lean = random.normal(0.0, 0.5, C)  # a class that most words speak for: sets grow large
    return weights.tolist(), (lean + random.normal(0.0, 1.0, (T, C))).tolist()


def batched(problems, padding=2):
    """Problems of several lengths as one batch; padding has values of its own."""
    width, C = max(len(w) for w, _ in problems) + padding, len(problems[0][1][0])
    weights = torch.zeros(len(problems), width, dtype=torch.float64)
    values = torch.full((len(problems), width, C), 7.0, dtype=torch.float64)
    values[..., 0] = -50.0
    for b, (one, said) in enumerate(problems):
        weights[b, : len(one)] = torch.tensor([float(w) for w in one])
        values[b, : len(one)] = torch.tensor([[float(v) for v in row] for row in said])
    predicted = [decision(w, v, range(len(w))) for w, v in problems]
    return weights, values, torch.tensor(predicted)


@pytest.mark.parametrize("C", [2, 3, 5])
@pytest.mark.parametrize("exact", [False, True])
def test_the_smallest_set_is_that_of_all_subsets(C, exact):
    random = np.random.default_rng(C)
    lengths = [*range(1, 9)] * (12 if exact else 6) + ([] if exact else [12] * 5)
    problems = [drawn_at_random(random, T, C, exact=exact) for T in lengths]
    want = [smallest(*one) for one in problems]
    assert fewest_removals_to_flip(*batched(problems)).tolist() == want
    assert len(set(want)) > 3
    assert 0 in want


@pytest.mark.parametrize("C", [2, 3, 5])
@pytest.mark.parametrize("exact", [False, True])
def test_an_order_is_followed_word_by_word(C, exact):
    random = np.random.default_rng(10 + C)
    problems = [drawn_at_random(random, 1 + k % 11, C, exact=exact) for k in range(150)]
    weights, values, predicted = batched(problems)
    orders = [random.permutation(len(w)).tolist() for w, _ in problems]
    rest = [[*order, *range(len(order), weights.shape[1])] for order in orders]
    found = removals_to_flip(weights, values, predicted, order=torch.tensor(rest)).tolist()
    want = [in_order(*one, order) for one, order in zip(problems, orders, strict=True)]
    assert found == want
    assert len(set(want)) > 4


def of_text(text):
    """What a text's words say to each class, bias included, and its gradients at the weights."""
    said = text.parts + text.bias
    slope = text.p[text.target] * (text.parts[:, text.target] - text.parts @ text.p)
    scores = {"attention": text.alpha, "gradient": slope}
    return said, scores | {"attention_x_gradient": text.alpha * slope}


def js(p, q):
    middle = (p + q) / 2
    return (rel_entr(p, middle) + rel_entr(q, middle)).sum() / 2


def erased(alpha, position):
    left = alpha.copy()
    left[position] = 0.0
    return left / left.sum()


@kinds
def test_a_single_weight(kind):
    context, texts = case(kind)
    found = columns(checks.build("erasure")(context))
    for row, text in enumerate(texts):
        names = ("flip_top", "flip_random", "js_top_minus_random", "attention_gap")
        if text.n == 1:
            assert all(math.isnan(found[name][row]) for name in names)
            continue
        top = int(text.alpha.argmax())
        others = [t for t in range(text.n) if t != top]
        share = generator(SEED, "erasure", text.encoded.content).random()
        other = others[int(share * len(others))]
        after = [text.output(erased(text.alpha, t)) for t in (top, other)]
        flipped = [float(one.argmax() != text.target) for one in after]
        want = (*flipped, js(text.p, after[0]) - js(text.p, after[1]))
        same([found[name][row] for name in names[:3]], want)
        same(found["attention_gap"][row], text.alpha[top] - text.alpha[other])


@kinds
def test_sets_of_weights(kind):
    context, texts = case(kind, [*range(1, 12)] * 4)
    found = columns(checks.build("erasure", orders=3)(context))
    met = 0
    for row, text in enumerate(texts):
        said, scores = of_text(text)
        said, alpha = said.tolist(), text.alpha.tolist()
        keys = generator(SEED, "orders of erasure", text.encoded.content).random((3, text.n))
        ways = [np.argsort(-scores[name], kind="stable").tolist() for name in ORDERS]
        ways += [np.argsort(-one, kind="stable").tolist() for one in keys]
        counts = [*(in_order(alpha, said, way) for way in ways), smallest(alpha, said)]
        shares = [count / text.n if count else 1.0 for count in counts]
        can, met = any(counts), met + bool(any(counts))
        shares = shares if can else [math.nan] * len(shares)
        want = [*shares[:3], np.mean(shares[3:6]), shares[6]]
        names = [f"fraction_to_flip_{name}" for name in (*ORDERS, "random", "optimal")]
        same([found[name][row] for name in names], want)
        same(found["can_flip"][row], float(can) if text.n > 1 else math.nan)
    assert 5 < met < len(texts) - 4
    assert (found["fraction_to_flip_attention"] == 1.0).any()  # where another way flips


@kinds
def test_the_draw_as_published_is_a_rank_used_as_a_position(kind):
    context, texts = case(kind, [1, *[2, 3, 4, 5] * 12])
    ours, theirs = (
        columns(checks.build("erasure", draw=draw)(context))
        for draw in ("position", "as_published")
    )
    tops = 0
    for row, text in enumerate(texts):
        if text.n == 1:
            assert math.isnan(theirs["attention_gap"][row])
            continue
        rank = 1 + int(generator(SEED, "erasure", text.encoded.content).random() * (text.n - 1))
        gap = text.alpha.max() - text.alpha[rank]
        same(theirs["attention_gap"][row], gap)
        without = text.output(erased(text.alpha, rank))
        same(theirs["flip_random"][row], float(without.argmax() != text.target))
        tops += gap == 0.0
    assert tops > 5  # the slip: the top word itself, against itself
    several = np.array([text.n > 1 for text in texts])
    gaps = ours["attention_gap"][several]
    assert (gaps >= 0).all()
    assert (gaps > 0).mean() > 0.9  # a word that stands twice can have the same weight
    same(ours["flip_top"], theirs["flip_top"])


def test_of_equal_top_weights_the_first_is_removed_whatever_rounding_says():
    values = [[0.0, 4.0], [3.0, 0.0], [0.0, 5.0]]
    for nudge in (0.0, 1e-15, -1e-15):
        found = written([0.4, 0.4 + nudge, 0.2], values)
        assert found["flip_top"][0] == 1.0  # without the first word, not without the second


def test_equal_weights_go_in_the_order_of_the_text():
    for T in (20, 40, 60):
        # the words up to place 11 hold the decision; those after it speak against, a little
        values = [[0.0, 9.0]] * 11 + [[1.0, 0.0]] * (T - 11)
        found = written([1 / T] * T, values)
        want = in_order([1 / T] * T, values, list(range(T)))
        assert found["fraction_to_flip_attention"][0] == pytest.approx(want / T)


def test_every_other_word_is_drawn_equally_often(monkeypatch):
    monkeypatch.setattr(Batch, "content", property(lambda batch: [*map(str, batch.instances)]))
    subject = subjects.subject(seed=3)
    (one,) = subjects.encoded(subject, [4], seed=2)
    many = [type(one)(i, 0, one.ids, one.word, one.words) for i in range(3000)]
    found = columns(checks.build("erasure", orders=1)(BatchContext(subject, collate(many))))
    weights = BatchContext(subject, collate([one])).forward.attention[0, 1:-1].sort().values.numpy()
    counts = [np.isclose(found["attention_gap"], weights[-1] - w).sum() for w in weights[:-1]]
    assert sum(counts) == 3000
    assert max(abs(count - 1000) for count in counts) < 120  # more than four deviations


class Written:
    """A subject whose weights and whose words' logits are written down."""

    family = "written"

    def __init__(self, weights, values):
        self.weights = torch.tensor(weights, dtype=torch.float64)
        self.values = torch.tensor(values, dtype=torch.float64)
        self.labels = tuple(f"class{c}" for c in range(self.values.shape[-1]))

    def context(self):
        mask = torch.ones(self.weights.shape, dtype=torch.bool)
        ids = torch.zeros(self.weights.shape, dtype=torch.long)
        return BatchContext(self, Batch(ids, mask, mask, tuple(range(len(ids)))))

    def encode(self, example):
        raise NotImplementedError

    def batch(self, encoded):
        raise NotImplementedError

    def embed(self, batch):
        return torch.zeros(*batch.ids.shape, 1, dtype=torch.float64)

    def decoder(self, batch, forward):
        return LinearDecoder(self.values, torch.zeros(len(self.labels), dtype=torch.float64))

    def forward(self, batch, embedded=None):
        weights = self.weights + 0.0 * (0 if embedded is None else embedded[..., 0])
        states = torch.zeros(*self.weights.shape, 1, dtype=torch.float64)
        return Forward(self.decoder(batch, None)(weights), weights, states)


class Bent(Written):
    """The same decisions by a decoder that is not known to be linear."""

    def decoder(self, batch, forward):
        linear = super().decoder(batch, forward)
        return lambda weights: linear(weights).tanh()


@pytest.mark.parametrize("budget", [1, 60, 100_000])
def test_decoding_every_removal_finds_the_same_as_sums(budget):
    random = np.random.default_rng(8)
    problems = [drawn_at_random(random, 6, 3, exact=False) for _ in range(25)]
    weights, values = (np.array(one) for one in zip(*problems, strict=True))
    weights[:8, 1:4] = 0.0  # in some texts few words have weight: what is left may be nothing
    weights[:3, 4:] = 0.0
    weights /= weights.sum(1, keepdims=True)
    values -= values.max(axis=(1, 2), keepdims=True)  # all classes are below 0, that of nothing
    straight, bent = (
        checks.build("erasure")(BatchContext(one, one.context().batch, max_batch_tokens=budget))
        for one in (Written(weights, values), Bent(weights, values))
    )
    assert "fraction_to_flip_optimal" not in columns(bent)
    want, found = columns(straight), columns(bent)
    flips = np.isfinite(want["fraction_to_flip_attention"])
    assert found["can_flip"][flips].mean() > 0.8  # without the optimum some may stay unseen
    seen = found["can_flip"] > 0
    for name in ("flip_top", "flip_random", "attention_gap"):
        same(found[name], want[name])
    for name in ("fraction_to_flip_attention", "fraction_to_flip_random"):
        same(found[name][seen], want[name][seen])
    assert len(set(want["fraction_to_flip_attention"][seen])) > 4
    last = want["fraction_to_flip_attention"][seen]
    assert (np.isclose(last, 5 / 6)).any()  # the last word but one


def written(weights, values):
    return columns(checks.build("erasure")(Written([weights], [values]).context()))


def fractions(found):
    return {name: one[0] for name, one in found.items() if name.startswith("fraction")}


def test_weights_that_are_exactly_zero_flip_nothing():
    found = written([1.0, 0.0, 0.0], [[1.0, 0.0], [0.0, 9.0], [0.0, 9.0]])
    assert found["can_flip"][0] == 0.0
    assert all(math.isnan(one) for one in fractions(found).values())
    for name in ("flip_top", "flip_random", "js_top_minus_random"):
        assert math.isnan(found[name][0])
    assert found["attention_gap"][0] == 1.0


def test_an_empty_remainder_is_no_tie():
    # class 1 leads; without any weight left all classes would be equal, and the first would win
    found = written([0.75, 0.25, 0.0], [[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    assert found["can_flip"][0] == 0.0


@pytest.mark.parametrize(("lead", "can"), [(0, 0.0), (1, 1.0)])
def test_of_equal_classes_the_first_is_decided_for(lead, can):
    equal = [0.0, 0.0]
    first = [1.0, 0.0] if lead == 0 else [0.0, 1.0]
    found = written([0.5, 0.25, 0.25], [first, equal, equal])
    assert found["can_flip"][0] == can  # class 1 loses the tie, class 0 wins it
    if can:
        assert set(fractions(found).values()) - {found["fraction_to_flip_random"][0]} == {1 / 3}


def test_the_order_by_gradient_survives_a_saturated_output():
    # p = 1 in float64, so the gradient of the probability is 0 everywhere
    values = [[0.0, 50.0], [0.0, 150.0], [0.0, 400.0], [800.0, 0.0]]
    found = written([0.4, 0.4, 0.19, 0.01], values)
    assert found["fraction_to_flip_gradient"][0] == 0.75
    slope = _log_odds_gradient(Written([[0.4, 0.4, 0.19, 0.01]], [values]).context())
    same(slope[0].numpy(), [50.0, 150.0, 400.0, -800.0])
    swapped = [[0.0, 400.0], [300.0, 0.0], [300.0, 0.0]]
    found = written([0.5, 0.25, 0.25], swapped)
    assert found["fraction_to_flip_gradient"][0] == pytest.approx(1 / 3)
    found = written([0.25, 0.25, 0.5], swapped[::-1])
    assert found["fraction_to_flip_gradient"][0] == pytest.approx(1 / 3)


@kinds
def test_the_gradient_is_that_of_finite_differences(kind):
    context, texts = case(kind, [2, 5, 9])
    found, step = _log_odds_gradient(context), 1e-5
    for row, text in enumerate(texts):
        p = text.p[text.target]
        for t in range(text.n):
            ends = []
            for sign in (1, -1):
                moved = text.alpha.copy()
                moved[t] += sign * step
                ends.append(text.output(moved)[text.target])
            want = (ends[0] - ends[1]) / (2 * step) / (p * (1 - p))
            same(found[row, 1 + t], want, atol=1e-6)


def test_texts_without_words_and_of_one_word_have_no_figures():
    subject = subjects.subject(classes=3)
    batch = subjects.batch(subject, [0, 1])
    for name, values in columns(checks.build("erasure")(BatchContext(subject, batch))).items():
        assert np.isnan(values).all(), name


def test_wrong_settings_are_said_before_the_work_begins():
    with pytest.raises(ConfigError, match="orders must be a whole number of at least 1, not 0"):
        checks.build("erasure", orders=0)
    with pytest.raises(ConfigError, match="draw must be position or as_published, not 'rank'"):
        checks.build("erasure", draw="rank")


TEXTS = ("a fine film that is so very good .", "not so bad", "it was dull , in places , not good")
SCOPES = [
    ("bert", {}),
    ("bert", {"layer": 0, "head": 1}),
    ("llama", {}),
    ("deberta-v2", {}),
    ("gpt2-classifier", {"position": "mean"}),
]


def transformer(family, choices):
    subject = heedful.load(tiny_models.model(family), tiny_models.tokenizer(family), **choices)
    encoded = [subject.encode(Example(i, text, 0)) for i, text in enumerate(TEXTS)]
    return BatchContext(subject, subject.batch(encoded), seed=SEED)


@torch.no_grad()
def rows_without(context, text, gone):
    """Every row of the text without some words, its mass handed to the words it has left."""
    rows, words = context.rows.clone(), context.batch.mask[text].nonzero()[:, 0].tolist()
    left_any = False
    for row in rows[text]:
        mass = sum(float(row[t]) for t in words)
        left = {t: float(row[t]) for t in words if t not in gone}
        total = sum(left.values())
        left_any |= total > 0
        for t in words:
            row[t] = mass * left[t] / total if t in left and total > 0 else 0.0
    logits = context.decode(rows)[text]
    return logits if left_any else None


@pytest.mark.parametrize(("family", "choices"), SCOPES, ids=str)
def test_transformers_by_a_plain_loop(family, choices):
    context = transformer(family, choices)
    findings = checks.build("erasure", orders=2)(context)
    found = columns(findings)
    (missing,) = findings.missing
    assert missing.measure == "fraction_to_flip_optimal"
    assert missing.measure not in found
    assert "not linear" in missing.reason
    slope = _log_odds_gradient(context)
    for text in range(len(TEXTS)):
        words = context.batch.mask[text].nonzero()[:, 0].tolist()
        predicted, own = int(context.forward.logits[text].argmax()), context.rows[text]
        reading = context.forward.attention[text]
        scores = {
            "attention": [float(reading[t]) for t in words],
            "gradient": [float(slope[text, :, t].sum()) for t in words],
            "attention_x_gradient": [float((own * slope[text])[:, t].sum()) for t in words],
        }
        content = context.batch.content[text]
        keys = generator(SEED, "orders of erasure", content).random((2, len(words)))
        ways = [*scores.values(), *keys.tolist()]
        counts = []
        for one in ways:
            order = sorted(words, key=lambda t, one=one: -one[words.index(t)])
            sizes = range(1, len(words))
            after = ((k, rows_without(context, text, order[:k])) for k in sizes)
            hits = (k for k, z in after if z is not None and int(z.argmax()) != predicted)
            counts.append(next(hits, 0))
        shares = [count / len(words) if count else 1.0 for count in counts]
        shares = shares if any(counts) else [math.nan] * len(shares)
        names = [f"fraction_to_flip_{name}" for name in (*ORDERS, "random")]
        same([found[name][text] for name in names], [*shares[:3], np.mean(shares[3:])])
        assert found["can_flip"][text] == float(any(counts))
        top = words[int(np.argmax(scores["attention"]))]
        share = generator(SEED, "erasure", context.batch.content[text]).random()
        others = [t for t in words if t != top]
        pair = (top, others[int(share * len(others))])
        before = context.forward.logits[text].softmax(-1).numpy()
        after = [rows_without(context, text, [t]) for t in pair]
        moved = [js(before, one.softmax(-1).numpy()) for one in after]
        flipped = [float(int(one.argmax()) != predicted) for one in after]
        same([found["flip_top"][text], found["flip_random"][text]], flipped)
        same(found["js_top_minus_random"][text], moved[0] - moved[1], atol=1e-8)


@torch.no_grad()
@pytest.mark.parametrize(("family", "choices"), SCOPES[:3], ids=str)
def test_the_gradient_at_rows_is_that_of_finite_differences(family, choices):
    context = transformer(family, choices)
    # norms of llama are computed in float32, whatever the model's type: a longer step, less exact
    step, close = (1e-3, 1e-3) if family == "llama" else (1e-5, 1e-6)
    found = _log_odds_gradient(context)
    predicted = int(context.predicted[1])

    def odds(row, t, by):
        rows = context.rows.clone()
        rows[1, row, t] += by
        p = context.decode(rows)[1].softmax(-1)[predicted]
        return float(p.log() - (1 - p).log())

    for t in context.batch.mask[1].nonzero()[:, 0].tolist():
        for row in range(context.rows.shape[1]):
            want = (odds(row, t, step) - odds(row, t, -step)) / (2 * step)
            assert float(found[1, row, t]) == pytest.approx(want, rel=1e-4, abs=close)


@pytest.mark.parametrize("size", [1, 30, 100_000])
def test_how_many_removals_are_decoded_at_once_never_matters(size):
    usual = transformer("bert", {})
    other = BatchContext(usual.subject, usual.batch, SEED, max_batch_tokens=size)
    want, found = (columns(checks.build("erasure")(one)) for one in (usual, other))
    for name, values in want.items():
        same(found[name], values, atol=1e-7)
