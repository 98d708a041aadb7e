"""Relevance rollout against a transcription: relevance by hand, slopes by transformers itself."""

from functools import cache

import pytest
import torch
from torch.testing import assert_close as close

from heedful.core.errors import ConfigError, NotApplicable
from heedful.methods import methods
from heedful.models.attention_access.scope import Scope
from heedful.models.batch_context import BatchContext
from heedful.models.internals.lrp import compute_relevance
from support import attention_families, subjects, tiny_models
from support import reference_lrp as by_hand


@cache
def eager(name):
    return tiny_models.build(name, attention="eager")


def sat(name):
    subject = attention_families.subject(name)
    return BatchContext(subject, attention_families.batch(subject))


def slopes(name, text, target):
    """∂ logit / ∂A of every layer, for one text alone."""
    subject = attention_families.subject(name)
    rows = attention_families.batch(subject, [text])
    with torch.enable_grad():
        out = eager(name)(**attention_families.inputs(subject, rows), output_attentions=True)
        logit = attention_families.answers(subject, out, rows)[0, target]
        return [one[0] for one in torch.autograd.grad(logit, out.attentions)]


def rolled(shares, slopes, *, normalise, start):
    """Ā = I + E_h((∇A ⊙ R)⁺), last · … · first, less the way by the identities alone."""
    whole = alone = torch.eye(shares[0].shape[-1]).to(shares[0])
    for share, slope in list(zip(shares, slopes, strict=True))[start:]:
        layer = torch.eye(len(whole)).to(whole)
        for one in range(len(share)):
            layer = layer + (share[one] * slope[one]).clamp(min=0) / len(share)
        size = layer.sum(-1, keepdim=True) if normalise else torch.ones(len(layer), 1).to(layer)
        whole, alone = (layer / size) @ whole, (torch.eye(len(whole)).to(whole) / size) @ alone
    return whole - alone


@pytest.mark.parametrize("normalise", ["none", "row"])
@pytest.mark.parametrize("start", [0, 1])
def test_bert_is_what_the_rule_says(normalise, start):
    context, target = sat("bert"), torch.tensor([0, 1, 1])
    settings = {"of": "logit", "normalise": normalise, "start_layer": start}
    found = methods.build("relevance_rollout", **settings)(context, target).scores
    batch, model = context.batch, tiny_models.build("bert").requires_grad_(False)
    assert float(found.max()) > 1e-5
    for b, text in enumerate(attention_families.TEXTS):
        count, chosen = int(batch.present[b].sum()), int(target[b])
        ids, types = batch.ids[b, :count], batch.types[b, :count]
        *_, shares = by_hand.bert(model, ids, types, chosen, attn=True)
        asked = {"normalise": normalise == "row", "start": start}
        wanted = rolled(shares, slopes("bert", text, chosen), **asked)[0]
        wanted = wanted.masked_fill(~batch.mask[b, :count], 0.0)
        close(found[b, :count], wanted, rtol=1e-6, atol=1e-10)
        assert not found[b, count:].any()


@pytest.mark.parametrize("name", ["gpt2", "llama", "deberta"])
def test_other_families_have_their_relevance_where_their_weights_are(name):
    context = sat(name)
    target = context.predicted
    found = methods.build("relevance_rollout", of="logit")(context, target).scores
    shares = compute_relevance(context, target, of="logit", rule="attn").maps
    at = {"first": 0, "last": -1}[context.subject.scope.position]
    for b, text in enumerate(attention_families.TEXTS):
        count = int(context.batch.present[b].sum())
        own = [one[b, :, :count, :count] for one in shares]
        wanted = rolled(own, slopes(name, text, int(target[b])), normalise=False, start=0)[at]
        wanted = wanted.masked_fill(~context.batch.mask[b, :count], 0.0)
        close(found[b, :count], wanted, rtol=1e-4, atol=1e-6)


def test_an_output_that_nothing_moves_has_no_relevance():
    model = tiny_models.build("bert")
    model.classifier.weight.data.zero_()
    subject = attention_families.made(model, "bert", scope=Scope(position="first"))
    context = BatchContext(subject, attention_families.batch(subject))
    for normalise in ("none", "row"):
        made = methods.build("relevance_rollout", normalise=normalise)
        assert not made(context, context.predicted).scores.any()


def test_what_it_is_not_made_for_is_refused_with_a_sentence():
    for name in ("t5", "bart"):
        context = sat(name)
        with pytest.raises(NotApplicable, match=r"^relevance_rollout is for models with one stack"):
            methods.build("relevance_rollout")(context, context.predicted)
    context = sat("bert")
    with pytest.raises(ConfigError, match=r"^start_layer must lie between 0 and 1, not 2\.$"):
        methods.build("relevance_rollout", start_layer=2)(context, context.predicted)
    subject = subjects.subject()
    context = BatchContext(subject, subjects.batch(subject, [4, 2]))
    with pytest.raises(NotApplicable, match=r"^relevance_rollout .* has one attention\.$"):
        methods.build("relevance_rollout")(context, context.predicted)
