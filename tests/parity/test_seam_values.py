"""Weights and values through the seam: what the heads give out is the mix that the weights say."""

import pytest
import torch
from torch import nn

from heedful.checks.interventions import interventions
from heedful.models.attention_access.recorder import HeadOutput
from heedful.models.attention_access.scope import Scope
from heedful.models.batch_context import BatchContext
from support import head_recorder
from support.attention_families import (
    CAUSAL,
    allowed,
    batch,
    draw,
    families,
    real_queries,
    subject,
    uniform,
)
from support.tiny_models import FAMILIES, H


@families
def test_heads_give_out_the_mix_of_values_that_the_weights_say(name):
    one = subject(name)
    rows = batch(one)
    with torch.no_grad(), head_recorder.witnessed(one.model, name) as seen:
        _, recorder = one.run(rows)
    assert len(seen) == recorder.count
    for call, (values, output) in zip(recorder.calls, seen, strict=True):
        mixed = torch.einsum("bhqk,bhkd->bhqd", call.weights.to(values), values)
        torch.testing.assert_close(output, mixed, **FAMILIES[name].close)
        if FAMILIES[name].path == "interface":
            assert torch.equal(call.values, values)


@families
def test_all_weight_on_one_key_gives_exactly_its_value(name):
    one = subject(name)
    rows = batch(one)
    chosen = []

    def edit(call):
        keys = draw(call.weights.shape, call.weights, seed=call.order).argmax(-1)
        chosen.append(keys)
        return nn.functional.one_hot(keys, call.weights.shape[-1]).to(call.weights)

    with torch.no_grad(), head_recorder.witnessed(one.model, name) as seen:
        one.run(rows, edit)
    for keys, (values, output) in zip(chosen, seen, strict=True):
        wanted = values.gather(2, keys[..., None].expand(output.shape))
        assert torch.equal(output, wanted)


@families
def test_even_weights_give_the_mean_of_the_allowed_values(name):
    one = subject(name)
    rows = batch(one)
    with torch.no_grad(), head_recorder.witnessed(one.model, name) as seen:
        one.run(rows, uniform(name, rows))
    for order, (values, output) in enumerate(seen):
        open_to = allowed(name, rows, order)
        for b, i in open_to.any(-1).nonzero().tolist():
            mean = values[b][:, open_to[b, i]].mean(1)
            torch.testing.assert_close(output[b, :, i], mean, rtol=1e-5, atol=1e-6)


@families
def test_weights_lie_on_allowed_keys_alone(name):
    one = subject(name)
    rows = batch(one)
    with torch.no_grad():
        _, recorder = one.run(rows)
    for call in recorder.calls:
        seen = allowed(name, rows, call.order)
        weights = call.weights.transpose(1, 2)[real_queries(rows, seen)]  # N, H, K
        open_to = seen[real_queries(rows, seen)][:, None]
        assert not weights.masked_fill(open_to, 0.0).any()
        assert bool((weights >= 0).all())
        total = weights.sum(-1)
        if name == "gpt-oss":
            assert float(total.max()) < 1.0
        else:
            torch.testing.assert_close(total, torch.ones_like(total), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_the_heads_output_can_be_said_outright(name):
    one = subject(name)
    rows = batch(one)
    said = []

    def edit(call):
        said.append(draw((*call.weights.shape[:3], 8), call.weights, seed=call.order))
        return HeadOutput(said[-1])

    with torch.no_grad(), head_recorder.witnessed(one.model, name) as seen:
        one.run(rows, edit)
    for output, (_, given) in zip(said, seen, strict=True):
        assert torch.equal(given, output)


@pytest.mark.parametrize("kind", ["permute", "uniform", "leverage"])
@pytest.mark.parametrize("where", ["auto", "mean"])
@pytest.mark.parametrize("name", CAUSAL)
def test_no_intervention_lets_a_row_see_what_it_may_not(name, where, kind):
    layer = min(range(2), key=lambda number: FAMILIES[name].reach[number] or 99)
    one = subject(name, Scope(layer=layer, position=where))
    rows = batch(one)
    context = BatchContext(one, rows)
    new = interventions.build(kind)(context)
    assert new.shape[1:] == context.rows.shape
    seen = allowed(name, rows, layer)
    if where == "mean":
        seen = (seen & rows.present[:, :, None]).repeat(1, H, 1)
    else:
        seen = seen[torch.arange(len(rows)), one.position(rows)][:, None]
    assert not new.masked_fill(seen, 0.0).any()
    torch.testing.assert_close(new.sum(-1), context.rows.sum(-1).expand(new.shape[:-1]))
