"""Networks with a query, computed again word by word in numpy loops, text by text."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.core.errors import DataError, ShapeError
from heedful.core.values import EXCLUDED_LOGIT, Example
from heedful.methods import methods
from heedful.models.recurrent.attention import attentions
from heedful.models.recurrent.encoders import encoders
from heedful.models.recurrent.vocabulary import SPECIAL_TOKENS
from support import question_subjects, reference_encoders, subjects
from support.question_subjects import ALLOWED, everything
from support.subjects import WORDS

SOS, EOS = SPECIAL_TOKENS.index("<SOS>"), SPECIAL_TOKENS.index("<EOS>")


def weights_of(subject):
    return {name: value.numpy() for name, value in subject.network.state_dict().items()}


def read(subject, text, part):
    """The states of <SOS> words <EOS> by one of the two encoders."""
    W, encoder = weights_of(subject), subject.network.shape.encoder
    ids = [SOS, *(len(SPECIAL_TOKENS) + WORDS.index(word) for word in text.split()), EOS]
    rows = [W["embedding.weight"][number] for number in ids]
    return np.array(reference_encoders.ENCODE[encoder](rows, reference_encoders.inside(W, part)))


def gist(subject, text):
    """The question as one vector."""
    states, encoder = read(subject, text, "question"), subject.network.shape.encoder
    if encoder == "bilstm":
        half = states.shape[1] // 2
        return np.concatenate([states[-1, :half], states[0, half:]])
    return states.max(0) if encoder == "cnn" else states.mean(0)


def scores(subject, states, q):
    W, attention = weights_of(subject), subject.network.shape.attention
    if attention == "dot":
        return [float(h @ q) / math.sqrt(len(q)) for h in states]
    if attention == "uniform":
        return [0.0] * len(states)
    asked = W["attention.question.weight"] @ q + W["attention.question.bias"]
    found = []
    for h in states:
        inner = np.tanh(W["attention.hidden.weight"] @ h + W["attention.hidden.bias"] + asked)
        found.append(float(W["attention.out.weight"][0] @ inner))
    return found


def decode(subject, context, q, allowed):
    W = weights_of(subject)
    inner = W["decoder.text.weight"] @ context + W["decoder.text.bias"]
    inner = inner + W["decoder.question.weight"] @ q + W["decoder.question.bias"]
    logits = W["decoder.out.weight"] @ np.tanh(inner) + W["decoder.out.bias"]
    return [
        one if allowed is None or c in allowed else EXCLUDED_LOGIT for c, one in enumerate(logits)
    ]


def plain(subject, example):
    """States, weights and logits of one text, without padding or batch."""
    states, q = read(subject, example.text, "encoder"), gist(subject, example.pair)
    parts = [math.exp(one) for one in scores(subject, states, q)[1:-1]]
    weights = [0.0, *(part / sum(parts) for part in parts), 0.0]
    context = sum(a * h for a, h in zip(weights, states, strict=True))
    return states, weights, decode(subject, context, q, example.candidates)


def softmax(logits):
    exact = np.exp(np.array(logits) - max(logits))
    return exact / exact.sum()


def test_every_encoder_and_attention_is_tried():
    assert set(encoders) == set(question_subjects.ENCODERS)
    assert set(attentions) == set(question_subjects.ATTENTIONS)


@everything
def test_forward_and_decoder_are_those_of_plain_loops(encoder, attention):
    subject = question_subjects.subject(encoder, attention, seed=3)
    context = question_subjects.context(subject, allowed=ALLOWED)
    found, mask = context.forward, context.batch.mask
    draw = torch.Generator().manual_seed(2)
    other = torch.rand(2, *mask.shape, generator=draw, dtype=torch.float64) * mask
    decoded = context.decode(other)
    for row, example in enumerate(question_subjects.examples(allowed=ALLOWED)):
        states, weights, logits = plain(subject, example)
        n = len(weights)
        np.testing.assert_allclose(found.states[row, :n].numpy(), states, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.attention[row, :n].numpy(), weights, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.logits[row].numpy(), logits, rtol=0, atol=1e-11)
        q = gist(subject, example.pair)
        for k in range(2):
            attended = sum(a * h for a, h in zip(other[k, row].tolist(), states, strict=False))
            want = decode(subject, attended, q, example.candidates)
            np.testing.assert_allclose(decoded[k, row].numpy(), want, rtol=0, atol=1e-11)
    assert context.parity < 1e-12


@everything
def test_leaving_each_token_out_is_a_text_without_it(encoder, attention):
    subject = question_subjects.subject(encoder, attention, seed=4)
    context = question_subjects.context(subject, allowed=ALLOWED)
    found = subject.without_each(context.batch, max_batch_tokens=20_000)
    for row, example in enumerate(question_subjects.examples(allowed=ALLOWED)):
        words = example.text.split()
        for place in range(len(words)):
            left = " ".join(words[:place] + words[place + 1 :])
            if left:
                want = plain(subject, replace(example, text=left))[2]
            else:  # nothing to attend to: the question alone decides
                q = gist(subject, example.pair)
                want = decode(subject, np.zeros_like(q), q, example.candidates)
            got = found[row, place + 1].numpy()
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-11)
    assert not found[~context.batch.mask].any()
    few = subject.without_each(context.batch, max_batch_tokens=7)
    torch.testing.assert_close(few, found, rtol=0, atol=1e-11)


@pytest.mark.parametrize("encoder", question_subjects.ENCODERS)
def test_the_slow_way_leaves_out_the_same(encoder):
    context = question_subjects.context(
        question_subjects.subject(encoder, "dot", seed=5), (4, 7), [None, (0, 3)]
    )
    slow = context._run_every_variant()
    torch.testing.assert_close(slow, context.without_each, rtol=0, atol=1e-11)


@everything
def test_neither_padding_nor_company_matters(encoder, attention):
    subject = question_subjects.subject(encoder, attention, seed=6)
    context = question_subjects.context(subject, allowed=ALLOWED)
    batch, together = context.batch, context.forward
    junk = torch.randint(0, 34, batch.ids.shape, generator=torch.Generator().manual_seed(1))
    wide = torch.cat([batch.query, torch.zeros(len(batch), 3, dtype=torch.long)], dim=1)
    other = replace(batch, ids=torch.where(batch.present, batch.ids, junk), query=wide)
    disturbed = subject.forward(other)
    torch.testing.assert_close(disturbed.logits, together.logits, atol=1e-12, rtol=0)
    torch.testing.assert_close(disturbed.attention, together.attention, atol=1e-12, rtol=0)
    for row, one in enumerate(context.texts):
        alone = subject.forward(subject.batch([one]))
        torch.testing.assert_close(together.logits[row], alone.logits[0], atol=1e-12, rtol=0)


@everything
def test_the_one_hot_gradient_is_that_of_small_steps_under_the_same_weights(encoder, attention):
    subject = question_subjects.subject(encoder, attention, seed=7)
    context = question_subjects.context(subject, (5, 3), [None, (1, 2, 3)])
    found = context.gradient(context.predicted, attention=context.forward.attention)
    embedded, weights, step = context.embedded.detach(), context.forward.attention, 1e-6

    def chance(vectors):
        forward = subject.forward(context.batch, vectors)
        logits = subject.decoder(context.batch, forward)(weights)
        return logits.softmax(-1).gather(-1, context.predicted[:, None])[:, 0]

    for row, token, width in ((0, 2, 1), (0, 5, 4), (1, 1, 0), (1, 3, 5)):
        apart = torch.zeros_like(embedded)
        apart[row, token, width] = step
        want = (chance(embedded + apart) - chance(embedded - apart))[row] / (2 * step)
        assert float(found[row, token, width]) == pytest.approx(float(want), abs=1e-8)


def test_classes_that_are_not_allowed_have_no_chance_and_no_slope():
    context = question_subjects.context(question_subjects.subject(), (6, 4), [(0, 2), (3,)])
    chances = context.forward.probabilities
    assert chances[0, [1, 3]].tolist() == [0.0, 0.0]
    assert chances[1].tolist() == [0.0, 0.0, 0.0, 1.0]
    scores = methods.build("one_hot_gradient")(context, torch.tensor([1, 0])).scores
    assert not scores.any()


def test_another_question_gives_another_answer_about_the_same_text():
    subject = question_subjects.subject()
    one, other = (subject.encode(Example(0, "w1 w2 w3", 0, pair=q)) for q in ("w4", "w5"))
    batch = subject.batch([one, other, one])
    found = subject.forward(batch)
    assert not torch.allclose(found.logits[0], found.logits[1])
    assert not torch.allclose(found.attention[0], found.attention[1])
    assert batch.distinct_texts()[1].tolist() in ([0, 1, 0], [1, 0, 1])


def test_rows_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match="reads two texts and row 7 has one"):
        question_subjects.subject().encode(Example(7, "w1", 0))
    with pytest.raises(DataError, match="None of the candidates of row 7 is a class"):
        question_subjects.subject().encode(Example(7, "w1", 0, pair="w2", candidates=()))
    with pytest.raises(DataError, match="cannot exclude classes"):
        subjects.subject().encode(Example(7, "w1", 0, candidates=(0,)))
    batch = question_subjects.context(question_subjects.subject()).batch
    with pytest.raises(ShapeError, match="reads one text"):
        subjects.subject().forward(batch)
    with pytest.raises(ShapeError, match="the batch has no query"):
        question_subjects.subject().forward(replace(batch, query=None))


def test_a_long_question_is_cut_and_counted():
    subject = replace(question_subjects.subject(), max_words=3)
    one = subject.encode(Example(0, "w1 w2", 0, pair="w1 w2 w3 w4"))
    assert (one.query, one.truncated) == ((SOS, 5, 6, 7, EOS), True)
    assert not subject.encode(Example(0, "w1 w2", 0, pair="w1 w2 w3")).truncated
