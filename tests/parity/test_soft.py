"""Words dimmed element by element, against plain loops, and where the answer is known."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.checks import checks
from heedful.checks.draws import draw_for_elements
from heedful.checks.faithfulness.items import ItemView
from heedful.checks.faithfulness.soft_erasure import SoftErasureMetrics
from heedful.core.errors import ConfigError
from heedful.core.rng import generator
from heedful.methods import methods
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.erasure_metrics import share_of_largest
from support import measured_values, subjects
from support.reference_removal import linear, members, subject, texts_of

SEED, DRAWS = 4, 10
NAMES = ("bilstm", "cnn", "bert", "xlnet")
METHODS = ("attention", "input_x_gradient", "leave_one_out")
SOFT = ("soft_sufficiency", "soft_comprehensiveness", "soft_beyond_random")


def found_by(context, **settings):
    given = (
        {"methods": METHODS, "draws": DRAWS, "ways": ("deletion",)}
        | {"perturbations": 0}
        | settings
    )
    findings = checks.build("faithfulness", **given)(context)
    rows = measured_values.columns(findings)
    return {name: one for name, one in rows.items() if name.startswith("soft_")}, findings


class Text:
    """One text alone, in plain numbers."""

    def __init__(self, one, text):
        self.one, self.text, self.words = one, text, members(text, "words")
        self.context = BatchContext(one, one.batch([text]), seed=SEED)
        self.target = int(self.context.predicted)
        self.vectors = one.embed(self.context.batch)[0]
        self.tokens = [t for word in self.words for t in word]
        self.full, self.empty = (self.p(dict.fromkeys(self.tokens, one)) for one in (1.0, 0.0))
        self.known = {name: self.scores(name) for name in METHODS}

    def p(self, kept):
        """p of the class, the vectors multiplied by kept[t] where t is of a word."""
        x = self.vectors.clone()
        for t in self.tokens:
            x[t] = x[t] * torch.tensor(kept[t]).to(x)
        with torch.no_grad():
            logits = self.one.forward(self.context.batch, x[None]).logits[0].double().tolist()
        top = max(logits)
        return math.exp(logits[self.target] - top) / sum(math.exp(z - top) for z in logits)

    def scores(self, name):
        part = methods.build(name)
        tokens = part(self.context, torch.tensor([self.target])).scores[0].double()
        return [sum(float(tokens[t]) for t in word) for word in self.words]

    def dimmed(self, chances, drawn):
        """p where an element of word w stays if its number lies below chances[w]."""
        kept = {}
        for chance, word in zip(chances, self.words, strict=True):
            for t in word:
                kept[t] = [float(u < chance) for u in drawn[self.tokens.index(t)]]
        return self.p(kept)

    def normal(self, left, *, keep):
        worth = max(0.0, self.full - self.empty)
        if worth <= 1e-6:
            return math.nan
        share = min(1.0, max(0.0, self.full - left) / worth)
        return 1 - share if keep else share


def shares(scores):
    largest = max(map(abs, scores))
    return [abs(one) / largest if largest > 1e-12 else 0.0 for one in scores]


def by_hand(text):
    """Every measure of one text: element by element, draw by draw."""
    width, count = text.vectors.shape[1], len(text.words)
    random = generator(SEED, "scores of faithfulness", text.text.content).random((DRAWS, count))
    totals = {}
    for draw in range(DRAWS):
        purpose = f"elements of faithfulness, draw {draw}"
        drawn = generator(SEED, purpose, text.text.content).random((1, len(text.tokens) * width))
        drawn = drawn.reshape(len(text.tokens), width).tolist()
        places = (-random[draw]).argsort().argsort().tolist()
        rows = {name: shares(text.known[name]) for name in METHODS}
        for name, own in {**rows, "uniform": [1.0] * count, "random": shares(random[draw])}.items():
            less = [1 - a for a in own]
            kept = text.normal(text.dimmed(own, drawn), keep=True)
            taken = text.normal(text.dimmed(less, drawn), keep=False)
            totals.setdefault(f"soft_sufficiency[{name}]", []).append(kept)
            totals.setdefault(f"soft_comprehensiveness[{name}]", []).append(taken)
            if name in METHODS:
                other = [1 - own[places[w]] for w in range(count)]
                apart = taken - text.normal(text.dimmed(other, drawn), keep=False)
                apart = apart if count > 1 else math.nan
                totals.setdefault(f"soft_beyond_random[{name}]", []).append(apart)
    return {name: sum(each) / DRAWS for name, each in totals.items()}


@pytest.mark.parametrize("name", NAMES)
def test_every_measure_is_that_of_a_plain_loop(name):
    one = subject(name)
    texts = [replace(text, index=3 + place) for place, text in enumerate(texts_of(name))]
    found, _ = found_by(BatchContext(one, one.batch(texts), seed=SEED))
    want = [by_hand(Text(one, text)) for text in texts]
    assert set(found) == set(want[0])
    for measure, values in found.items():
        hand = [each[measure] for each in want]
        np.testing.assert_allclose(values, hand, atol=1e-7, equal_nan=True, err_msg=measure)


def drawn_elements(context, draw):
    return draw_for_elements(context, f"elements of faithfulness, draw {draw}")


def trial(context, scores):
    return SoftErasureMetrics(ItemView(context), torch.as_tensor(scores).double(), DRAWS)


def test_all_kept_changes_nothing_and_none_kept_are_zero_vectors():
    context, _ = linear([3, 8], seed=2)
    batch, one = context.batch, trial(context, torch.zeros(1, 2, 8))
    real = ItemView(context).real.double()
    drawn = drawn_elements(context, 0)
    whole = context.logits.detach().softmax(-1).gather(-1, context.predicted[:, None])[:, 0]
    rows = torch.arange(2)
    torch.testing.assert_close(one._run(rows, real, drawn), whole)
    signs = context.subject.embed(batch) @ context.subject.weight  # start and end stay
    odds = signs.masked_fill(batch.mask | ~batch.present, 0.0).sum(-1) + 0.3
    bare = torch.where(context.predicted == 1, odds, -odds).sigmoid()
    torch.testing.assert_close(one._run(rows, torch.zeros_like(real), drawn), bare)


def test_scores_that_are_equal_keep_all_and_take_all_and_zeros_neither():
    context, _ = linear([3, 8], seed=2)
    real = ItemView(context).real.double()
    found = trial(context, torch.stack([real, 7 * real, 0 * real])).columns()
    ones, zeros = [1.0, 1.0], [0.0, 0.0]
    worth = ~found["soft_sufficiency"][0].isnan()
    assert worth.any()
    for measure, wanted in (
        ("soft_sufficiency", (ones, ones, zeros)),
        ("soft_comprehensiveness", (ones, ones, zeros)),
        ("soft_beyond_random", (zeros, zeros, zeros)),
    ):
        for row, one in enumerate(wanted):
            assert found[measure][row][worth].tolist() == torch.tensor(one)[worth].tolist()


def test_the_expected_share_is_reached():
    """Log-odds of a linear text lose (1 − a) of each word's part, on the average over draws."""
    context, added = linear([5], seed=3)
    one = SoftErasureMetrics(ItemView(context), torch.zeros(1, 1, 5).double(), 1000)
    chances = torch.tensor([[1.0, 0.8, 0.5, 0.1, 0.0]]).double()
    odds = []
    for draw in range(1000):
        p = float(one._run(torch.arange(1), chances, drawn_elements(context, draw)))
        p = p if int(context.predicted) else 1 - p
        odds.append(math.log(p / (1 - p)))
    words = added[0][context.batch.mask[0]]
    other = float(context.logits.detach()[0, 1]) - float(words.sum())
    want = float((words * chances[0]).sum()) + other
    assert np.mean(odds) == pytest.approx(want, abs=4 * np.std(odds) / math.sqrt(1000))


def test_the_deciding_word_alone_is_named_or_missed():
    """All on the word that decides: kept it suffices, taken nothing is left; elsewhere neither."""
    context, added = linear([9, 14], seed=6)
    real, scores = ItemView(context).real, torch.zeros(2, 2, 14)
    for row in range(2):
        parts = added[row][context.batch.mask[row]] * (2 * int(context.predicted[row]) - 1)
        scores[0, row, int(parts.argmax())] = scores[1, row, int(parts.argmin())] = 1.0
    found = trial(context, scores).columns()
    best, worst = found["soft_beyond_random"][:2]
    assert (best > 0).all()
    assert (worst < 0).all()
    assert bool(real[1].all())


@pytest.mark.parametrize("name", ["bilstm", "bert"])
def test_company_and_budget_never_matter(name):
    one, texts = subject(name), texts_of(name)
    together, _ = found_by(BatchContext(one, one.batch(texts), seed=SEED))
    for row, text in enumerate(texts):
        alone, _ = found_by(BatchContext(one, one.batch([text]), seed=SEED, max_batch_tokens=9))
        for key, values in alone.items():
            np.testing.assert_allclose(values[0], together[key][row], atol=1e-6, err_msg=key)


def test_a_method_that_refuses_has_no_soft_measures_and_says_why():
    one = subjects.subject()
    found, findings = found_by(BatchContext(one, subjects.batch(one, [4, 3])), methods=("rollout",))
    assert np.isnan(found["soft_sufficiency[rollout]"]).all()
    assert {f"{measure}[rollout]" for measure in SOFT} <= set(measured_values.missing(findings))
    assert not np.isnan(found["soft_sufficiency[attention]"]).all()


def test_they_can_be_left_out_but_not_drawn_a_few_times():
    one = subjects.subject()
    found, findings = found_by(BatchContext(one, subjects.batch(one, [4])), draws=0)
    assert not found
    assert not any(one.measure.startswith("soft_") for one in findings.missing)
    with pytest.raises(ConfigError, match="draws must be at least 10, or 0 for none, not 3"):
        checks.build("faithfulness", draws=3)


def test_shares_are_of_the_largest_size():
    scores = torch.tensor([[0.2, -0.4, 9.0], [0.0, 0.0, 5.0]]).double()
    real = torch.tensor([[True, True, False], [True, True, False]])
    assert share_of_largest(scores, real).tolist() == [[0.5, 1.0, 0.0], [0.0, 0.0, 0.0]]
