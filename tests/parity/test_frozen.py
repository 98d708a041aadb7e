"""Transformers made linear where they are: values stay, the whole is affine, nothing is left."""

from threading import Thread

import pytest
import torch
from torch import nn
from torch.autograd.functional import jacobian
from torch.testing import assert_close as close
from transformers.activations import ACT2FN
from transformers.models.gemma2.modeling_gemma2 import Gemma2RMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from heedful.core.errors import NotApplicable
from heedful.models.attention_access.recorder import freeze_attention
from heedful.models.internals.linearised import linearised, replay_attention
from support import attention_families, tiny_models

SOME = ("bert", "distilbert", "albert", "modernbert", "gpt2", "llama", "t5", "deberta", "xlnet")
RULES = pytest.mark.parametrize("held", [True, False], ids=["attention held", "softmax linear"])


def draw(shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def first_pass(name, held, texts=attention_families.TEXTS):
    """The subject, its batch, the vectors, and what the pass gave and kept."""
    subject = attention_families.subject(name)
    batch = attention_families.batch(subject, texts)
    vectors = subject.embed(batch).requires_grad_()
    with linearised(subject.model) as parts:
        logits, heard = subject.run(batch, freeze_attention if held else None, embedded=vectors)
    return subject, batch, vectors, logits, heard, parts


def again(subject, batch, vectors, parts, heard):
    with torch.no_grad(), parts.replayed():
        return subject.run(batch, heard and replay_attention(heard.calls), embedded=vectors)[0]


@pytest.mark.parametrize("name", SOME)
@RULES
def test_values_stay_and_the_replay_is_affine(name, held):
    subject, batch, vectors, logits, heard, parts = first_pass(name, held)
    with torch.no_grad():
        close(logits.detach(), subject.run(batch)[0], rtol=0, atol=1e-12)

    def replay(given):
        return again(subject, batch, given, parts, heard if held else None)

    here, other = vectors.detach(), draw(vectors.shape, 1)
    close(replay(here), logits.detach(), rtol=0, atol=1e-11)
    none = replay(torch.zeros_like(here))
    near = 1e-6 if name in ("modernbert", "llama") and not held else 1e-11  # softmax in float32
    added = replay(here) - none + replay(other) - none
    close(replay(here + other) - none, added, rtol=0, atol=near)
    assert (replay(other) - none).abs().max() > 1e-3
    (slope,) = torch.autograd.grad(logits.sum(), vectors)
    close((replay(other) - none).sum(), (slope * other).sum(), rtol=0, atol=max(near, 1e-10))


@pytest.mark.parametrize("name", ["bert", "llama", "xlnet", "bart"])
@RULES
def test_what_was_kept_serves_a_batch_that_has_the_texts_several_times(name, held):
    subject, batch, vectors, _, heard, parts = first_pass(name, held)
    calls = heard if held else None
    many = draw((3, *vectors.shape), 2)
    alone = [again(subject, batch, one, parts, calls) for one in many]
    together = again(subject, batch.repeat_texts(3), many.flatten(0, 1), parts, calls)
    close(together, torch.cat(alone), rtol=0, atol=1e-11)


def test_without_help_the_same_pass_is_not_linear():
    subject = attention_families.subject("bert")
    batch = attention_families.batch(subject)
    vectors = subject.embed(batch)

    def plain(given):
        with torch.no_grad():
            return subject.run(batch, embedded=given)[0]

    none, other = plain(torch.zeros_like(vectors)), draw(vectors.shape, 1)
    bent = plain(vectors + other) - none - (plain(vectors) - none + plain(other) - none)
    assert bent.abs().max() > 1e-2


class Named(nn.Module):
    """A model of one part, so that what is made of the part can be seen."""

    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, x):
        return self.part(x)


def slope_of(part, x):
    """∂y/∂x of every output, (D, D), by the gradients inside the block."""
    model, x = Named(part).double(), x.clone().requires_grad_()
    with linearised(model) as parts:
        y = model(x[None])[0]
    rows = [torch.autograd.grad(one, x, retain_graph=True)[0] for one in y]
    with torch.no_grad():
        close(y.detach(), model(x[None])[0], rtol=0, atol=0)
        with parts.replayed():
            close(model(x[None])[0], y.detach(), rtol=0, atol=1e-12)
    return torch.stack(rows)


@pytest.mark.parametrize("width", [6, 7])
def test_a_layer_norm_is_its_scale_over_a_deviation_that_is_held(width):
    norm, x = nn.LayerNorm(width, eps=1e-3), draw((width,), 3)
    nn.init.normal_(norm.weight, generator=torch.Generator().manual_seed(1))
    nn.init.normal_(norm.bias, generator=torch.Generator().manual_seed(2))
    centre = torch.eye(width).double() - 1 / width
    deviation = (x.var(unbiased=False) + 1e-3).sqrt()
    found = slope_of(norm, x)
    close(found, norm.weight.detach()[:, None] * centre / deviation, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("kind", "one"), [(LlamaRMSNorm, 0.0), (Gemma2RMSNorm, 1.0)])
def test_an_rms_norm_is_a_scale_of_each_number(kind, one):
    norm, x = kind(8, eps=1e-3), draw((8,), 3)
    nn.init.normal_(norm.weight, generator=torch.Generator().manual_seed(1))
    size = (x.square().mean() + 1e-3).sqrt()
    wanted = torch.diag((one + norm.weight.detach().double()) / size)
    close(slope_of(norm, x), wanted, rtol=1e-5, atol=1e-6)  # both compute in float32


KNOWN = {
    "relu": lambda x: (x > 0).double(),
    "gelu": lambda x: (1 + torch.erf(x / 2**0.5)) / 2,
    "silu": lambda x: 1 / (1 + torch.exp(-x)),
    "tanh": lambda x: (torch.exp(2 * x) - 1) / (torch.exp(2 * x) + 1) / x,
    "sigmoid": lambda x: (1 / (1 + torch.exp(-x)) - 0.5) / x,  # 0.5 is its constant
}
FUNCTIONS = {"gelu": nn.functional.gelu, "silu": nn.functional.silu, "relu": torch.relu}


@pytest.mark.parametrize("name", KNOWN)
def test_an_activation_is_its_value_over_what_entered(name):
    x = draw((9,), 4)
    wanted = torch.diag(KNOWN[name](x))
    close(slope_of(ACT2FN[name], x), wanted, rtol=1e-9, atol=1e-12)
    function = FUNCTIONS.get(name, getattr(torch, name, None))
    close(slope_of(Called(function), x), wanted, rtol=1e-9, atol=1e-12)


class Called(nn.Module):
    """A part that only calls a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def test_at_zero_an_activation_has_its_own_slope():
    found = slope_of(ACT2FN["gelu"], torch.zeros(2, dtype=torch.float64))
    close(found, torch.eye(2).double() / 2, rtol=0, atol=1e-7)


def test_a_product_is_split_in_half_and_a_known_factor_is_none():
    x, known = draw((4,), 5), draw((4,), 6)
    close(slope_of(Called(lambda x: (2 * x) * (3 * x)), x), torch.diag(6 * x), rtol=0, atol=1e-12)
    close(slope_of(Called(lambda x: x * known), x), torch.diag(known), rtol=0, atol=0)


def by_name(added, *factors):
    return torch.baddbmm(input=added, batch1=factors[0], batch2=factors[1])


@pytest.mark.parametrize("add", [torch.baddbmm, torch.Tensor.baddbmm, by_name])
def test_what_is_added_to_a_product_is_no_factor(add):
    """x A + B x is linear: none of it is split, and none of it is taken for a constant."""
    x, a, b = (draw((9,), seed).view(1, 3, 3) for seed in (8, 9, 10))

    def slope(work):
        return jacobian(lambda y: work(y.view(1, 3, 3)).flatten(), x.flatten())

    def found(work):
        return slope_of(Called(lambda y: work(y.view(1, 3, 3)).flatten(1)), x.flatten())

    close(found(lambda y: add(y @ a, b, y)), slope(lambda y: y @ a + b @ y), rtol=0, atol=1e-12)
    halves = slope(lambda y: y @ a + (x @ y + y @ x) / 2)
    close(found(lambda y: add(y @ a, y, y)), halves, rtol=0, atol=1e-12)


class SizeNorm(nn.Module):
    """Named a norm, but its scale hangs on each number alone."""

    def forward(self, x):
        return x * x.abs()


class TwoNorm(nn.Module):
    def forward(self, x, gate):
        return x * gate


def test_what_is_only_called_a_norm_is_refused():
    with pytest.raises(NotApplicable, match=r"^SizeNorm is named a norm, but"):
        slope_of(SizeNorm(), draw((6,), 7))
    x = draw((6,), 7).requires_grad_()
    model = TwoNorm()
    with pytest.raises(NotApplicable, match=r"^TwoNorm takes 2 tensors;"), linearised(model):
        model(x, x)


class Moody(nn.Module):
    """Another activation, or one more, where its input adds up to less than 0."""

    def __init__(self, other):
        super().__init__()
        self.other = other

    def forward(self, x):
        return torch.tanh(x) if x.sum() > 0 else self.other(x)


@pytest.mark.parametrize("other", [torch.relu, lambda x: torch.tanh(torch.tanh(x)), torch.abs])
def test_a_model_whose_parts_change_with_its_input_is_refused(other):
    x = torch.ones(2, requires_grad=True)
    with linearised(Moody(other)) as parts:
        parts.model(x)
        parts.model(x)
    said = pytest.raises(NotApplicable, match=r"^The model ran other non-linear parts than those")
    with said, parts.replayed():
        parts.model(x)
        parts.model(-x)


def state(model):
    hooks = [(one._forward_hooks, one._forward_pre_hooks) for one in model.modules()]
    return [tuple(map(len, pair)) for pair in hooks], [p.requires_grad for p in model.parameters()]


def test_a_model_is_as_before_also_after_an_error():
    subject = attention_families.made(tiny_models.build("bert"), "bert")
    before, batch = state(subject.model), attention_families.batch(subject)
    subject.model.bert.embeddings.word_embeddings.weight.requires_grad_(False)
    mixed = state(subject.model)
    assert mixed != before
    with torch.no_grad():
        own = subject.run(batch)[0]
    with pytest.raises(ZeroDivisionError), linearised(subject.model):
        subject.run(batch, lambda _: 1 / 0, embedded=subject.embed(batch))
    assert state(subject.model) == mixed
    shared, *_, parts = first_pass("bert", held=True)
    found = state(parts.model)  # other tests asked it for its states: the library keeps its hooks
    with pytest.raises(ZeroDivisionError), parts.replayed():
        shared.run(batch, lambda _: 1 / 0)
    assert state(parts.model) == found
    with torch.no_grad():
        close(subject.run(batch)[0], own, rtol=0, atol=0)


def test_another_thread_may_use_the_model_as_it_is():
    subject = attention_families.made(tiny_models.build("bert"), "bert")
    batch, found = attention_families.batch(subject), []
    with torch.no_grad():
        own = attention_families.untouched(subject.model, subject, batch)
    with linearised(subject.model) as parts:

        def other():
            with torch.no_grad():
                found.append(attention_families.untouched(subject.model, subject, batch))

        thread = Thread(target=other)
        thread.start()
        thread.join()
    close(found[0], own, rtol=0, atol=1e-12)
    assert not parts.linear_parts
