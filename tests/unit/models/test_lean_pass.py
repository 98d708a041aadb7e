"""Logits of the lean pass against the whole pass of the network."""

import pytest
import torch

from heedful.models.recurrent.encoders import encoders
from support.subjects import batch, subject


@pytest.mark.parametrize("attention", ["additive", "dot"])
@pytest.mark.parametrize("encoder", list(encoders))
def test_the_lean_pass_gives_the_logits_of_the_whole_pass(encoder, attention):
    model = subject(encoder, attention, classes=3)
    texts = batch(model, [1, 4, 9, 9, 17])
    with torch.no_grad():
        lean, whole = model.run_logits(texts), model.forward(texts).logits
    torch.testing.assert_close(lean, whole, rtol=0, atol=1e-14)
    assert model.run_logits(texts).requires_grad == whole.requires_grad
