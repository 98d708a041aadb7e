"""The forward pass of every encoder × attention, computed again word by word in numpy loops."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.core.batch import collate
from heedful.core.values import Example
from heedful.models.batch_context import BatchContext
from heedful.models.recurrent.attention import attentions
from heedful.models.recurrent.encoders import encoders
from heedful.models.recurrent.vocabulary import SPECIAL_TOKENS
from support import reference_encoders, subjects

ENCODERS, ATTENTIONS = ("bilstm", "cnn", "average", "mlp"), ("additive", "dot", "uniform")
TEXTS = ((3, 9), (0, 1), (5, 13), (2, 2), (9, 4))  # first word, number of words
SOS, EOS = SPECIAL_TOKENS.index("<SOS>"), SPECIAL_TOKENS.index("<EOS>")
everything = [
    pytest.param(encoder, attention, classes, id=f"{encoder}-{attention}-{classes}")
    for encoder in ENCODERS
    for attention in ATTENTIONS
    for classes in (2, 4)
]


def attention_score(h, W, attention):
    if attention == "additive":
        read = np.tanh(W["attention.hidden.weight"] @ h + W["attention.hidden.bias"])
        return float(W["attention.out.weight"][0] @ read)
    if attention == "dot":
        return float(W["attention.query.weight"][0] @ h) / math.sqrt(len(h))
    return 0.0


def plain_forward(subject, words):
    """States, attention and logits of <SOS> words <EOS>, without padding or batch."""
    W = {name: value.numpy() for name, value in subject.network.state_dict().items()}
    encoder, attention = subject.family.split("-")
    ids = [SOS, *(len(SPECIAL_TOKENS) + subjects.WORDS.index(word) for word in words), EOS]
    rows = [W["embedding.weight"][number] for number in ids]
    states = reference_encoders.ENCODE[encoder](rows, reference_encoders.inside(W, "encoder"))
    scores = [attention_score(h, W, attention) for h in states[1:-1]]
    parts = [math.exp(score) for score in scores]
    weights = [0.0, *(part / sum(parts) for part in parts), 0.0]  # the two signs: never attended
    mixed = sum(weight * h for weight, h in zip(weights, states, strict=True))
    logits = [
        float(row @ mixed + b)
        for row, b in zip(W["decoder.weight"], W["decoder.bias"], strict=True)
    ]
    return states, weights, logits if len(logits) > 1 else [0.0, *logits]


def texts():
    return [[subjects.WORDS[(first + 7 * k) % 30] for k in range(n)] for first, n in TEXTS]


def encode(subject, number, words):
    return subject.encode(Example(number, " ".join(words), 0))


def test_every_registered_encoder_and_attention_has_its_plain_loop():
    assert set(encoders) == set(ENCODERS)
    assert set(attentions) == set(ATTENTIONS)


@pytest.mark.parametrize(("encoder", "attention", "classes"), everything)
def test_forward_is_that_of_plain_loops(encoder, attention, classes):
    subject = subjects.subject(encoder, attention, classes=classes, seed=3)
    batch = collate([encode(subject, n, words) for n, words in enumerate(texts())])
    found = subject.forward(batch)
    for row, words in enumerate(texts()):
        states, weights, logits = plain_forward(subject, words)
        n = len(words) + 2
        np.testing.assert_allclose(found.states[row, :n].numpy(), states, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.attention[row, :n].numpy(), weights, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.logits[row].numpy(), logits, rtol=0, atol=1e-11)
        exact = np.exp(np.array(logits) - max(logits))
        want = exact / exact.sum()
        np.testing.assert_allclose(found.probabilities[row].numpy(), want, rtol=0, atol=1e-12)
        assert int(found.predicted[row]) == int(np.argmax(logits))
        assert not found.attention[row, n:].any()
        assert batch.mask[row].tolist() == [0 < t <= len(words) for t in range(batch.ids.shape[1])]
    assert found.logits.shape == (len(TEXTS), classes)
    if classes == 2:
        assert not found.logits[:, 0].any()


@pytest.mark.parametrize(("encoder", "attention", "classes"), everything)
def test_padding_never_matters(encoder, attention, classes):
    subject = subjects.subject(encoder, attention, classes=classes, seed=4)
    encoded = [encode(subject, n, words) for n, words in enumerate(texts())]
    batch = collate(encoded)
    junk = torch.randint(0, 34, batch.ids.shape, generator=torch.Generator().manual_seed(1))
    other = replace(batch, ids=torch.where(batch.present, batch.ids, junk))
    together, disturbed = subject.forward(batch), subject.forward(other)
    torch.testing.assert_close(disturbed.logits, together.logits, atol=1e-13, rtol=0)
    torch.testing.assert_close(disturbed.attention, together.attention, atol=1e-13, rtol=0)
    for row, one in enumerate(encoded):
        alone, n = subject.forward(collate([one])), len(one.ids)
        torch.testing.assert_close(together.logits[row], alone.logits[0], atol=1e-12, rtol=0)
        torch.testing.assert_close(
            together.attention[row, :n], alone.attention[0], atol=1e-12, rtol=0
        )
        torch.testing.assert_close(together.states[row, :n], alone.states[0], atol=1e-12, rtol=0)


@pytest.mark.parametrize(("encoder", "attention", "classes"), everything)
def test_decoder_is_the_output_layer_under_any_attention(encoder, attention, classes):
    subject = subjects.subject(encoder, attention, classes=classes, seed=5)
    batch = collate([encode(subject, n, words) for n, words in enumerate(texts())])
    forward = subject.forward(batch)
    decoder = subject.decoder(batch, forward)
    draw = torch.Generator().manual_seed(2)
    other = torch.rand(2, *batch.ids.shape, generator=draw, dtype=torch.float64) * batch.mask
    other = other / other.sum(-1, keepdim=True)
    torch.testing.assert_close(decoder(forward.attention), forward.logits, atol=1e-12, rtol=0)
    W = {name: value.numpy() for name, value in subject.network.state_dict().items()}
    weight, bias = W["decoder.weight"], W["decoder.bias"]
    for k in range(2):
        for row, words in enumerate(texts()):
            states, _, _ = plain_forward(subject, words)
            weights = other[k, row].tolist()
            mixed = sum(a * h for a, h in zip(weights, states, strict=False))
            want = weight @ mixed + bias
            want = np.array([0.0, *want]) if classes == 2 else want
            np.testing.assert_allclose(decoder(other)[k, row].numpy(), want, rtol=0, atol=1e-11)
    for one in range(classes):  # Σ α (s_one − s_other) is the difference of the logits
        gap = (other * decoder.difference(one, 0)).sum(-1)
        want = decoder(other)[..., one] - decoder(other)[..., 0]
        torch.testing.assert_close(gap, want, atol=1e-11, rtol=0)
    assert BatchContext(subject, batch).parity < 1e-12


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_text_without_words_still_has_an_output(encoder):
    subject = subjects.subject(encoder, "additive", seed=6)
    batch = collate([encode(subject, 0, []), encode(subject, 1, ["w1", "w2"])])
    found = subject.forward(batch)
    assert not found.attention[0].any()
    want = [0.0, float(subject.network.state_dict()["decoder.bias"][0])]
    np.testing.assert_allclose(found.logits[0].numpy(), want, rtol=0, atol=1e-12)
