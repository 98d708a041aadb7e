"""Logits of variants run together, against each variant encoded as a text of its own."""

from dataclasses import replace

import pytest
import torch

from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.erased_words import run_with_masked_tokens, run_without_tokens
from heedful.models.recurrent import lean_pass
from heedful.models.recurrent.encoders import encoders
from heedful.models.recurrent.lean_pass import _distinct_beginnings
from support import question_subjects
from support.subjects import Adapter, batch, encoded, subject

LENGTHS = [1, 4, 9, 9, 17]


def random_sets(texts, count, *, seed=0):
    """Random texts of a batch with random words of each; the first variant keeps all."""
    draw = torch.Generator().manual_seed(seed)
    rows = torch.randint(0, len(texts), (count,), generator=draw)
    chosen = torch.rand(count, texts.ids.shape[1], generator=draw) < 0.5
    chosen[0] = False
    return rows, chosen & texts.mask[rows]


def gathered(passes, count, classes):
    found = torch.full((count, classes), torch.nan, dtype=torch.float64)
    for variants, which, logits in passes:
        found[variants] = logits[which]
    return found


def one_by_one(model, texts, rows, deleted):
    """Every variant encoded as a text of its own and run alone."""
    logits = []
    for row, gone in zip(rows.tolist(), deleted, strict=True):
        text, left = texts[row], [t for t in range(len(texts[row].ids)) if not gone[t]]
        ids, word = (tuple(column[t] for t in left) for column in (text.ids, text.word))
        alone = model.batch([replace(text, ids=ids, word=word)])
        logits.append(model.forward(alone).logits[0])
    return torch.stack(logits)


@pytest.mark.parametrize("attention", ["additive", "dot", "uniform"])
@pytest.mark.parametrize("encoder", list(encoders))
def test_deleted_words_give_the_logits_of_each_shorter_text_run_alone(encoder, attention):
    model = subject(encoder, attention, classes=3)
    texts = encoded(model, LENGTHS)
    context = BatchContext(model, model.batch(texts), max_batch_tokens=64)
    rows, deleted = random_sets(context.batch, 60)
    found = gathered(run_without_tokens(context, rows, deleted), 60, 3)
    torch.testing.assert_close(found, one_by_one(model, texts, rows, deleted), rtol=0, atol=1e-12)


@pytest.mark.parametrize("encoder", list(encoders))
def test_masked_words_give_the_logits_of_a_pass_from_vectors_that_are_zero_there(encoder):
    model = subject(encoder)
    context = BatchContext(model, batch(model, LENGTHS), max_batch_tokens=64)
    rows, hidden = random_sets(context.batch, 60)
    found = gathered(run_with_masked_tokens(context, rows, hidden), 60, 2)
    vectors = context.embedded.detach()[rows] * ~hidden[..., None]
    wanted = model.forward(context.batch.select(rows), vectors).logits
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("attention", ["additive", "dot"])
def test_each_variant_is_asked_the_question_of_its_own_text(attention):
    allowed = question_subjects.ALLOWED
    texts = question_subjects.context(question_subjects.subject(), allowed=allowed).batch
    model = question_subjects.subject(attention=attention)
    rows, deleted = random_sets(texts, 30)
    deleted[torch.arange(30), texts.mask[rows].byte().argmax(-1)] = False  # one word at least
    plain = Adapter(model)
    found, wanted = (
        gathered(run_without_tokens(BatchContext(one, texts), rows, deleted), 30, 4)
        for one in (model, plain)
    )
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("encoder", list(encoders))
def test_whole_texts_have_the_logits_of_the_whole_pass(encoder):
    model = subject(encoder, classes=3)
    texts = batch(model, LENGTHS)
    with torch.no_grad():
        lean, whole = model.run_logits(texts), model.forward(texts).logits
    torch.testing.assert_close(lean, whole, rtol=0, atol=1e-12)
    assert model.run_logits(texts).requires_grad == whole.requires_grad


def test_a_variant_with_no_token_left_is_in_no_pass():
    model = subject()
    context = BatchContext(model, batch(model, [3, 5]))
    gone = context.batch.present.clone()
    gone[1] = False
    passes = list(run_without_tokens(context, torch.tensor([0, 1]), gone))
    assert [variants.tolist() for variants, _, _ in passes] == [[1]]


def test_equal_beginnings_are_run_once():
    words = torch.tensor([[1, 2, 3], [1, 2, 0], [1, 2, -1], [2, 2, 3]])
    steps, which = _distinct_beginnings(words, 4)
    assert [len(word) for _, word in steps] == [2, 2, 3]
    assert which.tolist() == [[0, 2, 5], [0, 2, 4], [0, 2, -1], [1, 3, 6]]
    spelt = [()]
    for before, word in steps:
        spelt = [(*spelt[b], w) for b, w in zip(before.tolist(), word.tolist(), strict=True)]
    assert spelt == [(1, 2, 0), (1, 2, 3), (2, 2, 3)]


def test_words_added_in_an_order_leave_about_half_of_the_steps(monkeypatch):
    model, count = subject(), 40
    texts = batch(model, [count])
    ran, step = [], lean_pass.run_lstm_step

    def count_rows(gates, *more):
        ran.append(len(gates))
        return step(gates, *more)

    monkeypatch.setattr(lean_pass, "run_lstm_step", count_rows)
    order = torch.randperm(count, generator=torch.Generator().manual_seed(1))
    kept = order.argsort() < torch.arange(1, count)[:, None]
    deleted = torch.nn.functional.pad(~kept, (1, 1))
    context = BatchContext(model, texts)
    list(run_without_tokens(context, torch.zeros(count - 1, dtype=torch.long), deleted))
    assert sum(ran) < 0.6 * 2 * int((~deleted).sum())
