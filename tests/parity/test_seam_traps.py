"""Traps that were met on the way: lost masks, odd layouts, layers used twice, sinks."""

import sys
from contextlib import suppress

import pytest
import torch
import transformers

from heedful.core.errors import AttentionUnavailable
from heedful.models.attention_access.access import find_attention_access
from heedful.models.attention_access.recorder import HeadOutput
from heedful.models.attention_access.scope import Scope
from support import handwritten_model, tiny_models
from support.attention_families import (
    TAPPED,
    allowed,
    alone,
    batch,
    by_hand,
    encoded,
    hand_made,
    inputs,
    last_key,
    made,
    random_rows,
    subject,
    untouched,
)
from support.tiny_models import FAMILIES


@pytest.fixture
def maskless():
    """An attention known to transformers by a key that no mask is registered for."""
    heard = []

    def attend(module, *given, **more):
        heard.append(module)
        return sys.modules[type(module).__module__].eager_attention_forward(module, *given, **more)

    transformers.AttentionInterface.register("maskless", attend)
    yield heard
    transformers.AttentionInterface._global_mapping.pop("maskless")


@pytest.mark.parametrize("name", ["bert", "gpt2-classifier", "llama"])
def test_padding_is_not_lost_as_it_is_under_a_key_without_a_mask(name, maskless):
    model = tiny_models.build(name)
    one = made(model, name)
    rows, text = batch(one), encoded(one)[1]
    with torch.no_grad():
        wanted = alone(one, text.ids, text.types)
        torch.testing.assert_close(one.run(rows)[0][1], wanted, rtol=1e-5, atol=1e-5)
        model.set_attn_implementation("maskless")
        lost = untouched(model, one, rows)[1]
    assert len(maskless) == 2
    assert float((lost - wanted).abs().max()) > 0.01  # so the test above can fail


@pytest.mark.parametrize("name", ["bert", "llama", "gpt2"])
def test_a_lost_mask_would_be_noticed(name, monkeypatch):
    model = tiny_models.build(name)
    one = made(model, name)
    rows = batch(one)
    assert find_attention_access(model, lambda: one.logits(rows)).path == "interface"
    monkeypatch.setattr(
        "heedful.models.attention_access.access._attention_mask", lambda *_, **__: None
    )
    assert find_attention_access(model, lambda: one.logits(rows)).path == "tap"
    monkeypatch.setattr("heedful.models.attention_access.access.ACCESS_PATHS", ("interface",))
    with pytest.raises(AttentionUnavailable, match="logits differ from the unmodified model's by"):
        find_attention_access(model, lambda: one.logits(rows))
    monkeypatch.undo()
    find_attention_access(model, lambda: one.logits(rows))  # which registers the mask again


@pytest.mark.parametrize("name", TAPPED)
def test_a_family_outside_the_registry_is_reached_by_the_tap(name, maskless):
    model = tiny_models.build(name)
    one = made(model, name)
    rows = batch(one)
    model.config._attn_implementation_internal = "maskless"
    with torch.no_grad(), suppress(TypeError):  # Falcon cannot even do without a mask
        untouched(model, one, rows)
    assert not maskless  # it attends without asking the registry
    model.config._attn_implementation_internal = "eager"
    with pytest.raises(AttentionUnavailable, match="sees weights only"):
        one.run(rows, lambda call: HeadOutput(torch.zeros(*call.weights.shape[:3], 8).double()))
    assert one.run(rows)[1].count == 2


def test_attention_written_by_hand_is_reached_if_it_takes_a_softmax():
    one = hand_made("softmax", "softmax")
    assert one.access.path == "tap"
    assert one.access.calls == 2
    rows = batch(one)
    by_plain_softmax, _ = one.run(rows)
    fused = handwritten_model.hand_made(["fused", "fused"])
    fused.load_state_dict(one.model.state_dict())
    torch.testing.assert_close(by_plain_softmax, untouched(fused, one, rows))


def test_texts_and_heads_may_lie_on_one_axis():
    plain, folded = hand_made("softmax", "softmax"), hand_made("folded", "folded")
    rows = batch(plain)
    with torch.no_grad():
        for edit in (None, last_key, lambda call: call.weights * torch.tensor([[[0.5]], [[0.1]]])):
            wanted, heard = plain.run(rows, edit)
            found, again = folded.run(rows, edit)
            torch.testing.assert_close(found, wanted)
            for one, other in zip(heard.calls, again.calls, strict=True):
                torch.testing.assert_close(one.weights, other.weights)


def test_the_states_of_xlnet_are_each_texts_own_even_if_there_are_as_many_texts_as_tokens():
    one = subject("xlnet")
    texts = ("so very fine", "not so bad", "a dull film", "it was good", "all of it")
    rows = batch(one, texts)
    assert rows.ids.shape == (5, 5)
    with torch.no_grad():
        together = one.forward(rows)
        for b, text in enumerate(encoded(one, texts)):
            single = one.forward(one.batch([text]))
            torch.testing.assert_close(together.logits[b], single.logits[0])
            torch.testing.assert_close(together.states[b], single.states[0])


@pytest.mark.parametrize("name", ["t5", "bart", "marian"])
def test_cross_attention_is_told_from_self_attention_of_the_same_shape(name):
    one = subject(name)
    rows = batch(one, ("so very fine", "not bad"))
    assert rows.ids.shape[1] == len(one.prefix) == 3
    with torch.no_grad():
        forward, (_, recorder) = one.forward(rows), one.run(rows)
        assert len(forward.maps) == 2
        for found, order in zip(forward.maps, (3, 5), strict=True):
            torch.testing.assert_close(found, recorder.calls[order].weights)
        new = random_rows(name, one, rows, forward)
        found = one.decoder(rows, forward)(new)
        torch.testing.assert_close(found, by_hand(one, rows, new), **FAMILIES[name].close)


def test_albert_uses_one_layer_three_times_and_each_is_counted():
    one = subject("albert")
    rows = batch(one)
    _, recorder = one.run(rows)
    assert one.access.calls == recorder.count == len(one.forward(rows).maps) == 3
    assert len({call.module for call in recorder.calls}) == 1
    moved = []
    for layer in range(3):
        here = subject("albert", Scope(layer=layer))
        forward = here.forward(rows).detached()
        assert torch.equal(forward.rows, recorder.calls[layer].weights[:, :, 0].detach())
        moved.append(here.decoder(rows, forward)(random_rows("albert", here, rows, forward)))
    assert all(float((moved[i] - moved[i - 1]).detach().abs().max()) > 1e-3 for i in range(3))


def test_padding_with_every_key_masked_stays_finite_in_float64():
    one = subject("mistral")
    rows = batch(one)
    assert bool((~allowed("mistral", rows, 0)).all(-1).any())  # there are such rows
    x = one.embed(rows).detach().requires_grad_()
    logits, recorder = one.run(rows, embedded=x)
    assert logits.dtype == torch.float64
    assert all(bool(call.weights.isfinite().all()) for call in recorder.calls)
    assert bool(logits.isfinite().all())
    (gradient,) = torch.autograd.grad(logits.sum(), x)
    assert bool(gradient.isfinite().all())
    assert not gradient[~rows.present].any()


def test_what_a_sink_takes_is_not_given_back():
    one = subject("gpt-oss")
    rows = batch(one)
    with torch.no_grad():
        forward = one.forward(rows)
    eager = tiny_models.build("gpt-oss", attention="eager")
    returned = eager(**inputs(one, rows), output_attentions=True).attentions[1]
    for b, last in enumerate(rows.present.sum(-1).tolist()):
        torch.testing.assert_close(forward.rows[b], returned[b, :, last - 1].detach())
    assert float(forward.rows.sum(-1).max()) < 0.999
    assert float(forward.rows.sum(-1).min()) < 0.9
    torch.testing.assert_close(forward.attention.sum(-1), torch.ones(3))  # a reading, said to be
