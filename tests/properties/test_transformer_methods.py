"""Every method on transformers: what is in a batch beside a text must not matter to its scores."""

from functools import cache

import pytest
import torch

from heedful.core.errors import NotApplicable
from heedful.core.values import Example
from heedful.methods import methods
from heedful.models.batch_context import BatchContext
from heedful.models.transformer.from_pretrained import from_model
from support import tiny_models

FAMILIES = ("bert", "gpt2", "deberta", "bart")
TEXTS = ("so fine a film", "dull film", "not so very fine , not dull")
QUICK = {"lime": {"samples": 24}, "kernel_shap": {"samples": 24}, "smoothgrad": {"samples": 3}}
SEARCHED = {"integrated_gradients": {"tolerance": 1e-6}}


@cache
def subject(name):
    return from_model(tiny_models.model(name), tiny_models.tokenizer(name))


def encoded(name):
    return [subject(name).encode(Example(7 + 3 * n, text, 0)) for n, text in enumerate(TEXTS)]


@cache
def explained(name, method, order, budget=20_000):
    """Scores of the texts by instance, or why there are none."""
    chosen = [encoded(name)[place] for place in order]
    context = BatchContext(subject(name), subject(name).batch(chosen), 0, budget)
    part = methods.build(method, **{**QUICK.get(method, {}), **SEARCHED.get(method, {})})
    try:
        found = part(context, torch.tensor(context.batch.instances) % len(subject(name).labels))
    except NotApplicable as reason:
        return dict.fromkeys(context.batch.instances, str(reason))
    assert found.scores.isfinite().all()
    assert part.signed or (found.scores >= 0).all()
    rows = zip(context.batch.instances, found.scores, found.mask, strict=True)
    return {instance: scores[mask].double() for instance, scores, mask in rows}


def same(one, other, limit):
    for instance, scores in one.items():
        if isinstance(scores, str):
            assert other[instance] == scores
        else:
            torch.testing.assert_close(other[instance], scores, atol=limit, rtol=limit)


@pytest.mark.parametrize("method", methods)
@pytest.mark.parametrize("name", FAMILIES)
def test_order_company_and_budget_never_matter(name, method):
    together = explained(name, method, (0, 1, 2))
    limit = 1e-5 if method == "integrated_gradients" else 1e-8
    same(explained(name, method, (2, 1, 0)), together, limit)
    same(explained(name, method, (0, 1, 2), 9), together, limit)
    for place in range(len(TEXTS)):
        same(explained(name, method, (place,)), together, limit)


@pytest.mark.parametrize("name", FAMILIES)
def test_most_methods_serve(name):
    refused = {
        method
        for method in methods
        if isinstance(next(iter(explained(name, method, (0,)).values())), str)
    }
    whole = {"alti", "globenc"}
    expected = {
        # the tap shows no values
        "deberta": {"attention_norm", "effective_attention", *whole},
        "bart": {"value_zeroing", "relevance_rollout", "decompx", *whole},
    }
    assert refused == {"diffmask", *expected.get(name, set())}  # for want of an explainer


def test_a_lean_sitting_gives_the_same_and_still_shows_attention():
    chosen = subject("bert").batch(encoded("bert"))
    full, lean = (BatchContext(subject("bert"), chosen, logits_only=one) for one in (False, True))
    for method in ("gradient", "input_x_gradient", "attention", "gradient_rollout", "occlusion"):
        one, other = (methods.build(method)(side, full.predicted).scores for side in (full, lean))
        torch.testing.assert_close(other, one, atol=1e-9, rtol=1e-9)


def test_a_lean_sitting_explains_one_class_after_another():
    chosen = subject("bert").batch(encoded("bert"))
    full, lean = (BatchContext(subject("bert"), chosen, logits_only=one) for one in (False, True))
    for target in (torch.tensor([0, 1, 0]), torch.tensor([1, 0, 1]), torch.tensor([0, 1, 0])):
        one, other = (methods.build("gradient")(side, target).scores for side in (full, lean))
        torch.testing.assert_close(other, one, atol=1e-9, rtol=1e-9)
