"""Relevance propagation a second time, one text at a time, by quotients of the papers' rules.

Nothing of heedful's own arithmetic is used: no gradients, no hooks, all weights by their names.
"""

import math

import torch


class Account:
    """What went to biases so far, and the sum that is left after each layer."""

    def __init__(self):
        self.lost, self.sums = 0.0, []

    def linear(self, x, weight, bias, relevance):
        """Σ_j x_i w_ji / z_j R_j, and b_j / z_j R_j to the bias."""
        z = x @ weight.T + bias
        found = torch.zeros_like(x)
        for t in range(len(x)):
            found[t] = (x[t][None] * weight / z[t][:, None] * relevance[t][:, None]).sum(0)
            self.lost += float((bias / z[t] * relevance[t]).sum())
        return found

    def norm(self, x, norm, relevance):
        """A linear map by the matrix γ_j (δ_ij − 1/D) / σ, with σ known."""
        size = x.shape[-1]
        found = torch.zeros_like(x)
        for t in range(len(x)):
            deviation = math.sqrt(float(x[t].var(unbiased=False)) + norm.eps)
            centre = torch.eye(size).to(x) - 1 / size
            weight = norm.weight[:, None] * centre / deviation
            found[t] = self.linear(x[t][None], weight, norm.bias, relevance[t][None])[0]
        return found

    def heads(self, weights, values, relevance, *, half):
        """Of O_jp = Σ_i A_ji V_ip: relevance of V and of A, all to V or half to each."""
        share = 0.5 if half else 1.0
        to_values, to_weights = torch.zeros_like(values), torch.zeros_like(weights)
        for h, (a, v) in enumerate(zip(weights, values, strict=True)):
            parts = a[:, :, None] * v[None]  # j, i, p
            each = parts / parts.sum(1, keepdim=True) * relevance[h][:, None]
            to_values[h], to_weights[h] = share * each.sum(0), (1 - share) * each.sum(2)
        return to_values, to_weights

    def softmax(self, scores, weights, relevance):
        """x_i (R_i − s_i Σ_j R_j); what is missing belongs to the expansion's constant."""
        found = scores * (relevance - weights * relevance.sum(-1, keepdim=True))
        self.lost += float(relevance.sum() - found.sum())
        return found

    def close_layer(self, relevance):
        self.sums.append(float(relevance.sum()) + self.lost)


def apart(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(0, 1)


def together(x):
    return x.transpose(0, 1).flatten(1)


def shared(one, other, relevance):
    """A sum's relevance by its two terms."""
    return one / (one + other) * relevance, other / (one + other) * relevance


def bert(model, ids, types, target, *, attn):
    """(words' relevance (T, D), account, relevance of the weights of each layer) of one logit."""
    base, book, maps = model.bert, Account(), []
    table = base.embeddings
    words, rest = table.word_embeddings(ids), table.position_embeddings.weight[: len(ids)]
    rest = rest + table.token_type_embeddings(types)
    x, seen = table.LayerNorm(words + rest), []
    for layer in base.encoder.layer:
        seen.append(x)
        x = forward(layer, x)["out"]
    pooled = torch.tanh(base.pooler.dense(x[:1]))
    logits = model.classifier(pooled)[0]
    relevance = torch.zeros_like(logits)[None]
    relevance[0, target] = logits[target]
    relevance = book.linear(pooled, model.classifier.weight, model.classifier.bias, relevance)
    dense = base.pooler.dense
    first = book.linear(x[:1], dense.weight, dense.bias, relevance)
    relevance = torch.zeros_like(x)
    relevance[:1] = first
    book.close_layer(relevance)
    for layer, entered in zip(reversed(base.encoder.layer), reversed(seen), strict=True):
        relevance, to_weights = back(layer, entered, relevance, book, attn=attn)
        maps.insert(0, to_weights)
        book.close_layer(relevance)
    relevance = book.norm(words + rest, table.LayerNorm, relevance)
    to_words, to_rest = shared(words, rest, relevance)
    book.lost += float(to_rest.sum())
    book.close_layer(to_words)
    return to_words, logits[target], book, maps


def forward(layer, x):
    own = layer.attention.self
    heads = own.num_attention_heads
    q, k, v = (apart(one(x), heads) for one in (own.query, own.key, own.value))
    scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
    weights = scores.softmax(-1)
    mixed = together(weights @ v)
    said = layer.attention.output.dense(mixed)
    middle = layer.attention.output.LayerNorm(said + x)
    inner = layer.intermediate.dense(middle)
    bent = 0.5 * inner * (1 + torch.erf(inner / math.sqrt(2)))
    last = layer.output.dense(bent)
    out = layer.output.LayerNorm(last + middle)
    return {
        **{"q": q, "k": k, "v": v, "scores": scores, "weights": weights, "mixed": mixed},
        **{"said": said, "middle": middle, "bent": bent, "last": last, "out": out},
    }


def back(layer, x, relevance, book, *, attn):
    made = forward(layer, x)
    own, heads = layer.attention.self, layer.attention.self.num_attention_heads
    relevance = book.norm(made["last"] + made["middle"], layer.output.LayerNorm, relevance)
    to_last, to_middle = shared(made["last"], made["middle"], relevance)
    dense = layer.output.dense
    to_inner = book.linear(made["bent"], dense.weight, dense.bias, to_last)  # gelu passes it on
    dense = layer.intermediate.dense
    to_middle = to_middle + book.linear(made["middle"], dense.weight, dense.bias, to_inner)
    norm = layer.attention.output.LayerNorm
    to_said, to_x = shared(made["said"], x, book.norm(made["said"] + x, norm, to_middle))
    dense = layer.attention.output.dense
    to_mixed = apart(book.linear(made["mixed"], dense.weight, dense.bias, to_said), heads)
    to_v, to_weights = book.heads(made["weights"], made["v"], to_mixed, half=attn)
    to_x = to_x + book.linear(x, own.value.weight, own.value.bias, together(to_v))
    if attn:
        to_scores = book.softmax(made["scores"], made["weights"], to_weights)
        # scores_ji = Σ_p q_jp k_ip: half to each, by the same rule as above
        parts = made["q"][:, :, None] * made["k"][:, None] / math.sqrt(made["q"].shape[-1])
        each = 0.5 * parts / parts.sum(-1, keepdim=True) * to_scores[..., None]
        to_q, to_k = together(each.sum(2)), together(each.sum(1))
        to_x = to_x + book.linear(x, own.query.weight, own.query.bias, to_q)
        to_x = to_x + book.linear(x, own.key.weight, own.key.bias, to_k)
    return to_x, to_weights


class Arras:
    """The rules for recurrent models, number by number."""

    def __init__(self, epsilon, bias_factor):
        self.epsilon, self.bias_factor = epsilon, bias_factor

    def linear(self, hin, weight, bias, hout, relevance, units):
        """Rows of `weight` are outputs; `units` is how many inputs there are in all."""
        found = [0.0] * len(hin)
        for j, z in enumerate(hout):
            sign = 1.0 if z >= 0 else -1.0
            bottom = z + self.epsilon * sign
            spread = self.bias_factor * (bias[j] + self.epsilon * sign) / units
            for i, x in enumerate(hin):
                found[i] += (weight[j][i] * x + spread) / bottom * relevance[j]
        return found

    def lstm(self, lstm, x, relevance):
        """From the states of one direction to its words, and what the first step was given."""
        size = lstm.hidden_size
        w, u = (getattr(lstm, f"weight_{one}_l0").chunk(4) for one in ("ih", "hh"))
        bias = (lstm.bias_ih_l0 + lstm.bias_hh_l0).chunk(4)
        h = [torch.zeros(size).double()]
        c, g, i, f, inner = [torch.zeros(size).double()], [], [], [], []
        for word in x:
            pre = [w[n] @ word + u[n] @ h[-1] + bias[n] for n in range(4)]
            inner.append(pre[2])
            i.append(pre[0].sigmoid())
            f.append(pre[1].sigmoid())
            g.append(pre[2].tanh())
            c.append(f[-1] * c[-1] + i[-1] * g[-1])
            h.append(pre[3].sigmoid() * c[-1].tanh())
        same, none = torch.eye(size).tolist(), [0.0] * size
        to_h = [[0.0] * size, *[one.tolist() for one in relevance]]
        to_c, to_x = [[0.0] * size for _ in h], []
        for t in reversed(range(len(x))):
            after = c[t + 1].tolist()
            to_c[t + 1] = [one + two for one, two in zip(to_c[t + 1], to_h[t + 1], strict=True)]
            kept = (f[t] * c[t]).tolist()
            down = self.linear(kept, same, none, after, to_c[t + 1], 2 * size)
            to_c[t] = [one + two for one, two in zip(to_c[t], down, strict=True)]
            new = (i[t] * g[t]).tolist()
            to_g = self.linear(new, same, none, after, to_c[t + 1], 2 * size)
            units, given = x.shape[-1] + size, (bias[2].tolist(), inner[t].tolist(), to_g)
            to_x.insert(0, self.linear(x[t].tolist(), w[2].tolist(), *given, units))
            down = self.linear(h[t].tolist(), u[2].tolist(), *given, units)
            to_h[t] = [one + two for one, two in zip(to_h[t], down, strict=True)]
        return torch.tensor(to_x, dtype=torch.float64), sum(to_h[0]) + sum(to_c[0])

    def pooled(self, weights, states, relevance):
        """From Σ_t α_t h_t to the states that are attended to."""
        total = (weights[:, None] * states).sum(0)
        here = [t for t, one in enumerate(weights.tolist()) if one > 0]
        units = len(here) * states.shape[-1]
        same, none = torch.eye(states.shape[-1]).tolist(), [0.0] * states.shape[-1]
        found = torch.zeros_like(states)
        for t in here:
            part = (weights[t] * states[t]).tolist()
            down = self.linear(part, same, none, total.tolist(), relevance, units)
            found[t] = torch.tensor(down, dtype=torch.float64)
        return found

    def layers(self, layers, x, relevance):
        """One word's vector through linear maps with tanh behind each."""
        seen = [x]
        for layer in layers[:-1]:
            seen.append((layer.weight @ seen[-1] + layer.bias).tanh())
        for layer, given in zip(reversed(layers), reversed(seen), strict=True):
            out = (layer.weight @ given + layer.bias).tolist()
            own = (layer.weight.tolist(), layer.bias.tolist())
            relevance = self.linear(given.tolist(), *own, out, relevance, len(given))
        return torch.tensor(relevance, dtype=torch.float64)

    def convolution(self, layer, x, relevance):
        """A window at a time; zeros stand beside the text, and what they get is nobody's."""
        width, size = layer.kernel_size[0], x.shape[-1]
        found = torch.zeros_like(x)
        weight = layer.weight.transpose(1, 2).flatten(1)  # place in the window, then number
        for t in range(len(x)):
            places = range(t - width // 2, t + width // 2 + 1)
            inside = [0 <= at < len(x) for at in places]
            window = torch.cat(
                [x[at] if ok else 0 * x[0] for at, ok in zip(places, inside, strict=True)]
            )
            out = (weight @ window + layer.bias).tolist()
            given = (weight.tolist(), layer.bias.tolist(), out, relevance[t].tolist())
            down = self.linear(window.tolist(), *given, width * size)
            down = torch.tensor(down, dtype=torch.float64)
            for at, ok, piece in zip(places, inside, down.view(width, size), strict=True):
                if ok:
                    found[at] += piece
        return found

    def encoder(self, encoder, x, relevance):
        """From one text's states to its words."""
        kind = type(encoder).__name__
        if kind == "BiLSTM":
            ahead, behind = relevance.chunk(2, dim=-1)
            one, _ = self.lstm(encoder.ahead, x, ahead)
            two, _ = self.lstm(encoder.behind, x.flip(0), behind.flip(0))
            return one + two.flip(0)
        if kind == "CNN":
            each = relevance.chunk(4, dim=-1)
            pairs = zip(encoder.convolutions, each, strict=True)
            return sum(self.convolution(layer, x, down) for layer, down in pairs)
        layers = [encoder.project] if kind == "Average" else [encoder.layers[0], encoder.layers[2]]
        rows = [self.layers(layers, *one) for one in zip(x, relevance.tolist(), strict=True)]
        return torch.stack(rows)
