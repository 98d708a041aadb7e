"""Attention norms and value zeroing against the models' own weights, written out, and hooks."""

from functools import cache

import pytest
import torch
from torch.testing import assert_close as close

from heedful.core.errors import NotApplicable
from heedful.methods import methods
from heedful.models.attention_access.scope import Scope
from heedful.models.batch_context import BatchContext
from support import attention_families, subjects, tiny_models
from support.tiny_models import H


@cache
def eager(name):
    """The subject's model once more, which shows its weights; no part of heedful runs it."""
    return tiny_models.build(name, attention="eager").requires_grad_(False)


def run(name, text):
    """One text alone, unpadded."""
    subject = attention_families.subject(name)
    given = attention_families.inputs(subject, attention_families.batch(subject, [text]))
    return eager(name)(**given, output_attentions=True, output_hidden_states=True)


def made(vectors, weight, bias=None):
    """The values of each head, (H, K, d), as a linear map makes them; grouped heads share one."""
    values = vectors @ weight + (0.0 if bias is None else bias)
    values = values.unflatten(-1, (-1, 8)).transpose(0, 1)
    return values.repeat_interleave(H // len(values), dim=0)


def of_bert(model, out, layer):
    block = model.bert.encoder.layer[layer].attention
    value = block.self.value
    values = made(out.hidden_states[layer][0], value.weight.T, value.bias)
    return out.attentions[layer], values, block.output.dense


def of_albert(model, out, layer):
    block = model.albert.encoder.albert_layer_groups[0].albert_layers[0].attention  # of all layers
    values = made(out.hidden_states[layer][0], block.value.weight.T, block.value.bias)
    return out.attentions[layer], values, block.dense


def of_gpt2(model, out, layer):
    block = model.transformer.h[layer]
    makes = block.attn.c_attn  # queries, keys, values; not transposed
    x = block.ln_1(out.hidden_states[layer][0])
    return out.attentions[layer], made(x, makes.weight[:, 64:], makes.bias[64:]), block.attn.c_proj


def of_llama(model, out, layer):
    block = model.model.layers[layer]
    x = block.input_layernorm(out.hidden_states[layer][0])
    return out.attentions[layer], made(x, block.self_attn.v_proj.weight.T), block.self_attn.o_proj


def of_t5(model, out, layer):
    block = model.decoder.block[layer].layer[1].EncDecAttention
    values = made(out.encoder_last_hidden_state[0], block.v.weight.T)
    return out.cross_attentions[layer], values, block.o


def of_bart(model, out, layer):
    block = model.model.decoder.layers[layer].encoder_attn
    values = made(out.encoder_last_hidden_state[0], block.v_proj.weight.T, block.v_proj.bias)
    return out.cross_attentions[layer], values, block.out_proj


KNOWN = {
    **{"bert": of_bert, "albert": of_albert, "gpt2": of_gpt2, "llama": of_llama},
    **{"t5": of_t5, "bart": of_bart},
}
known = pytest.mark.parametrize("name", KNOWN)


def parts(name, text, layer):
    """α f(x) of each head, (H, Q, K, D), and the map that makes it of the values."""
    alpha, values, last = KNOWN[name](eager(name), run(name, text), layer)
    weight = last.weight if name == "gpt2" else last.weight.T
    f = torch.einsum("hkd,hde->hke", values, weight.unflatten(0, (H, 8)))
    return alpha[0, ..., None] * f[:, None], last


def at(matrix, position):
    return {"first": matrix[0], "last": matrix[-1], "mean": matrix.mean(0)}[position]


def explained(method, name, scope=None):
    """Texts with their scores out of a padded batch, cut to their tokens, and which are words."""
    subject = attention_families.subject(name, scope)
    context = BatchContext(subject, attention_families.batch(subject))
    scores = methods.build(method)(context, context.predicted).scores
    batch = context.batch
    assert not scores[~batch.mask].any()
    rows = zip(attention_families.TEXTS, scores, batch.present, batch.mask, strict=True)
    return [(text, row[present], mask[present]) for text, row, present, mask in rows]


def same(name, found, wanted, words):
    near = 1e-5 if name in attention_families.ROUGH else 1e-9
    close(found, wanted.masked_fill(~words, 0.0), rtol=near, atol=near)


@known
@pytest.mark.parametrize("layer", [0, 1])
def test_the_parts_written_out_make_up_what_the_block_says(name, layer):
    said, (added, last) = [], parts(name, attention_families.TEXTS[0], layer)
    with last.register_forward_hook(lambda _, __, out: said.append(out[0])):
        run(name, attention_families.TEXTS[0])
    bias = 0.0 if getattr(last, "bias", None) is None else last.bias
    close(added.sum((0, 2)) + bias, said[layer % len(said)], rtol=1e-5, atol=1e-5)


@known
@pytest.mark.parametrize("layer", [0, -1])
@pytest.mark.parametrize("head", [None, 0, 3])
def test_attention_norm_is_the_size_of_what_a_token_adds(name, layer, head):
    for text, found, words in explained("attention_norm", name, Scope(layer, head)):
        added, _ = parts(name, text, layer % tiny_models.FAMILIES[name].layers)
        added = added.sum(0) if head is None else added[head]
        sizes = added.square().sum(-1).sqrt()
        same(name, found, at(sizes, attention_families.subject(name).scope.position), words)


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_attention_norm_of_all_layers_or_positions_is_a_mean(name):
    for text, found, words in explained("attention_norm", name, Scope("all")):
        sizes = [parts(name, text, layer)[0].sum(0).norm(dim=-1) for layer in (0, 1)]
        wanted = at((sizes[0] + sizes[1]) / 2, attention_families.subject(name).scope.position)
        same(name, found, wanted, words)
    for text, found, words in explained("attention_norm", name, Scope(position="mean")):
        same(name, found, parts(name, text, 1)[0].sum(0).norm(dim=-1).mean(0), words)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("encoder", ["bilstm", "cnn"])
def test_attention_norm_of_one_attention_is_its_weight_times_what_a_state_adds(encoder, classes):
    subject = subjects.subject(encoder, "additive", classes=classes, seed=4)
    context = BatchContext(subject, subjects.batch(subject, [6, 2, 3]))
    found = methods.build("attention_norm")(context, context.predicted).scores
    weight = subject.network.decoder.weight
    if classes == 2:  # one output, against zero
        weight = torch.cat([torch.zeros_like(weight), weight])
    for b, t in context.batch.mask.nonzero().tolist():
        added = weight @ context.forward.states[b, t]
        wanted = context.forward.attention[b, t] * (added - added.mean()).norm()
        close(found[b, t], wanted, rtol=1e-10, atol=1e-12)
    assert not found[~context.batch.mask].any()


def erase(name, values, block):
    """Make a token's value zero in what makes it."""
    if name == "deberta":  # query, key and value of each head; a bias is yet to be added
        values.view(H, 3, 8)[:, 2] = -block.attention.self.v_bias.view(H, 8)
    else:
        values[64 if name == "gpt2" else 0 :] = 0.0


VALUES = {  # a model's blocks, and in each of them what makes its values
    "bert": (lambda model: model.bert.encoder.layer, "attention.self.value"),
    "albert": (
        lambda model: [*model.albert.encoder.albert_layer_groups[0].albert_layers] * 3,
        "attention.value",
    ),
    "deberta": (lambda model: model.deberta.encoder.layer, "attention.self.in_proj"),
    "gpt2": (lambda model: model.transformer.h, "attn.c_attn"),
    "mistral": (lambda model: model.model.layers, "self_attn.v_proj"),
}


def states_after(name, text, layer, key=None):
    """The states that a layer gives, with the value of one key of this layer zero."""
    find, path = VALUES[name]
    blocks, made, kept = list(find(eager(name))), [], []
    block = blocks[layer]
    turn = sum(one is block for one in blocks[:layer])  # a block may be several layers

    def zero(_, __, values):
        values = values.clone()
        if key is not None and len(made) == turn:
            erase(name, values[0, key], block)
        made.append(values)
        return values

    def keep(_, __, out):
        kept.append((out if torch.is_tensor(out) else out[0])[0])

    makes = block.get_submodule(path)
    with makes.register_forward_hook(zero), block.register_forward_hook(keep):
        run(name, text)
    return kept[turn]


def turned(name, text, layer):
    """C: how far each state turns without each key's value; rows sum to 1."""
    own = states_after(name, text, layer)
    columns = [
        1 - torch.cosine_similarity(own, states_after(name, text, layer, key), dim=-1)
        for key in range(len(own))
    ]
    matrix = torch.stack(columns, -1)
    return matrix / matrix.sum(-1, keepdim=True)


@pytest.mark.parametrize("name", VALUES)
def test_value_zeroing_is_a_run_for_every_key_of_every_layer(name):
    for text, found, words in explained("value_zeroing", name):
        whole = torch.eye(len(found)).to(found)
        for layer in range(tiny_models.FAMILIES[name].layers):
            one = turned(name, text, layer)
            assert (one > -1e-9).all()
            assert not tiny_models.FAMILIES[name].causal or one.triu(1).abs().max() < 1e-9
            whole = one @ whole
        close(whole.sum(-1), torch.ones_like(found))
        same(name, found, at(whole, attention_families.subject(name).scope.position), words)


@pytest.mark.parametrize("name", ["bert", "gpt2"])
@pytest.mark.parametrize("position", ["first", "last", "mean"])
def test_value_zeroing_explains_the_position_asked_for(name, position):
    text, found, words = explained("value_zeroing", name, Scope(position=position))[2]
    same(name, found, at(turned(name, text, 1) @ turned(name, text, 0), position), words)
    if name == "gpt2":  # which has no special tokens, and looks back only
        close(found.sum(), torch.ones_like(found[0]))
        assert position != "first" or not found[1:].any()


@pytest.mark.parametrize(
    ("method", "names"),
    [("attention_norm", attention_families.TAPPED), ("value_zeroing", ("t5", "bart", "marian"))],
)
def test_models_that_cannot_be_looked_into_are_refused_with_a_sentence(method, names):
    for name in names:
        with pytest.raises(NotApplicable, match=rf"^{method} needs .*\.$"):
            explained(method, name)


def test_value_zeroing_refuses_a_model_of_one_attention():
    subject = subjects.subject()
    context = BatchContext(subject, subjects.batch(subject, [4, 2]))
    with pytest.raises(NotApplicable, match=r"^value_zeroing .*this model has one attention\.$"):
        methods.build("value_zeroing")(context, context.predicted)
