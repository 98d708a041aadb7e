"""Gradient methods against captum and plain autograd, and where their answers are known."""

from dataclasses import replace
from functools import cache

import pytest
import torch
from torch.testing import assert_close as close

from heedful.core.batch import Batch, collate
from heedful.core.values import Forward
from heedful.methods import methods
from heedful.methods.base import join_pieces
from heedful.models.attention_access.scope import Scope
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.erased_words import get_mask_embedding
from support import attention_families, reference_removal, subjects, tiny_models

captum = pytest.importorskip("captum.attr")
SCOPES = [Scope(), Scope(0), Scope("all"), Scope(-1, 2), Scope(0, position="mean")]
ofs = pytest.mark.parametrize("of", reference_removal.OF)
EXACT = {"atol": 1e-11, "rtol": 1e-9}


@cache
def eager(name):
    """The subject's model once more, which shows its weights; no part of heedful runs it."""
    size = reference_removal.subject(name).model.config.vocab_size
    return tiny_models.build(name, attention="eager", vocab_size=size)


def value(logits, target, of):
    """What is explained, of N rows of logits."""
    if of == "probability":
        return logits.softmax(-1)[:, target]
    others = [place for place in range(logits.shape[-1]) if place != target]
    return logits[:, target] - (logits[:, others].logsumexp(-1) if of == "log_odds" else 0.0)


def outputs(name, text, target, of):
    """The value as a function of the vectors of one text alone, N of it at once."""

    def found(x):
        if name not in tiny_models.FAMILIES:
            batch = collate([text] * len(x))
            return value(reference_removal.subject(name).forward(batch, x).logits, target, of)
        logits = eager(name)(inputs_embeds=x).logits
        return value(logits[:, -1] if name == "gpt2" else logits, target, of)

    return found


def cases(name, of):
    """Each text with its row, its vectors from the model's own table, and its value by them."""
    _, target = reference_removal.sitting_of(name)
    own = name in tiny_models.FAMILIES
    table = (
        eager(name).get_input_embeddings()
        if own
        else reference_removal.subject(name).network.embedding
    )
    for row, text in enumerate(reference_removal.texts_of(name)):
        x = table(torch.tensor([text.ids])).detach().requires_grad_()
        yield row, text, x, outputs(name, text, int(target[row]), of)


def explained(method, name, **settings):
    return reference_removal.explained(method, *reference_removal.sitting_of(name), **settings)


def of_words(text, scores):
    return scores.detach().masked_fill(torch.tensor(text.word) < 0, 0.0)


@pytest.mark.parametrize("name", ["bilstm", "cnn", "bert", "gpt2"])
@ofs
def test_gradients_are_those_of_captum(name, of):
    one, two = (explained("gradient", name, of=of, norm=norm) for norm in ("l1", "l2"))
    times = explained("input_x_gradient", name, of=of)
    hot = explained("one_hot_gradient", name, attention="free")
    assert float(torch.cat(two).max()) > 1e-3
    for row, text, x, output in cases(name, of):
        slope = captum.Saliency(output).attribute(x, abs=False)[0]
        close(one[row], of_words(text, slope.abs().sum(-1)), **EXACT)
        close(two[row], of_words(text, slope.square().sum(-1).sqrt()), **EXACT)
        product = captum.InputXGradient(output).attribute(x)[0].sum(-1)
        close(times[row], of_words(text, product), **EXACT)
        if of == "probability":
            close(hot[row], of_words(text, product.abs()), **EXACT)


@pytest.mark.parametrize("baseline", ["blank", "zero"])
@pytest.mark.parametrize("name", ["bilstm", "bert", "gpt2"])
@ofs
def test_integrated_gradients_are_those_of_captum_and_complete(name, of, baseline):
    found = explained("integrated_gradients", name, of=of, baseline=baseline, tolerance=1e-7)
    blank = (
        get_mask_embedding(reference_removal.sitting_of(name)[0]).vector
        if baseline == "blank"
        else 0.0
    )
    for row, text, x, output in cases(name, of):
        start = x.detach().clone()
        start[0, torch.tensor(text.word) >= 0] = blank
        assert (found[row].sum() - output(x) + output(start)).abs() <= 1e-7
        path = captum.IntegratedGradients(output).attribute(x, start, n_steps=100)  # Gauss–Legendre
        close(found[row], of_words(text, path[0].sum(-1)), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["bert", "gpt2"])
@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_attention_x_gradient_adds_up_all_that_is_under_audit(name, scope):
    subject, model = (
        attention_families.subject(name, scope),
        tiny_models.build(name, attention="eager"),
    )
    context = BatchContext(subject, attention_families.batch(subject))
    for of in reference_removal.OF:
        found = methods.build("attention_x_gradient", of=of)(context, context.predicted).scores
        for row, text in enumerate(attention_families.TEXTS):
            alone = attention_families.batch(subject, [text])
            out = model(**attention_families.inputs(subject, alone), output_attentions=True)
            output = value(
                attention_families.answers(subject, out, alone), int(context.predicted[row]), of
            )
            slopes = torch.autograd.grad(output.sum(), out.attentions)
            whole = torch.cat([a * d for a, d in zip(out.attentions, slopes, strict=True)])
            whole = whole if scope.layer == "all" else whole[scope.layer][None]
            whole = whole if scope.head is None else whole[:, scope.head, None]
            at = {"bert": slice(0, 1), "gpt2": slice(-1, None)}[name]
            whole = whole if scope.position == "mean" else whole[:, :, at]
            wanted = whole.sum((0, 1, 2)).detach().masked_fill(~alone.mask[0], 0.0)
            close(found[row, : len(wanted)], wanted, **EXACT)


@ofs
@pytest.mark.parametrize("classes", [2, 3])
def test_attention_x_gradient_of_one_attention(of, classes):
    subject = subjects.subject(classes=classes, seed=2)
    context = BatchContext(subject, subjects.batch(subject, [5, 1, 3]))
    found = methods.build("attention_x_gradient", of=of)(context, context.predicted).scores
    layer = subject.network.decoder
    for row, target in enumerate(context.predicted.tolist()):
        weights = context.forward.attention[row].clone().requires_grad_()
        logits = (weights @ context.forward.states[row] @ layer.weight.T + layer.bias)[None]
        if classes == 2:  # one output, against zero
            logits = torch.cat([0 * logits, logits], 1)
        (slope,) = torch.autograd.grad(value(logits, target, of).sum(), weights)
        close(found[row], (weights * slope).detach(), **EXACT)


@pytest.mark.parametrize("of", ["log_odds", "logit"])
def test_a_linear_model_is_explained_by_its_weights_times_its_input(of):
    context, added = reference_removal.linear([6, 1, 2, 9])
    target = torch.ones(4, dtype=torch.long)
    signed = [("input_x_gradient", {}, 1e-12), ("integrated_gradients", {"tolerance": 1e-9}, 1e-9)]
    for name, more, near in signed:
        method = methods.build(name, of=of, **more)
        close(method(context, target).scores, added, atol=near, rtol=0)
        other = -added if of == "log_odds" else 0 * added  # its logit is constant
        close(method(context, 1 - target).scores, other, atol=near, rtol=0)
    for name in ("gradient", "smoothgrad"):  # and every word moves it as fast
        wanted = context.batch.mask * context.subject.weight.norm()
        close(methods.build(name, of=of)(context, target).scores, wanted, atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", ["bilstm", "bert"])
def test_a_model_that_is_sure_to_every_digit_is_explained_all_the_same(name):
    recurrent, times, found = name == "bilstm", 1e5, []
    subject = (
        subjects.subject(seed=3)
        if recurrent
        else attention_families.made(tiny_models.build(name), name)
    )
    rows = subjects.batch(subject, [6, 2, 4]) if recurrent else attention_families.batch(subject)
    head = subject.network.decoder if recurrent else subject.model.classifier
    asked = ["gradient", "input_x_gradient", "attention_x_gradient", "smoothgrad"]
    asked += ["integrated_gradients"] if recurrent else ["integrated_gradients", "gradient_rollout"]
    for factor in (1.0, times):
        head.requires_grad_(False).weight.mul_(factor)
        head.bias.mul_(factor)
        context = BatchContext(subject, rows)
        assert (context.forward.probabilities.amax(-1) == 1).all() == (factor == times)
        for method in asked:
            more = {"tolerance": 1e-6 * factor} if method == "integrated_gradients" else {}
            built = methods.build(method, of="log_odds", **more)
            found.append(built(context, context.predicted).scores)
    for method, before, after in zip(asked, found, found[len(asked) :], strict=False):
        assert after[rows.mask].all(), method
        if method != "gradient_rollout":  # the others grow with the log-odds of two classes
            close(after, times * before, rtol=1e-6, atol=1e-6 * times)


class Cubic(reference_removal.Linear):
    """Its log-odds are (Σ_t ⟨w, x_t⟩)³, whose slope under noise is known."""

    def forward(self, batch, embedded=None):
        plain = super().forward(batch, embedded)
        odds = (plain.logits[:, 1] - 0.3) ** 3
        return Forward(torch.stack([0 * odds, odds], -1), plain.attention, plain.states)


def test_smoothgrad_shakes_the_words_alone_by_a_share_of_their_range(monkeypatch):
    monkeypatch.setattr(Batch, "content", property(lambda batch: [*map(str, batch.instances)]))
    subject = Cubic()
    (text,) = subjects.encoded(subject, [3], seed=1)
    rows = collate([replace(text, index=index) for index in range(200)])  # draws of their own
    x, ones = subject.embed(rows)[0], torch.ones(200, dtype=torch.long)
    method = methods.build("smoothgrad", samples=40, noise=0.4, of="log_odds")
    found = method(BatchContext(subject, rows), ones).scores[:, 1:-1]
    sigma = 0.4 * (x[1:-1].max() - x[1:-1].min())
    spread = 3 * sigma**2 * subject.weight.square().sum()  # of three words, not of five tokens
    wanted = 3 * ((x @ subject.weight).sum() ** 2 + spread) * subject.weight.norm()
    close(found.mean(0), wanted.expand(3), rtol=0.06, atol=0)  # about four standard errors


@pytest.mark.parametrize("name", ["average", "bert"])
def test_smoothgrad_is_captums_noise_tunnel_up_to_chance(name):
    few, many = (explained("smoothgrad", name, samples=count) for count in (2, 200))
    off = torch.zeros(2)
    for row, text, x, output in cases(name, "probability"):
        words = torch.tensor(text.word) >= 0

        def moved(some, x=x, words=words, output=output):
            full = x.detach().repeat(len(some), 1, 1)
            full[:, words] = some
            return output(full)

        torch.manual_seed(0)
        inner = x.detach()[:, words]
        sigma = 0.1 * float(inner.max() - inner.min())
        tunnel = captum.NoiseTunnel(captum.Saliency(moved))
        mean = tunnel.attribute(inner, nt_samples=200, stdevs=sigma, abs=False)[0].norm(dim=-1)
        draws = (inner + sigma * torch.randn(200, *inner.shape[1:]).to(inner)).requires_grad_()
        (each,) = torch.autograd.grad(moved(draws).sum(), draws)
        error = (each.var(0).sum(-1) * 2 / 200).sqrt()  # of the difference of two means
        assert ((many[row][words] - mean).abs() < 3 * error).all()
        off += torch.stack([(one[row][words] - mean).abs().sum() for one in (few, many)])
    assert off[0] > 2 * off[1]  # nearer with more samples


def test_smoothgrad_draws_by_seed_and_text_and_without_noise_is_the_gradient():
    context, target = reference_removal.sitting_of("bilstm")
    found = reference_removal.explained("smoothgrad", context, target, samples=3)
    other = reference_removal.explained(
        "smoothgrad", reference_removal.sitting_of("bilstm", seed=1)[0], target, samples=3
    )
    still = reference_removal.explained("smoothgrad", context, target, noise=0.0, norm="l1")
    plain = reference_removal.explained("gradient", context, target, norm="l1")
    for row, text in enumerate(reference_removal.texts_of("bilstm")):
        alone = reference_removal.alone(context.subject, text, int(target[row]))
        close([found[row]], reference_removal.explained("smoothgrad", *alone, samples=3), **EXACT)
        assert (found[row] - other[row]).abs().max() > 1e-6
        close(still[row], plain[row], **EXACT)


@pytest.mark.parametrize(("norm", "size"), [("l1", 1), ("l2", 2)])
def test_a_word_of_pieces_moves_the_output_as_all_of_them_do(norm, size):
    method = methods.build("gradient", norm=norm)
    assert methods.build("smoothgrad", norm=norm).join == method.join
    found = explained("gradient", "bert", norm=norm)
    for row, text, x, output in cases("bert", "probability"):
        (slope,) = torch.autograd.grad(output(x).sum(), x)
        pieces = reference_removal.members(text, "words")
        wanted = torch.stack([slope[0, places].flatten().norm(size) for places in pieces])
        word = torch.tensor(text.word)
        words = join_pieces(found[row][word >= 0], word[word >= 0], len(pieces), method.join)
        close(words, wanted, **EXACT)
