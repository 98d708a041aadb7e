"""Decoding other rows and shorter texts against the whole model, run by plain loops."""

import pytest
import torch

from heedful.core.errors import HeedfulError
from heedful.core.values import Example
from heedful.models.attention_access.scope import Scope
from heedful.models.transformer.last_layer import LastLayerReplay
from support import tiny_models
from support.attention_families import (
    SHORT,
    alone,
    batch,
    by_hand,
    encoded,
    families,
    random_rows,
    scale,
    subject,
)
from support.tiny_models import FAMILIES


@families
def test_the_decoder_gives_what_the_whole_model_gives_under_these_rows(name):
    one = subject(name)
    rows = batch(one)
    forward = one.forward(rows).detached()
    decode = one.decoder(rows, forward)
    short = name in SHORT
    assert isinstance(decode, LastLayerReplay) == short
    close = {"rtol": 1e-5, "atol": 1e-5} if short else FAMILIES[name].close
    with torch.no_grad():
        torch.testing.assert_close(decode(forward.rows), forward.logits, **close)
        many = random_rows(name, one, rows, forward, draws=(2, 3))
        found = decode(many)
        assert found.shape == (2, 3, *forward.logits.shape)
        assert float((found - forward.logits).abs().max()) > 1e-3 * float(found.abs().max())
        for new, logits in zip(many.flatten(0, 1), found.flatten(0, 1), strict=True):
            torch.testing.assert_close(logits, by_hand(one, rows, new), **FAMILIES[name].close)


@families
@pytest.mark.parametrize(
    "scope",
    [Scope(head=1), Scope(layer=0), Scope(layer=0, head=2), Scope("all"), Scope(position="mean")],
    ids=str,
)
def test_the_decoder_of_any_scope(name, scope):
    if scope.position == "mean" and FAMILIES[name].seq2seq:
        scope = Scope()  # its queries are not the text's; see the refusals
    one = subject(name, scope)
    rows = batch(one)
    with torch.no_grad():
        forward = one.forward(rows)
        decode = one.decoder(rows, forward)
        if scope == Scope(head=1):
            assert isinstance(decode, LastLayerReplay) == (name in SHORT)
        new = random_rows(name, one, rows, forward)
        torch.testing.assert_close(decode(new), by_hand(one, rows, new), **FAMILIES[name].close)
        torch.testing.assert_close(decode(forward.rows), forward.logits, **FAMILIES[name].close)


@families
def test_the_decoders_gradient_is_the_whole_models(name):
    one = subject(name)
    rows = batch(one)
    forward = one.forward(rows).detached()
    leaf = random_rows(name, one, rows, forward).requires_grad_()
    found = []
    for decode in (one.decoder(rows, forward), lambda new: by_hand(one, rows, new)):
        logits = decode(leaf)
        found.append(torch.autograd.grad((logits * scale(logits)).sum(), leaf)[0])
    torch.testing.assert_close(found[0], found[1], rtol=1e-5, atol=1e-5)
    assert found[0].any()


@families
def test_leave_one_out_is_a_loop_over_shorter_texts(name):
    one = subject(name)
    rows = batch(one)
    with torch.no_grad():
        found = one.without_each(rows, max_batch_tokens=40)
    assert not found[~rows.mask].any()
    for b, text in enumerate(encoded(one)):
        first = int(rows.present[b].nonzero().min())  # not 0 where texts are padded on the left
        for t in range(len(text.ids)):
            if text.word[t] < 0:
                continue
            ids = text.ids[:t] + text.ids[t + 1 :]
            types = None if text.types is None else text.types[:t] + text.types[t + 1 :]
            wanted = alone(one, ids, types)
            torch.testing.assert_close(found[b, first + t], wanted, rtol=1e-5, atol=1e-5)


def test_padding_is_not_taken_for_a_token_when_one_is_left_out():
    one = subject("gpt2")
    texts = ("so fine [PAD]", "so bad")  # the one without fine, the other without bad
    with torch.no_grad():
        found = one.without_each(batch(one, texts), max_batch_tokens=100)
    for b, t, left in ((0, 1, "so [PAD]"), (0, 2, "so fine"), (1, 1, "so"), (1, 0, "bad")):
        wanted = alone(one, tuple(tiny_models.tokenizer("gpt2")(left)["input_ids"]))
        torch.testing.assert_close(found[b, t], wanted)


def test_a_text_that_deletion_would_empty_is_not_explained():
    one = subject("gpt2")
    assert (
        one.encode(Example(0, "good", 0)).explained_tokens == 0
    )  # an audit counts it as too short
    left = one.without_each(batch(one, ("good", "so fine")), max_batch_tokens=100)
    assert bool((left[0] == 0).all())
    with torch.no_grad():
        alone = one.logits(batch(one, ("fine so",)).select(torch.tensor([0])))
    assert alone.shape == left[1, :1].shape
    with pytest.raises(HeedfulError):
        one.without_each(batch(one, ("good",)), max_batch_tokens=100)
