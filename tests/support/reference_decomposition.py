"""A tiny BERT and a tiny GPT-2 taken apart by plain loops over their weights, in float64.

No part of heedful is used here: the models run alone, eager, one text without padding.
"""

from dataclasses import dataclass
from functools import cache
from math import pi, sqrt, tanh

import torch

from support import tiny_models
from support.tiny_models import H


@cache
def eager(name):
    """The subject's model once more, which shows its weights."""
    return tiny_models.build(name, attention="eager").requires_grad_(False)


def centred(norm, given, vector):
    """A layer norm's linear part for a vector, its deviation that of what the norm was given."""
    deviation = sqrt(float(((given - given.mean()) ** 2).mean()) + norm.eps)
    return norm.weight * (vector - vector.mean()) / deviation


def normed(norm, given):
    return centred(norm, given, given) + norm.bias


def gelu(u):
    return u * 0.5 * (1 + torch.erf(u / sqrt(2)))


def gelu_new(u):
    return torch.tensor(
        [0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) for x in u.tolist()],
        dtype=u.dtype,
    )


@dataclass
class Bert:
    """One layer of a BERT at a text's own states x: (T, D), under its own weights (H, T, T)."""

    model: object
    layer: int
    x: torch.Tensor
    weights: torch.Tensor

    @property
    def module(self):
        return self.model.bert.encoder.layer[self.layer]

    def value(self, head, x, bias):
        """f(x) of one head: the value behind the output map."""
        made, out = self.module.attention.self.value, self.module.attention.output.dense
        here = slice(8 * head, 8 * head + 8)
        value = made.weight[here] @ x + (made.bias[here] if bias else 0)
        return out.weight[:, here] @ value

    def attended(self, i, states, bias):
        """What the block adds at position i, of any states."""
        out = self.module.attention.output.dense.bias if bias else torch.zeros(32).double()
        for head in range(H):
            for k in range(len(states)):
                out = out + self.weights[head, i, k] * self.value(head, states[k], bias)
        return out

    def mixed(self, i):
        """What a norm is given at position i, and the norm."""
        return self.attended(i, self.x, True) + self.x[i], self.module.attention.output.LayerNorm

    def parts(self, i):
        """T_i(x_j) behind the first norm for all j, and the state there."""
        given, norm = self.mixed(i)
        found = []
        for j in range(len(self.x)):
            part = sum(self.weights[h, i, j] * self.value(h, self.x[j], True) for h in range(H)) + (
                self.x[i] if i == j else 0
            )
            found.append(centred(norm, given, part))
        return found, normed(norm, given)

    def fed(self, y):
        return gelu(self.module.intermediate.dense.weight @ y + self.module.intermediate.dense.bias)

    def passed(self, i):
        """The parts behind the second norm, the feed-forward part left out."""
        parts, y = self.parts(i)
        last = self.module.output
        given = y + last.dense.weight @ self.fed(y) + last.dense.bias
        return [centred(last.LayerNorm, given, part) for part in parts]

    def held(self, states, bias):
        """The layer with all that is not linear held, of any states; with or without biases."""
        first, middle, last = (
            self.module.attention.output,
            self.module.intermediate.dense,
            self.module.output,
        )
        rows = []
        for i in range(len(states)):
            given, _ = self.mixed(i)
            y = normed(first.LayerNorm, given)
            u = middle.weight @ y + middle.bias
            after = y + last.dense.weight @ gelu(u) + last.dense.bias
            one = centred(first.LayerNorm, given, self.attended(i, states, bias) + states[i])
            one = one + (first.LayerNorm.bias if bias else 0)
            inner = (middle.weight @ one + (middle.bias if bias else 0)) * gelu(u) / u
            both = one + last.dense.weight @ inner + (last.dense.bias if bias else 0)
            made = centred(last.LayerNorm, after, both)
            rows.append(made + (last.LayerNorm.bias if bias else 0))
        return torch.stack(rows)

    @staticmethod
    def head(model, own, states, target, bias):
        pool, last = model.bert.pooler.dense, model.classifier
        u = pool.weight @ own[0] + pool.bias
        inner = (pool.weight @ states[0] + (pool.bias if bias else 0)) * torch.tanh(u) / u
        return last.weight[target] @ inner + (last.bias[target] if bias else 0)


@dataclass
class Gpt2(Bert):
    """The same of a GPT-2: norms stand before the parts, states go by them."""

    @property
    def module(self):
        return self.model.transformer.h[self.layer]

    def value(self, head, x, bias):
        raise NotImplementedError

    def own_value(self, head, k, state, bias):
        """f of position k, of any state there: its norm keeps the deviation of its own."""
        block = self.module.attn
        here = slice(64 + 8 * head, 64 + 8 * head + 8)
        z = centred(self.module.ln_1, self.x[k], state) + (self.module.ln_1.bias if bias else 0)
        value = z @ block.c_attn.weight[:, here] + (block.c_attn.bias[here] if bias else 0)
        return value @ block.c_proj.weight[8 * head : 8 * head + 8]

    def attended(self, i, states, bias):
        out = self.module.attn.c_proj.bias if bias else torch.zeros(32).double()
        for head in range(H):
            for k in range(len(states)):
                out = out + self.weights[head, i, k] * self.own_value(head, k, states[k], bias)
        return out

    def parts(self, i):
        found = []
        for j in range(len(self.x)):
            added = (
                self.weights[h, i, j] * self.own_value(h, j, self.x[j], True) for h in range(H)
            )
            found.append(sum(added) + (self.x[i] if i == j else 0))
        return found, self.attended(i, self.x, True) + self.x[i]

    def passed(self, i):
        return self.parts(i)[0]

    def held(self, states, bias):
        norm, feed = self.module.ln_2, self.module.mlp
        rows = []
        for i in range(len(states)):
            y = self.attended(i, self.x, True) + self.x[i]
            u = normed(norm, y) @ feed.c_fc.weight + feed.c_fc.bias
            one = self.attended(i, states, bias) + states[i]
            z = centred(norm, y, one) + (norm.bias if bias else 0)
            inner = (z @ feed.c_fc.weight + (feed.c_fc.bias if bias else 0)) * gelu_new(u) / u
            rows.append(one + inner @ feed.c_proj.weight + (feed.c_proj.bias if bias else 0))
        return torch.stack(rows)

    @staticmethod
    def head(model, own, states, target, bias):
        norm = model.transformer.ln_f
        last = centred(norm, own[-1], states[-1]) + (norm.bias if bias else 0)
        return model.lm_head.weight[target] @ last


KINDS = {"bert": Bert, "gpt2": Gpt2}


@cache
def layers(name, ids):
    """Every layer at the states of one text."""
    model = eager(name)
    out = model(torch.tensor([ids]), output_attentions=True, output_hidden_states=True)
    both = zip(out.hidden_states, out.attentions, strict=False)
    return [KINDS[name](model, n, x[0], a[0]) for n, (x, a) in enumerate(both)], out


@cache
def contributions(name, ids, way):
    """For each layer the matrix of what tokens contribute: not yet made to sum to 1."""
    found = []
    for layer in layers(name, ids)[0]:
        rows = []
        for i in range(len(ids)):
            if way == "globenc":
                rows.append([float(part.square().sum().sqrt()) for part in layer.passed(i)])
                continue
            parts, y = layer.parts(i)
            far = float(y.abs().sum())
            rows.append([max(0.0, far - float((y - part).abs().sum())) for part in parts])
        found.append(torch.tensor(rows, dtype=torch.float64))
    return found


def carried(name, ids, target, *, shared):
    """What each token gives to a logit through all layers, and what the biases give beside."""
    every, _ = layers(name, ids)
    model, x = every[0].model, every[0].x
    count = len(ids)
    parts = [torch.stack([x[i] * (i == j) for i in range(count)]) for j in range(count)]
    rest = torch.zeros_like(x)  # the biases' part, where they are kept apart
    for layer in every:
        bias = layer.held(torch.zeros_like(x), True)
        parts = [layer.held(part, False) for part in parts]
        if not shared:
            rest = layer.held(rest, False) + bias
            continue
        for i in range(count):
            alike = [abs(float(part[i] @ bias[i])) for part in parts]
            for part, one in zip(parts, alike, strict=True):
                part[i] += one / sum(alike) * bias[i]
    own = sum(parts) + rest
    told = [float(every[0].head(model, own, part, target, False)) for part in parts]
    bias = float(every[0].head(model, own, torch.zeros_like(x), target, True))
    if not shared:
        return told, bias + float(every[0].head(model, own, rest, target, False))
    sizes = sum(map(abs, told))
    return [one + abs(one) / sizes * bias for one in told], 0.0
