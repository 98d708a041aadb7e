"""The sets that `influence` runs: what it finds by plain loops, each set once, and in bounds."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from heedful.checks.influence import check as module
from heedful.checks.influence.check import InfluenceCheck, InfluenceOfBatch
from heedful.checks.influence.cost import describe_cost, expected_passes
from heedful.checks.influence.names import MASKING, NEAR_FULL
from heedful.checks.influence.orders import additions_near_full, draw_orders
from heedful.core.values import Example
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.erased_words import get_mask_embedding
from support import reference_removal, subjects

ALONE = InfluenceCheck(orders=4, methods=("attention",))
PIECED = ("unbelievable film was so good", "it was unly the best of films", "a good film , good")
SPELT = ("a film was ox", "go by it a film", "I a ox by go it")  # of pieces, in this vocabulary
PLAIN = (" ".join(f"w{n}" for n in range(9)), "w3 w3 w1 w8 w8 w2 w3", "w5 w4 w3 w2")


def batch_of(name, **settings):
    """A batch of texts before a subject, and the texts."""
    if name in ("bilstm", "cnn", "average", "mlp"):
        subject, texts = subjects.subject(name, classes=3), PLAIN
    else:
        subject = reference_removal.subject(name)
        texts = SPELT if name == "gpt2" else PIECED
    encoded = [subject.encode(Example(n, text, 0)) for n, text in enumerate(texts)]
    return BatchContext(subject, subject.batch(encoded), texts=encoded, **settings), encoded


def output_of(context, text, target, words, *, masked=False):
    """p of a class for some words of a text, encoded as a text of its own and run alone."""
    gone = [w >= 0 and w not in words for w in text.word]
    if not masked:
        left = [t for t in range(len(gone)) if not gone[t]]
        changes = {
            "ids": tuple(text.ids[t] for t in left),
            "word": tuple(text.word[t] for t in left),
        }
        if text.types is not None:
            changes["types"] = tuple(text.types[t] for t in left)
        text = replace(text, **changes)
    alone = context.subject.batch([text])
    vectors = context.subject.embed(alone).clone()
    if masked:
        vectors[0, torch.tensor(gone)] = get_mask_embedding(context).vector
    with torch.no_grad():
        return float(context.subject.forward(alone, vectors).logits[0].softmax(-1)[target])


def influence_by_loops(orders, output):
    """m of each word: what it changes in each order, added after others."""
    total, counts = np.zeros(orders.shape[1]), np.zeros(orders.shape[1])
    for order in orders.tolist():
        for place in range(1, len(order)):
            before, after = (output(set(order[:size])) for size in (place, place + 1))
            total[order[place]] += abs(after - before)
            counts[order[place]] += 1
    return total / counts


@pytest.mark.parametrize("name", ["bilstm", "cnn", "average", "mlp", "bert", "gpt2", "xlnet"])
def test_influence_equals_a_loop_over_texts_that_are_encoded_and_run_alone(name):
    context, texts = batch_of(name, max_batch_tokens=40)
    found = InfluenceOfBatch(ALONE, context)
    assert found.judged == [row for row, count in enumerate(found.counts) if count >= 4]
    for masked in (False, True):
        drawn = found.second_influence(MASKING) if masked else found.drawn_influence
        for row, m in drawn.items():
            orders = draw_orders(found.counts[row], 4, 0, found.keys[row])
            given = context, texts[row], int(context.predicted[row])
            wanted = influence_by_loops(orders, partial(output_of, *given, masked=masked))
            assert np.abs(m.whole - wanted).max() <= 1e-12


def test_near_full_influence_equals_a_loop_over_its_sets():
    context, texts = batch_of("bilstm")
    found = InfluenceOfBatch(ALONE, context)
    for row, m in found.second_influence(NEAR_FULL).items():
        words, target = found.counts[row], int(context.predicted[row])
        additions = additions_near_full(words, 0, found.keys[row])
        total = np.zeros(words)
        for before, added in zip(additions.sets, additions.added, strict=True):
            there = set(np.flatnonzero(before).tolist())
            one, both = (
                output_of(context, texts[row], target, w) for w in (there, there | {int(added)})
            )
            total[added] += abs(both - one) / 2
        assert np.abs(m.whole - total).max() <= 1e-12


def test_the_top_words_of_attention_by_a_loop():
    context, texts = batch_of("bilstm")
    found = InfluenceOfBatch(ALONE, context)
    changes = found.values()[0]["change_top", "attention", None]
    for row, text in enumerate(texts):
        words, target = found.counts[row], int(context.predicted[row])
        weights = context.forward.attention[row, 1 : words + 1]
        first = weights.argsort(descending=True).tolist()
        whole = output_of(context, text, target, set(range(words)))
        gone = [max(1, int(np.ceil(share * words - 1e-9))) for share in (0.1, 0.2, 0.3, 0.5)]
        left = [output_of(context, text, target, set(first[size:])) for size in gone]
        assert changes[row] == pytest.approx(np.mean([abs(whole - p) for p in left]), abs=1e-12)


class Recorder:
    """A subject that notes every text it runs without attention."""

    def __init__(self, inner):
        self.inner, self.ran, self.family, self.labels = inner, [], inner.family, inner.labels
        self.encode, self.batch, self.embed = inner.encode, inner.batch, inner.embed
        self.forward, self.decoder = inner.forward, inner.decoder

    def run_logits(self, batch, embedded=None):
        if embedded is None:
            self.ran += [
                tuple(i[p].tolist()) for i, p in zip(batch.ids, batch.present, strict=True)
            ]
        return self.inner.forward(batch, embedded).logits


def test_every_set_of_words_is_run_once_in_the_whole_check():
    words = 20
    subject = Recorder(subjects.subject(classes=3))
    encoded = [subject.encode(Example(0, " ".join(f"w{n}" for n in range(words)), 0))]
    context = BatchContext(subject, subject.batch(encoded))
    InfluenceOfBatch(ALONE, context).values()
    assert len(set(subject.ran)) == len(subject.ran) > 4 * (words - 1)
    assert encoded[0].ids not in subject.ran


@pytest.mark.parametrize(("words", "orders"), [(20, 4), (20, 8), (9, 4), (5, 4)])
def test_the_expected_passes_bound_those_that_are_run(words, orders):
    subject = Recorder(subjects.subject(classes=3))
    encoded = [subject.encode(Example(0, " ".join(f"w{n}" for n in range(words)), 0))]
    found = InfluenceOfBatch(
        InfluenceCheck(orders=orders, methods=("attention",)),
        BatchContext(subject, subject.batch(encoded)),
    )
    found.values()
    expected = expected_passes(words, orders=orders)
    ran = sum(map(len, subject.ran)) / (words + 2)
    without_masking = sum(expected.values()) - expected["masking"]
    assert 0.3 * without_masking < ran <= without_masking


def test_the_orders_cost_what_their_sets_hold():
    sizes = np.arange(1, 20)
    top = 4 * [20 + 2] - np.array([2, 4, 6, 10])
    wanted = (4 * (sizes + 2).sum() + top.sum()) / 22
    assert expected_passes(20)["budget"] == pytest.approx(wanted)
    assert expected_passes(20)["budget"] < 60
    more = expected_passes(20, orders=8, methods=10)
    assert more["further_orders"] == pytest.approx(4 * (sizes + 2).sum() / 22)
    assert more["methods"] == pytest.approx(10 * top.sum() / 22)
    assert more["masking"] == 8 * 19


def test_the_cost_is_said_with_the_number_of_texts_that_bear_it():
    line = describe_cost(orders=8, methods=10, texts=1000, costly_share=0.2)
    assert "with 8 orders" in line
    assert "about 200 of 1000 texts" in line
    assert line == InfluenceCheck(
        orders=8, methods=("attention", *InfluenceCheck().methods[1:11]), costly_share=0.2
    ).describe_cost(1000)


@pytest.mark.parametrize("name", ["bilstm", "bert"])
def test_passes_are_bounded_whatever_the_texts_and_orders(name, monkeypatch):
    context, _ = batch_of(name, max_batch_tokens=30)
    ran, marks = [], []
    kind = type(context.subject)
    way = "logits_of_variants" if name == "bilstm" else "run_logits"
    inner, tokens = getattr(kind, way), module.Removals._run

    def watched(self, batch, *given):
        kept = given[1] if len(given) > 1 else batch.present
        ran.append(int(kept.sum()))
        return inner(self, batch, *given)

    def counted(self, rows, gone):
        marks.append(gone.numel())
        return tokens(self, rows, gone)

    monkeypatch.setattr(kind, way, watched)
    monkeypatch.setattr(module.Removals, "_run", counted)
    monkeypatch.setattr(module, "MOST_MARKS", 200)
    check = InfluenceCheck(orders=32, methods=("attention",))
    InfluenceOfBatch(check, context).values()
    longest = max(len(text.ids) for text in context.texts)
    assert max(ran) < 30 + longest
    most = max(InfluenceOfBatch(check, context).counts)
    assert max(marks) < 200 + 32 * most * most + 200


def test_sets_in_parts_give_the_same_values(monkeypatch):
    columns = []
    for most in (2**21, 50):
        monkeypatch.setattr(module, "MOST_MARKS", most)
        context, _ = batch_of("bilstm")
        columns.append(InfluenceOfBatch(replace(ALONE, orders=8), context).values()[0])
    assert columns[0].keys() == columns[1].keys()
    for key, column in columns[0].items():
        np.testing.assert_allclose(column, columns[1][key], rtol=0, atol=1e-12)
