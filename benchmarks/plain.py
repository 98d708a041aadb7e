"""The experiments as published, written plainly: the slow reference of the benchmarks.

Each has the shape of the 2019 code: batches of 32, the full states, one step after the other.
"""

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

BATCH = 32


def packed_states(lstm, embedded, lengths):
    """A two-way LSTM on packed texts, as published."""
    packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=embedded.shape[1])[0]


def two_way(encoder):
    """The encoder's two one-way layers as one two-way layer with the same weights."""
    one = encoder.ahead
    lstm = torch.nn.LSTM(one.input_size, one.hidden_size, batch_first=True, bidirectional=True)
    lstm = lstm.to(one.weight_ih_l0.dtype)
    own = dict(encoder.ahead.named_parameters())
    other = {f"{name}_reverse": weight for name, weight in encoder.behind.named_parameters()}
    lstm.load_state_dict(own | other)
    return lstm.requires_grad_(False)


def output(network, states, attention):
    """Probability of the second class from the attended states."""
    return network.decoder((attention[..., None] * states).sum(-2)).squeeze(-1).sigmoid()


def attention_of(network, states, mask):
    """Additive attention over the words."""
    scores = network.scores(states, None).masked_fill(~mask, float("-inf"))
    return scores.softmax(-1)


def permutation(network, states, mask, rounds=100):
    """100 rounds, each drawing a permutation per text and decoding α·h for the batch."""
    attention = attention_of(network, states, mask)
    before = output(network, states, attention)
    changes = []
    for _ in range(rounds):
        shuffled = attention.clone()
        for row in range(len(states)):
            words = mask[row].nonzero().squeeze(-1)
            shuffled[row, words] = attention[row, words[torch.randperm(len(words))]]
        changes.append((output(network, states, shuffled) - before).abs())
    return torch.stack(changes).median(0).values


def adversary(network, states, mask, *, candidates=5, steps=500):
    """500 Adam steps on k logits per text over the B × k × T × H product."""
    attention = attention_of(network, states, mask)
    before = output(network, states, attention)
    length = mask.sum(-1)[:, None, None].to(states.dtype)
    logits = -length.log() + 3 * torch.randn(len(states), candidates, states.shape[1]).to(states)
    logits.requires_grad_()
    adam = torch.optim.Adam([logits], lr=0.01, amsgrad=True)
    for _ in range(steps):
        adam.zero_grad()
        tried = logits.masked_fill(~mask[:, None], float("-inf")).softmax(-1)
        change = (output(network, states[:, None], tried) - before[:, None]).abs()
        away = _jsd(tried, attention[:, None])
        apart = _jsd(tried[:, :, None], tried[:, None]).mean((1, 2))
        loss = (-away + 500 * (change - 0.01).relu()).sum() - apart.sum()
        loss.backward()
        adam.step()
    return logits.detach()


def _jsd(p, q):
    middle = 0.5 * (p + q)
    part = p * ((p + 1e-10).log() - (middle + 1e-10).log())
    part = part + q * ((q + 1e-10).log() - (middle + 1e-10).log())
    return 0.5 * part.sum(-1)


@torch.no_grad()
def leave_one_out(network, lstm, embedded, mask, lengths):
    """For each position one batch with that column deleted, re-encoded."""
    found = torch.zeros_like(mask, dtype=embedded.dtype)
    states = packed_states(lstm, embedded, lengths)
    before = output(network, states, attention_of(network, states, mask))
    for column in range(1, embedded.shape[1] - 1):
        keep = [c for c in range(embedded.shape[1]) if c != column]
        states = packed_states(lstm, embedded[:, keep], (lengths - 1).clamp(min=1))
        attention = attention_of(network, states, mask[:, keep])
        found[:, column] = (output(network, states, attention) - before).abs()
    return found


def gradient(network, lstm, embedded, mask, lengths):
    """|⟨x, ∂p/∂x⟩| with attention detached, one batch."""
    leaf = embedded.detach().requires_grad_()
    states = packed_states(lstm, leaf, lengths)
    attention = attention_of(network, states, mask).detach()
    output(network, states, attention).sum().backward()
    return (leaf.grad * embedded).sum(-1).abs()


@torch.no_grad()
def erasure(network, states, mask, orders):
    """Text by text, weights removed one after the other, renormalised and decoded, until a flip.

    `orders` are tables of positions, words first; gives the number removed, 0 where nothing flips.
    """
    attention = attention_of(network, states, mask)
    before = output(network, states, attention) > 0.5
    counts = torch.zeros(len(orders), len(states), dtype=torch.long)
    for number, order in enumerate(orders):
        for row in range(len(states)):
            left = attention[row].clone()
            for count in range(1, int(mask[row].sum())):
                left[order[row, count - 1]] = 0.0
                if not left.any():
                    break
                if (output(network, states[row], left / left.sum()) > 0.5) != before[row]:
                    counts[number, row] = count
                    break
    return counts


def training(network, batches, pos_weight):
    """Training steps as published: packed texts, summed loss, three dense Adam optimisers."""
    lstm = two_way(network.encoder).requires_grad_(True)
    others = [network.embedding.weight, *lstm.parameters()]
    groups = (others, network.decoder.parameters(), network.attention.parameters())
    adams = [
        torch.optim.Adam(part, lr=1e-3, weight_decay=decay, amsgrad=True, foreach=False)
        for part, decay in zip(map(list, groups), (1e-5, 1e-5, 0.0), strict=True)
    ]
    loss_of = torch.nn.BCEWithLogitsLoss(reduction="sum", pos_weight=pos_weight)
    losses = []
    for batch, gold in batches:
        for adam in adams:
            adam.zero_grad()
        states = packed_states(lstm, network.embedding(batch.ids), batch.present.sum(-1))
        attention = attention_of(network, states, batch.mask)
        z = network.decoder((attention[..., None] * states).sum(1)).squeeze(-1)
        loss = loss_of(z, gold.float())
        loss.backward()
        for adam in adams:
            adam.step()
        losses.append(float(loss.detach()))
    return losses
