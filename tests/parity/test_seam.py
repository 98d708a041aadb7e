"""The seam hears every attention, and an edit that changes nothing leaves the model as it was."""

import copy

import pytest
import torch

from support import tiny_models
from support.attention_families import alone, batch, encoded, families, subject, uniform, untouched
from support.tiny_models import FAMILIES


@families
def test_every_attention_is_heard_once(name):
    family, one = FAMILIES[name], subject(name)
    assert one.access.path == family.path
    with torch.no_grad():
        _, recorder = one.run(batch(one))
    assert recorder.count == len(recorder.calls) == family.layers * (3 if family.seq2seq else 1)
    assert [call.order for call in recorder.calls] == list(range(recorder.count))
    assert len({call.module for call in recorder.calls}) == (
        1 if name == "albert" else recorder.count
    )
    if family.seq2seq:
        crossing = [("EncDec" in c.module or "encoder_attn" in c.module) for c in recorder.calls]
        assert crossing == [False] * 2 + [False, True] * 2


@families
def test_the_identity_edit_changes_nothing(name):
    one = subject(name)
    eager = tiny_models.build(name, attention="eager")
    with torch.no_grad():
        for rows in map(one.batch, zip(encoded(one), strict=True)):
            before = untouched(eager, one, rows)
            with one.access.patched(lambda call: call.weights.clone()) as recorder:
                torch.testing.assert_close(
                    untouched(one.model, one, rows), before, rtol=1e-6, atol=1e-12
                )
            assert recorder.count == one.access.calls
        rows = batch(one)
        before = untouched(one.model, one, rows)  # by fused kernels, where the family has them
        after, _ = one.run(rows, lambda call: call.weights.clone())
        scale = float(before.abs().max())
        torch.testing.assert_close(after, before, rtol=0, atol=1e-5 * scale)
        torch.testing.assert_close(one.forward(rows).logits, before, rtol=0, atol=1e-5 * scale)
        assert one.access.parity <= 1e-5 * scale


@families
def test_the_weights_are_large_enough_for_attention_to_matter(name):
    one = subject(name)
    rows = batch(one)
    with torch.no_grad():
        before = untouched(one.model, one, rows)
        after, _ = one.run(rows, uniform(name, rows))
    assert float((after - before).abs().max()) > 1e-3 * float(before.abs().max())


@families
def test_a_padded_batch_gives_what_each_text_gives_alone(name):
    one = subject(name)
    rows = batch(one)
    with torch.no_grad():
        together = one.forward(rows)
        for b, text in enumerate(encoded(one)):
            single = one.forward(one.batch([text]))
            here = rows.present[b]
            close = {"rtol": 1e-5, "atol": 1e-6}  # softmax is in float32 in many families
            torch.testing.assert_close(together.logits[b], single.logits[0], rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(
                single.logits[0], alone(one, text.ids, text.types), rtol=1e-5, atol=1e-5
            )
            torch.testing.assert_close(together.rows[b][:, here], single.rows[0], **close)
            torch.testing.assert_close(
                together.states[b][here], single.states[0], rtol=1e-5, atol=1e-5
            )
            torch.testing.assert_close(together.attention[b][here], single.attention[0], **close)
            assert not together.rows[b][:, ~here].any()
            assert not together.attention[b].masked_fill(rows.mask[b], 0.0).any()


@families
def test_an_edit_may_give_a_view_or_another_type(name):
    one = subject(name)
    rows = batch(one)
    with torch.no_grad():
        wanted, _ = one.run(rows, uniform(name, rows))

        def turned(call):
            even = uniform(name, rows)(call)[:, :1].transpose(-1, -2).contiguous()
            return even.transpose(-1, -2).expand(call.weights.shape)

        for edit in (turned, lambda call: turned(call).float()):
            torch.testing.assert_close(one.run(rows, edit)[0], wanted, rtol=1e-4, atol=1e-4)


@families
def test_the_model_is_left_as_it_was_even_after_an_error(name):
    one = subject(name)
    rows = batch(one)
    model = one.model
    config, hooks = copy.deepcopy(model.config), count_hooks(model)
    with torch.no_grad():
        before = untouched(model, one, rows)
        with pytest.raises(ZeroDivisionError), one.access.patched(uniform(name, rows)):
            untouched(model, one, rows).fill_(1 / 0)
        with pytest.raises(ZeroDivisionError):
            one.run(rows, lambda _: 1 / 0)
        one.decoder(rows, one.forward(rows))
        after = untouched(model, one, rows)
    assert torch.equal(before, after)
    assert model.config.to_dict() == config.to_dict()
    assert model.config._attn_implementation == config._attn_implementation != "heedful"
    assert count_hooks(model) == hooks
    assert not model.training


def count_hooks(model):
    lists = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")
    hooks = sum(len(getattr(module, kind)) for module in model.modules() for kind in lists)
    return hooks + sum("forward" in vars(module) for module in model.modules())
