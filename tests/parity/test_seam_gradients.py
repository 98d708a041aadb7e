"""Gradients through the seam against eager attention and small steps."""

import sys

import pytest
import torch

from support import tiny_models
from support.attention_families import (
    DOUBLE,
    ROUGH,
    answers,
    batch,
    by_hand,
    draw,
    encoded,
    inputs,
    random_rows,
    scale,
    subject,
    untouched,
)
from support.tiny_models import FAMILIES, H


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "xlnet"])
def test_the_gradient_of_weights_is_that_of_the_eager_models_own(name):
    one, eager = subject(name), tiny_models.build(name, attention="eager")
    rows = one.batch(encoded(one)[:1])
    output = eager(**inputs(one, rows), output_attentions=True)
    if FAMILIES[name].seq2seq:
        decoder = zip(output.decoder_attentions, output.cross_attentions, strict=True)
        returned = [*output.encoder_attentions, *(one for pair in decoder for one in pair)]
    else:
        returned = list(output.attentions)
    logits = answers(one, output, rows)
    assert torch.equal(logits, untouched(eager, one, rows))  # asking must not change the answer
    wanted = torch.autograd.grad((logits * scale(logits)).sum(), returned)
    for weights, slope, own in zip(returned, *slopes(one, rows), strict=True):
        torch.testing.assert_close(own.to(weights), weights, **FAMILIES[name].close)
        torch.testing.assert_close(slope.to(weights), wanted[0], rtol=1e-5, atol=1e-5)
        wanted = wanted[1:]


def test_the_gradient_of_weights_of_xlnet_is_the_slope_found_by_small_steps():
    one = subject("xlnet")
    rows = batch(one)
    for order, slope in enumerate(slopes(one, rows)[0]):
        way = draw(slope.shape, slope, seed=order) - 0.5
        ends = []
        for step in (1e-5, -1e-5):

            def edit(call, order=order, move=step * way):
                return call.weights + move if call.order == order else None

            with torch.no_grad():
                ends.append(float((scale(one.run(rows, edit)[0]) * one.run(rows, edit)[0]).sum()))
        assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(float((slope * way).sum()), rel=1e-5)


def slopes(subject, rows):
    """∂(scaled sum of logits)/∂weights of every attention, and the weights, through the seam."""
    nudges, weights = [], []

    def nudge(call):
        nudges.append(torch.zeros_like(call.weights).requires_grad_())
        weights.append(call.weights.detach())
        return call.weights + nudges[-1]

    logits, _ = subject.run(rows, nudge)
    return torch.autograd.grad((logits * scale(logits)).sum(), nudges), weights


@pytest.mark.parametrize("name", DOUBLE)
def test_held_attention_is_constant_to_the_gradient(name):
    one = subject(name)
    rows = batch(one)
    x = one.embed(rows).detach().requires_grad_()
    forward = one.forward(rows).detached()
    held = one.logits_with_frozen_attention(rows, x, forward.rows)
    torch.testing.assert_close(held, forward.logits, **FAMILIES[name].close)
    (gradient,) = torch.autograd.grad((held * scale(held)).sum(), x)
    (free,) = torch.autograd.grad((one.forward(rows, x).logits * scale(held)).sum(), x)
    assert float((gradient - free).abs().max()) > 1e-3 * float(free.abs().max())
    with torch.no_grad():
        maps = [call.weights for call in one.run(rows)[1].calls]
        way = draw(x.shape, x) - 0.5
        step, near = (1e-3, 5e-3) if name in ROUGH else (1e-5, 1e-6)
        ends = [
            one.run(rows, lambda call: maps[call.order], embedded=x + move * way)[0]
            for move in (step, -step)
        ]
        slope = float(((ends[0] - ends[1]) * scale(held)).sum()) / (2 * step)
        assert slope == pytest.approx(float((gradient * way).sum()), rel=near)
        new = random_rows(name, one, rows, forward)
        torch.testing.assert_close(
            one.logits_with_frozen_attention(rows, x, new),
            by_hand(one, rows, new),
            **FAMILIES[name].close,
        )


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_held_attention_is_eager_attention_with_its_weights_cut_from_the_graph(name, monkeypatch):
    one, eager = subject(name), tiny_models.build(name, attention="eager")
    rows = batch(one)
    room = sys.modules[type(eager).__module__]
    own, x = room.eager_attention_forward, one.embed(rows).detach().requires_grad_()
    given = {**inputs(one, rows), "inputs_embeds": x}
    del given["input_ids"]
    free = answers(one, eager(**given), rows)

    def cut(module, query, key, value, mask, **more):
        _, weights = own(module, query, key, value, mask, **more)
        value = value.repeat_interleave(H // value.shape[1], dim=1)
        return (weights.detach() @ value).transpose(1, 2).contiguous(), weights

    monkeypatch.setattr(room, "eager_attention_forward", cut)
    held = answers(one, eager(**given), rows)
    monkeypatch.undo()
    forward = one.forward(rows, x)
    for wanted, found in (
        (held, one.logits_with_frozen_attention(rows, x, forward.rows)),
        (free, forward.logits),
    ):
        slopes = [torch.autograd.grad((y * scale(y)).sum(), x)[0] for y in (wanted, found)]
        torch.testing.assert_close(slopes[1], slopes[0], **FAMILIES[name].close)
    torch.testing.assert_close(held, free, rtol=0, atol=1e-12)
