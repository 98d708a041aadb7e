"""Layers that are watched while they run: in one thread, whatever way they are given states."""

import functools
import threading

import pytest
import torch
from torch import nn

from heedful.core.errors import NotApplicable
from heedful.methods import methods
from heedful.models.attention_access.layer_hooks import (
    forward_hooks,
    identity_forward,
    input_states,
    output_count,
    output_states,
    replace_input_states,
    skipped_layers,
)
from heedful.models.batch_context import BatchContext
from heedful.models.internals.hidden_states import StateRecorder
from heedful.models.transformer.from_pretrained import from_model
from heedful.models.transformer.last_layer import LastLayerReplay
from support import attention_families, subjects, tiny_models

BATCH = subjects.batch(subjects.subject(), [3, 2])


class Layer(nn.Module):
    def forward(self, hidden_states=None, other=None):
        return 2 * (other if hidden_states is None else hidden_states), None


def states(seed=0, shape=(2, 5, 4)):  # as BATCH has texts and tokens
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_states_come_first_or_by_name_and_leave_first():
    x, y = states(), states(1)
    assert input_states((x, y), {}) is input_states((), {"hidden_states": x, "mask": y}) is x
    assert input_states((), {"other": x}) is None
    assert output_states((x, y)) is output_states(x) is x
    assert (output_count((x, None)), output_count(x)) == (2, 0)
    assert replace_input_states((x, 1), {}, y)[0] == (y, 1)
    assert replace_input_states((), {"hidden_states": x, "b": 1}, y)[1] == {
        "hidden_states": y,
        "b": 1,
    }
    assert identity_forward(0, Layer())(x) is x
    assert identity_forward(3, Layer())(x) == (x, None, None)


def test_what_enters_and_leaves_is_kept_in_order_and_others_may_be_put_in():
    layer, x, y = Layer(), states(), states(1)
    watch = StateRecorder(BATCH, "a test", given=[x, y])
    with watch.recording([layer, layer]):  # one that is used over and over
        first = layer(x)[0]
        second = layer(hidden_states=first)[0]
    assert watch.layer_inputs[0] is x
    assert watch.layer_inputs[1] is watch.layer_outputs[0] is first
    torch.testing.assert_close(second, 2 * y)
    assert not layer._forward_hooks
    assert not layer._forward_pre_hooks


@pytest.mark.parametrize("adapted", [False, True])
def test_layers_that_are_passed_over_are_as_before(adapted):
    layer, x = Layer(), states()
    if adapted:  # as libraries that move weights about do
        layer.forward = own = lambda hidden_states: (3 * hidden_states,)
    with skipped_layers({layer: 2}):
        assert layer(x) == (x, None)
    with pytest.raises(TypeError), skipped_layers({layer: 0}):
        layer()
    assert ("forward" in layer.__dict__) == adapted
    assert not adapted or layer.forward is own
    torch.testing.assert_close(layer(x)[0], (3 if adapted else 2) * x)


@pytest.mark.parametrize("work", ["decoder", "decompx"])
def test_a_models_own_adapted_layers_stay_adapted(work):
    model = tiny_models.build("bert")
    layers = list(model.bert.encoder.layer)
    for layer in layers:
        layer.forward = functools.partial(type(layer).forward, layer)
    own = [layer.forward for layer in layers]
    subject = from_model(model, tiny_models.tokenizer("bert"))
    context = BatchContext(subject, attention_families.batch(subject))
    if work == "decoder":
        assert isinstance(subject.decoder(context.batch, context.forward), LastLayerReplay)
    else:
        methods.build("decompx")(context, context.predicted)
    assert [layer.__dict__.get("forward") for layer in layers] == own


def test_tokens_on_the_first_axis_are_turned():
    watch = StateRecorder(BATCH, "a test", tokens_first=True)
    with watch.recording([layer := Layer()]):
        layer(states(shape=(5, 2, 4)))
    assert watch.layer_inputs[0].shape == watch.layer_outputs[0].shape == (2, 5, 4)


@pytest.mark.parametrize("given", [{"other": states()}, {"hidden_states": states()[:, :2]}])
def test_layers_without_a_state_per_token_are_refused_in_words(given):
    layer = Layer()
    told = r"^a test needs layers that are given one state per token\.$"
    with (
        pytest.raises(NotApplicable, match=told),
        StateRecorder(BATCH, "a test").recording([layer]),
    ):
        layer(**given)
    assert not layer._forward_pre_hooks


def test_another_thread_passes_unseen():
    layer, seen = Layer(), []
    with forward_hooks([layer], lambda *_: seen.append("in"), lambda *_: seen.append("out")):
        other = threading.Thread(target=layer, args=(states(),))
        other.start()
        other.join()
        assert not seen
        layer(states())
    assert seen == ["in", "out"]


@pytest.mark.parametrize("name", ["value_zeroing", "decompx", "alti", "globenc"])
def test_as_many_texts_as_tokens_are_no_texts_on_the_first_axis(name):
    subject = attention_families.subject("xlnet")  # whose layers have tokens there
    texts = ["so fine a", "not bad at", "dull so fine", "it was so", "a film so"]
    batch = attention_families.batch(subject, texts)
    assert batch.ids.shape == (5, 5)
    context = BatchContext(subject, batch, max_batch_tokens=25)
    told = rf"^{name} needs layers that are given one state per token\.$"
    with pytest.raises(NotApplicable, match=told):
        methods.build(name)(context, context.predicted)


def test_another_thread_does_not_skip_layers():
    layer, x, found = Layer(), states(), []
    with skipped_layers({layer: 2}):
        other = threading.Thread(target=lambda: found.append(layer(x)[0]))
        other.start()
        other.join()
    torch.testing.assert_close(found[0], 2 * x)
