"""The last layer for the first position alone: the same output and slopes, or not at all."""

from dataclasses import replace

import pytest
import torch

from heedful.models.transformer.last_layer import find_first_position_only
from support import attention_families


def output_and_slope(subject, batch):
    leaf = subject.embed(batch).detach().requires_grad_()
    logits = subject.run_logits(batch, leaf)
    (slope,) = torch.autograd.grad(logits[:, 0].sum(), leaf)
    return logits.detach(), slope


@pytest.mark.parametrize("name", ["bert", "distilbert", "roberta", "electra"])
def test_output_and_slopes_are_those_of_the_whole_layer(name):
    subject = attention_families.subject(name)
    batch = attention_families.batch(subject)
    short, whole = (
        output_and_slope(one, batch)
        for one in (subject, replace(subject, first_position_only=None))
    )
    assert subject.first_position_only is not None
    torch.testing.assert_close(short, whole, atol=1e-12, rtol=0)


def test_behind_the_last_attention_one_row_is_left_and_afterwards_all_are():
    subject = attention_families.subject("bert")
    batch, rows = attention_families.batch(subject), []
    inner = subject.first_position_only.layer.intermediate
    handle = inner.register_forward_hook(lambda _, given, __: rows.append(given[0].shape[1]))
    subject.run_logits(batch)
    subject.run(batch)
    handle.remove()
    assert rows == [1, batch.ids.shape[1]]


@pytest.mark.parametrize("name", ["gpt2", "albert"])
def test_a_model_that_pools_another_position_or_has_one_layer_for_all_is_refused(name):
    subject = attention_families.subject(name)
    batch = attention_families.batch(subject)
    assert subject.first_position_only is None
    assert find_first_position_only(subject.access, lambda: subject.logits(batch)) is None
