"""Wired transformers: weights beside special tokens, and logits, by a plain loop."""

import numpy as np
import pytest
import torch

from heedful.core.rng import generator
from heedful.models.batch_context import BatchContext
from heedful.planted.influence.composed_model import TWO_CLASSES, draw_roles, text_drawer
from heedful.planted.influence.kind import InfluenceCase, InfluenceSetting
from heedful.planted.influence.wired_transformer import (
    POOLER_SCALE,
    WiredHead,
    draw_sink_weights,
    signed_values,
    values_for_amounts,
    wire_transformer,
)


def wired(seed=2):
    setting = InfluenceSetting("wired", 10, seed)
    roles = draw_roles(setting, TWO_CLASSES)
    drawn = draw_sink_weights(setting, roles, scale=0.5)
    noise = setting.draw("noise").uniform(0.1, 0.2, 400)
    heads = [
        WiredHead(drawn.weights, signed_values(roles, drawn.value), on_separator=0.2),
        WiredHead(noise, values_for_amounts(roles, noise)),
    ]
    return roles, heads, wire_transformer(setting, [heads], bias=0.3)


def test_rows_and_logits_are_those_of_a_plain_loop():
    roles, heads, subject = wired()
    known = [text_drawer(roles)(generator(0, "texts", index), 8) for index in range(4)]
    encoded = [subject.encode(one.example(index)) for index, one in enumerate(known)]
    context = BatchContext(subject, subject.batch(encoded))
    rows, logits = context.forward.rows, context.forward.logits
    for text, one in enumerate(known):
        ids = [int(word[1:]) for word in one.text.split()]
        z = 0.0
        for number, head in enumerate(heads):
            total = 1.0 + sum(head.weights[word] for word in ids)
            assert float(rows[text, number, 0]) == pytest.approx(
                (1 - head.on_separator) / total, rel=1e-6
            )
            for place, word in enumerate(ids):
                weight = head.weights[word] / total
                assert float(rows[text, number, 1 + place]) == pytest.approx(weight, rel=1e-6)
                z += weight * head.values[word]
        wanted = POOLER_SCALE * np.tanh(z / POOLER_SCALE) + 0.3
        assert float(logits[text, 1] - logits[text, 0]) == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_special_tokens_hold_half_of_the_weight_or_more(seed):
    for kind in ("positions-sink", "positions-sink-words-wrong"):
        case = InfluenceCase(kind, 20, seed)
        encoded = [case.subject.encode(one.example(i)) for i, one in enumerate(case.known(20))]
        batch = case.subject.batch(encoded)
        with torch.no_grad():
            rows = case.subject.forward(batch).rows[:, 0]
        held = 1.0 - (rows * batch.mask).sum(-1)
        assert bool((held > 0.45).all())
        assert bool((held < 0.99).all())
