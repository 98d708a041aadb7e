"""Gradient rollout against a transcription of the paper's rules and plain autograd.

Weights and their slopes come from transformers itself, each text alone; heedful has a padded batch.
"""

from functools import cache

import pytest
import torch
from torch.testing import assert_close as close

from heedful.core.errors import NotApplicable
from heedful.methods import methods
from heedful.models.attention_access.scope import Scope
from heedful.models.batch_context import BatchContext
from support import attention_families, subjects, tiny_models

CAUSAL = ("gpt2", "gpt2-classifier", "llama", "mistral", "gpt-oss", "gpt-j", "bloom")
PLAIN = ("bert", "albert", "modernbert", "deberta", "mpnet", *CAUSAL)
TRANSLATORS = ("t5", "bart", "marian")
OF = ("log_odds", "probability", "logit")


@cache
def eager(name):
    """The subject's model once more, which shows its weights; no part of heedful runs it."""
    return tiny_models.build(name, attention="eager")


def value(logits, target, of):
    """What is explained of one text's logits, in the words of its definition."""
    if of == "logit":
        return logits[target]
    if of == "probability":
        return logits.softmax(-1)[target]
    others = [logit for place, logit in enumerate(logits) if place != target]
    return logits[target] - torch.stack(others).logsumexp(0)


def slopes(name, text, target, of, scale=1.0):
    """(A, dA) of every layer, stack by stack: the only one, or encoder, decoder and cross."""
    subject = attention_families.subject(name)
    rows = attention_families.batch(subject, [text])
    with torch.enable_grad():
        out = eager(name)(**attention_families.inputs(subject, rows), output_attentions=True)
        explained = scale * value(attention_families.answers(subject, out, rows)[0], target, of)
        kinds = ("encoder_", "decoder_", "cross_") if subject.prefix else ("",)
        stacks = [getattr(out, f"{kind}attentions") for kind in kinds]
        return [
            [(a[0].detach(), d[0]) for a, d in zip(stack, slope(explained, stack), strict=True)]
            for stack in stacks
        ]


def slope(explained, stack):
    return torch.autograd.grad(explained, stack, retain_graph=True)


def averaged(weights, slopes):  # rule 5: clamp, then the mean of the heads
    return (weights * slopes).clamp(min=0).mean(0)


def added_up(stack, relevance):  # rules 6 and 7
    for one in stack:
        relevance = relevance + averaged(*one) @ relevance
    return relevance


def normalised(relevance):  # rules 8 and 9; what is nothing stays nothing
    eye = torch.eye(len(relevance)).to(relevance)
    own = relevance - eye
    return torch.nan_to_num(own / own.sum(-1, keepdim=True), nan=0.0) + eye


def relevance(stacks):
    """Of each output position for each token of the text."""
    encoder = stacks[0]
    source = added_up(encoder, torch.eye(encoder[0][0].shape[-1]).to(encoder[0][0]))
    if len(stacks) == 1:
        return source - torch.eye(len(source)).to(source)
    count = stacks[1][0][0].shape[-1]
    target, across = torch.eye(count).to(source), torch.zeros(count, len(source)).to(source)
    for within, cross in zip(stacks[1], stacks[2], strict=True):
        target, across = added_up([within], target), added_up([within], across)
        across = across + normalised(target).T @ averaged(*cross) @ normalised(source)  # rule 10
    return across


def at(matrix, position):
    return {"first": matrix[0], "last": matrix[-1], "mean": matrix.mean(0)}[position]


def sat(name, scope=None):
    subject = attention_families.subject(name, scope)
    return BatchContext(subject, attention_families.batch(subject))


def scored(context, target, **settings):
    """Scores of each text, cut to its own tokens, and which of those are words."""
    scores = methods.build("gradient_rollout", **settings)(context, target).scores
    batch = context.batch
    assert not scores[~batch.mask].any()
    assert (scores >= 0).all()
    return [
        (row[present], mask[present])
        for row, present, mask in zip(scores, batch.present, batch.mask, strict=True)
    ]


def same(name, found, wanted, words):
    """As near as a family comes that takes its softmax in float32, or all of itself."""
    near = {"rtol": 1e-9, "atol": 1e-11}
    if name in (*attention_families.ROUGH, "modernbert", "gpt-j", "bloom"):
        near = {"rtol": 1e-5, "atol": 1e-7}
    if tiny_models.FAMILIES[name].dtype == torch.float32:
        near = {"rtol": 2e-4, "atol": 2e-5}
    close(found, wanted.masked_fill(~words, 0.0), **near)


@pytest.mark.parametrize("name", [*PLAIN, *TRANSLATORS])
@pytest.mark.parametrize("of", OF)
def test_is_what_the_rules_say(name, of):
    context = sat(name)
    other = torch.tensor([0, 1, 0])  # the second text is explained for another class
    target = (context.predicted + other) % len(context.subject.labels)
    found = scored(context, target, of=of)
    assert max(float(scores.max()) for scores, _ in found) > 1e-3
    for text, chosen, (scores, words) in zip(attention_families.TEXTS, target, found, strict=True):
        whole = relevance(slopes(name, text, int(chosen), of))
        same(name, scores, at(whole, context.subject.scope.position), words)


def test_log_odds_are_explained_unless_said():
    context = sat("bert")
    pairs = zip(
        scored(context, context.predicted),
        scored(context, context.predicted, of="log_odds"),
        strict=True,
    )
    assert all(torch.equal(one, other) for (one, _), (other, _) in pairs)


@pytest.mark.parametrize("position", ["first", "last", "mean"])
def test_the_position_asked_for_is_explained(position):
    for name in ("bert", "gpt2"):
        context = sat(name, Scope(position=position))
        found = scored(context, context.predicted)
        for text, chosen, (scores, words) in zip(
            attention_families.TEXTS, context.predicted, found, strict=True
        ):
            whole = relevance(slopes(name, text, int(chosen), "log_odds"))
            same(name, scores, at(whole, position), words)


@pytest.mark.parametrize("name", PLAIN)
def test_adding_up_is_multiplying_and_a_causal_model_looks_back_only(name):
    (stack,) = slopes(name, attention_families.TEXTS[0], 1, "log_odds")
    eye = torch.eye(stack[0][0].shape[-1]).to(stack[0][0])
    product, wrong = eye, eye
    for one in stack:
        product, wrong = (eye + averaged(*one)) @ product, wrong @ (eye + averaged(*one))
    close(relevance([stack]), product - eye, atol=1e-6, rtol=1e-9)
    assert (product - wrong).abs().max() > 1e-4  # last to first, not first to last
    if name in CAUSAL:
        assert not relevance([stack]).triu(1).any()
        context = sat(name, Scope(position="first"))
        for scores, _ in scored(context, context.predicted):
            assert not scores[1:].any()


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5"])
def test_classes_have_different_explanations(name):
    context = sat(name)
    one = torch.cat([row for row, _ in scored(context, torch.zeros(3, dtype=torch.long))])
    two = torch.cat([row for row, _ in scored(context, torch.ones(3, dtype=torch.long))])
    assert (one - two).abs().max() > 1e-3


def scaled(name, factor):
    """A model whose output is as many times as steep; embeddings keep out of it."""
    model = tiny_models.build(name)
    head = model.classifier if name == "bert" else model.lm_head
    head.weight = torch.nn.Parameter(factor * head.weight.detach())
    return model


@pytest.mark.parametrize("name", ["bert", "gpt2", "bart"])
def test_where_nothing_moves_the_output_nothing_is_relevant(name):
    subject = attention_families.made(scaled(name, 0.0), name, scope=Scope(position="last"))
    context = BatchContext(subject, attention_families.batch(subject))
    for of in OF:
        for scores, _ in scored(context, context.predicted, of=of):
            assert not scores.any()


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5", "bart"])
def test_a_steeper_output_is_not_made_level(name):
    cached = relevance(slopes(name, attention_families.TEXTS[1], 1, "logit"))
    twice = relevance(slopes(name, attention_families.TEXTS[1], 1, "logit", scale=2.0))
    assert (twice - 2 * cached).abs().max() > 1e-4
    subject = attention_families.made(scaled(name, 2.0), name)
    context = BatchContext(
        subject, attention_families.batch(subject, [attention_families.TEXTS[1]])
    )
    ((scores, words),) = scored(context, torch.tensor([1]), of="logit")
    same(name, scores, at(twice, subject.scope.position), words)


@pytest.mark.parametrize("name", ["bert", "llama", "deberta", *TRANSLATORS])
def test_weights_that_are_not_to_be_trained_make_no_difference(name):
    frozen = attention_families.made(
        tiny_models.build(name).requires_grad_(False), name
    )  # as they come from a folder
    context, other = BatchContext(frozen, attention_families.batch(frozen)), sat(name)
    found, wanted = scored(context, context.predicted), scored(other, context.predicted)
    for (scores, _), (expected, words) in zip(found, wanted, strict=True):
        same(name, scores, expected, words)


@pytest.mark.parametrize("name", ["bert", "deberta", "llama", "t5"])
def test_one_pass_forward_and_one_back_serve_many_methods(name):
    subject, passes = attention_families.made(tiny_models.build(name), name), []

    def count(_, __, out):
        passes.append("forward")
        out.logits.register_hook(lambda _: passes.append("back"))

    subject.model.register_forward_hook(count)
    context = BatchContext(subject, attention_families.batch(subject))
    saliency = ("gradient", "input_x_gradient", "attention_x_gradient")
    for method in (*saliency, "attention", "rollout", "gradient_rollout"):
        methods.build(method)(context, context.predicted)
    assert passes == ["forward", "back"]


def test_a_model_of_one_attention_is_refused_with_a_sentence():
    subject = subjects.subject()
    context = BatchContext(subject, subjects.batch(subject, [4, 2]))
    with pytest.raises(NotApplicable, match=r"^gradient_rollout .*this model has one attention\.$"):
        methods.build("gradient_rollout")(context, context.predicted)
