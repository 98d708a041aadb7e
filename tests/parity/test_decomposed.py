"""ALTI and GlobEnc against plain loops over a BERT's and a GPT-2's weights, and what must hold."""

import pytest
import torch
from torch.testing import assert_close as close

from heedful.core.errors import NotApplicable
from heedful.methods import methods
from heedful.models.attention_access.scope import Scope
from heedful.models.batch_context import BatchContext
from heedful.models.internals.alti_globenc import LayerStructure, contributions_by_layer
from heedful.models.transformer.from_pretrained import from_model
from heedful.numerics.tensor.attention_maps import multiply_layers
from heedful.numerics.tensor.vector_parts import normalise_rows
from support import attention_families, reference_decomposition, subjects, tiny_models

POST = ("bert", "roberta", "distilbert", "albert", "electra")
PRE = ("modernbert", "gpt2", "gpt-neox", "opt", "llama", "mistral", "qwen2", "gemma2", "gpt-oss")
HAND = ("bert", "gpt2")
ways = pytest.mark.parametrize("way", ["alti", "globenc"])
TEXTS = ("so fine , and dull .", "not bad", "it was the best")


def sat(name, scope=None, texts=TEXTS, **more):
    subject = attention_families.subject(name, scope)
    return BatchContext(subject, attention_families.batch(subject, texts), **more)


def ids_of(context):
    """The texts of a padded batch, without the padding."""
    both = zip(context.batch.ids, context.batch.present, strict=True)
    return [tuple(ids[present].tolist()) for ids, present in both]


@ways
@pytest.mark.parametrize("name", HAND)
def test_contributions_are_those_of_plain_loops(name, way):
    context = sat(name)
    found = context.cached(contributions_by_layer, way)
    for row, ids in enumerate(ids_of(context)):
        for layer, wanted in enumerate(reference_decomposition.contributions(name, ids, way)):
            close(found[layer][row, : len(ids), : len(ids)], wanted, rtol=1e-9, atol=1e-9)


@ways
@pytest.mark.parametrize("name", HAND)
@pytest.mark.parametrize("position", ["first", "last", "mean"])
def test_scores_are_rows_of_the_layers_multiplied_last_to_first(name, way, position):
    context = sat(name, Scope(position=position))
    found = methods.build(way)(context, context.predicted).scores
    for row, ids in enumerate(ids_of(context)):
        layers = reference_decomposition.contributions(name, ids, way)
        if way == "alti":
            layers = [one / one.sum(-1, keepdim=True) for one in layers]
        whole = layers[1] @ layers[0]
        wanted = {"first": whole[0], "last": whole[-1], "mean": whole.mean(0)}[position]
        words = context.batch.mask[row, : len(ids)]
        if way == "globenc":  # but for its scale
            wanted = wanted / (layers[0].sum(-1).max() * layers[1].sum(-1).max())
        close(found[row, : len(ids)], wanted * words, rtol=1e-9, atol=1e-9)


def test_rows_of_globenc_can_be_made_to_sum_to_one():
    context = sat("gpt2")
    found = methods.build("globenc", normalise="row")(context, context.predicted).scores
    close(found.sum(-1), torch.ones(len(TEXTS)).double())
    for row, ids in enumerate(ids_of(context)):
        layers = reference_decomposition.contributions("gpt2", ids, "globenc")
        layers = [one / one.sum(-1, keepdim=True) for one in layers]
        close(found[row, : len(ids)], (layers[1] @ layers[0])[-1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [*POST, *PRE])
def test_parts_and_biases_make_up_every_layer(name, monkeypatch):
    ours, gaps, norms = LayerStructure.attention_parts, [], []

    def noted(self):
        parts, whole = ours(self)
        gaps.append(float((parts.total() - whole)[self.present].abs().max()))
        norms.append(len(self._residual_structure[1]))
        return parts, whole

    monkeypatch.setattr(LayerStructure, "attention_parts", noted)
    sat(name).cached(contributions_by_layer, "alti")
    assert max(gaps) < (1e-5 if tiny_models.FAMILIES[name].dtype == torch.float32 else 1e-12)
    assert norms == [2 if name in POST else 0] * tiny_models.FAMILIES[name].layers


@ways
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_rows_sum_to_one_and_look_back_only_where_the_model_does(name, way):
    context = sat(name)
    for one in context.cached(contributions_by_layer, way):
        rows = normalise_rows(one)
        close(rows.sum(-1), torch.ones_like(rows[..., 0]))
        assert (rows >= 0).all()
        for row, present in zip(rows, context.batch.present, strict=True):
            assert not row[present][:, ~present].any()
            assert not tiny_models.FAMILIES[name].causal or not row[present].triu(1).any()
    found = methods.build(way)(context, context.predicted).scores
    wanted = multiply_layers(
        [normalise_rows(one) for one in context.cached(contributions_by_layer, "alti")]
    )
    if way == "alti":
        read = context.subject.row_at_position(context.batch, wanted)
        close(found, read.masked_fill(~context.batch.mask, 0.0))


@ways
def test_one_pass_is_all_it_takes(way):
    context = sat("bert", max_batch_tokens=9)
    context.forward  # noqa: B018 - the pass that all methods share
    passes = []
    model = context.subject.model
    with model.register_forward_pre_hook(lambda *_: passes.append(1)):
        methods.build(way)(context, context.predicted)
        methods.build(way)(context, context.predicted)
    assert len(passes) == 1


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (
            ("deberta", "bloom"),
            r"^alti needs .*\.$",
        ),  # where only weights are seen, not what they mix
        (("t5", "bart"), r"^alti follows one stack of layers; .* a decoder\.$"),
    ],
)
def test_models_that_cannot_be_looked_into_are_refused_with_a_sentence(names, reason):
    for name in names:
        context = sat(name)
        with pytest.raises(NotApplicable, match=reason):
            methods.build("alti")(context, context.predicted)


@ways
def test_a_model_of_one_attention_is_refused(way):
    subject = subjects.subject()
    context = BatchContext(subject, subjects.batch(subject, [4, 2]))
    with pytest.raises(NotApplicable, match=rf"^{way} follows .* this model has one attention\.$"):
        methods.build(way)(context, context.predicted)


def bend(_, __, output):
    return output + 0.1 * output.square()


def stretch(_, args, kwargs):
    return (1.1 * args[0], *args[1:]), kwargs


UNSEEN = {  # something in a block that is no part of what is seen, and what is said of it
    "a norm that is none": ("bert", "attention.output.LayerNorm", bend, "is not recognised"),
    "a bent output map": ("bert", "attention.output.dense", bend, "do not add up to its states"),
    "a bent layer": (
        "gpt2",
        "",
        lambda *given: (bend(*given[:2], given[2][0]),),
        "is not recognised",
    ),
    "a bent stream": ("gpt2", "attn.c_proj", bend, "do not add up to its states"),
}


@ways
@pytest.mark.parametrize(("name", "path", "hook", "reason"), UNSEEN.values(), ids=UNSEEN)
def test_something_unseen_in_a_block_is_refused_and_the_model_left_alone(
    name, path, hook, reason, way
):
    model = tiny_models.build(name)
    block = (model.bert.encoder.layer if name == "bert" else model.transformer.h)[0]
    if not path:
        hook = bent_if_bare(hook)
    block.get_submodule(path).register_forward_hook(hook)
    subject = from_model(model, tiny_models.tokenizer(name))
    context = BatchContext(subject, attention_families.batch(subject, TEXTS))
    hooks = [(dict(one._forward_hooks), dict(one._forward_pre_hooks)) for one in model.modules()]
    with pytest.raises(NotApplicable, match=rf"^{way} is refused: .*{reason}"):
        methods.build(way)(context, context.predicted)
    after = [(dict(one._forward_hooks), dict(one._forward_pre_hooks)) for one in model.modules()]
    assert after == hooks


def bent_if_bare(hook):
    """The hook for a layer that gives its states alone, or in a tuple."""

    def either(module, args, output):
        return bend(module, args, output) if torch.is_tensor(output) else hook(module, args, output)

    return either


def test_states_that_change_between_layers_are_refused():
    model = tiny_models.build("bert")
    model.bert.encoder.layer[1].register_forward_pre_hook(stretch, with_kwargs=True)
    subject = from_model(model, tiny_models.tokenizer("bert"))
    context = BatchContext(subject, attention_families.batch(subject, TEXTS))
    with pytest.raises(NotApplicable, match=r"states change between two layers"):
        methods.build("alti")(context, context.predicted)
