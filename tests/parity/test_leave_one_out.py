"""Short cuts of leave-one-out against running every shortened text on its own."""

import pytest
import torch

import helpers
from heedful.core.values import Example, collate

ENCODERS = ("bilstm", "cnn", "average", "mlp")


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("attention", ["additive", "dot", "uniform"])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("budget", [1, 60, 100_000])
def test_equals_encoding_each_shortened_text_alone(encoder, attention, classes, budget):
    subject = helpers.subject(encoder, attention, classes=classes)
    texts = [" ".join(helpers.WORDS[k : k + n]) for k, n in ((0, 9), (3, 1), (5, 13), (2, 4))]
    batch = collate([subject.encode(Example(i, text, 0)) for i, text in enumerate(texts)])
    found = subject.without_each(batch, max_batch_tokens=budget)
    for row, text in enumerate(texts):
        words = text.split()
        for position in range(len(words)):
            shorter = " ".join(words[:position] + words[position + 1 :])
            alone = collate([subject.encode(Example(0, shorter, 0))])
            want = subject.forward(alone).logits[0]
            torch.testing.assert_close(found[row, position + 1], want, atol=1e-12, rtol=1e-12)
    assert not found[~batch.mask].any()
