"""Every value of `influence` by plain loops over texts and sets, from the formulas alone."""

from itertools import combinations, permutations

import numpy as np
import pytest
import torch

from heedful.checks.influence.check import InfluenceCheck
from heedful.checks.influence.names import CROSS_FITTED, HALF, INFLUENCE, RANDOM
from heedful.checks.influence.orders import draw_orders
from heedful.core.values import Example
from heedful.models.batch_context import BatchContext
from support import subjects

TEXTS = (" ".join(f"w{n}" for n in range(1, 10)), "w3 w12 w7 w8 w21 w2", "w5 w4 w3 w2", "w9 w1")
SHARES = (0.1, 0.2, 0.3, 0.5)


@pytest.fixture(scope="module")
def case():
    subject = subjects.subject("bilstm", classes=3)
    encoded = [subject.encode(Example(n, text, 0)) for n, text in enumerate(TEXTS)]
    context = BatchContext(subject, subject.batch(encoded), texts=encoded)
    found = InfluenceCheck(orders=4, methods=("attention",))(context)
    values = {(one.measure, one.method, one.setting): one.values for one in found.measurements}
    return subject, context, values


def p_of(subject, words, target):
    """p of a class for a text of its own."""
    with torch.no_grad():
        batch = subject.batch([subject.encode(Example(0, " ".join(words), 0))])
        return float(subject.forward(batch).logits[0].softmax(-1)[target])


class Text:
    """One text, its outputs for sets of words, and its influence in all orders and in halves."""

    def __init__(self, subject, context, row):
        self.words = TEXTS[row].split()
        self.target = int(context.predicted[row])
        self.p = lambda chosen: p_of(
            subject, [w for n, w in enumerate(self.words) if n in chosen], self.target
        )
        batch = context.batch
        key = f"{batch.ids[row][batch.present[row]].tolist()}"
        self.orders = draw_orders(len(self.words), 4, context.seed, key).tolist()
        self.halves = [self.m(self.orders[:2]), self.m(self.orders[2:])]
        self.whole = self.m(self.orders) if len(self.words) > 6 else self.exact()
        self.attention = context.forward.attention[row][batch.mask[row]].numpy()

    def m(self, orders):
        total, count = np.zeros(len(self.words)), np.zeros(len(self.words))
        for order in orders:
            for place in range(1, len(order)):  # nothing is before the first word
                before, word = set(order[:place]), order[place]
                total[word] += abs(self.p(before | {word}) - self.p(before))
                count[word] += 1
        return total / count

    def exact(self):
        """Over all sets: each size from 1 to n − 1 is as likely, and each set of a size."""
        n = len(self.words)
        found = np.zeros(n)
        for word in range(n):
            others = [other for other in range(n) if other != word]
            for size in range(1, n):
                sets = [set(one) for one in combinations(others, size)]
                changes = [abs(self.p(one | {word}) - self.p(one)) for one in sets]
                found[word] += np.mean(changes) / (n - 1)
        return found

    def change_without_top(self, ranked):
        whole = self.p(set(range(len(self.words))))
        order = np.argsort(-ranked)
        sizes = [min(len(order) - 1, max(1, int(np.ceil(s * len(order) - 1e-9)))) for s in SHARES]
        return np.mean([abs(whole - self.p(set(order[size:].tolist()))) for size in sizes])


def stakes(m):
    return sum(abs(a - b) for a, b in combinations(m, 2))


def agreement(ranked, m):
    pairs = combinations(range(len(m)), 2)
    return sum(np.sign(ranked[i] - ranked[j]) * (m[i] - m[j]) for i, j in pairs)


@pytest.mark.parametrize("row", [0, 1, 2])
def test_values_of_a_text(case, row):
    subject, context, values = case
    text = Text(subject, context, row)
    a, m, (one, other) = text.attention, text.whole, text.halves
    top = int(a.argmax())
    cross = [x[y.argmax()] - x.mean() for x, y in ((one, other), (other, one))]
    shuffles = [agreement(np.array(one), m) for one in permutations(a)] if len(a) < 7 else []
    wanted = {
        **({("order_chance", "attention", None): np.var(shuffles)} if shuffles else {}),
        ("order_sum", "attention", None): agreement(a, m),
        ("order_weight", None, None): stakes(m),
        ("half_sum", None, "1"): agreement(other, one),
        ("half_sum", None, "2"): agreement(one, other),
        ("half_weight", None, "1"): stakes(one),
        ("half_weight", None, "2"): stakes(other),
        ("gain_top", "attention", None): m[top] - m.mean(),
        ("gain_most", None, None): m.max() - m.mean(),
        ("gain_most", None, CROSS_FITTED): np.mean(cross),
        ("half_most", None, "1"): one.max() - one.mean(),
        ("half_most", None, "2"): other.max() - other.mean(),
        ("change_top", "attention", None): text.change_without_top(a),
        ("change_top", None, INFLUENCE): text.change_without_top(m),
        ("change_top", None, HALF): text.change_without_top(one),
        ("confidence", None, None): text.p(set(range(len(a)))),
        ("exact", None, None): float(len(a) <= 6),
        ("items", None, None): len(a),
    }
    for key, value in wanted.items():
        assert values[key][row] == pytest.approx(value, abs=1e-12), key
    assert (values["change_top", RANDOM, None] >= 0)[row]


def test_leverage_of_a_text(case):
    """Among the upper half by influence, from it to the others in equal parts, among all words."""
    subject, context, values = case
    for row in (0, 1, 2):
        text = Text(subject, context, row)
        a, n = context.forward.attention[row], len(text.words)
        mask = torch.nonzero(context.batch.mask[row])[:, 0]
        upper = set(np.argsort(-text.whole)[: int(np.ceil(n / 2))].tolist())

        def moved(weights, row=row, mask=mask, a=a):
            full = a.clone()
            full[mask] = weights
            every = context.forward.attention.clone()
            every[row] = full
            logits = context.decode(every)[row]
            change = logits.softmax(-1) - context.forward.probabilities[row]
            return float(change.abs().sum()) / 2

        def concentrated(chosen, own):
            for word in chosen:
                weights = own.clone()
                weights[sorted(chosen)] = 0.0
                weights[word] = own[sorted(chosen)].sum()
                yield moved(weights)

        own = a[mask]
        spread = own.clone()
        spread[sorted(upper)] = 0.0
        rest = sorted(set(range(n)) - upper)
        spread[rest] += own[sorted(upper)].sum() / len(rest)
        onto = moved(spread)
        top = max(*concentrated(upper, own), onto)
        words = max(*concentrated(set(range(n)), own), onto)
        assert values["leverage_top", None, None][row] == pytest.approx(top, abs=1e-12)
        assert values["leverage_words", None, None][row] == pytest.approx(words, abs=1e-12)


def test_texts_of_fewer_than_four_words_are_not_judged(case):
    values = case[2]
    assert all(np.isnan(column[3]) for key, column in values.items() if key[0] != "items")
    assert values["items", None, None][3] == 2
