"""Erasure as published beside ours: the orders both follow, and that they find the same."""

import torch

from benchmarks import plain
from heedful.checks.attention.erasure.check import Erasure
from heedful.core.rng import uniform_keys
from heedful.models.batch_context import BatchContext

NAMES = ("attention", "gradient", "attention_x_gradient")


def orders(network, batch, states):
    """By attention, by gradient of the predicted class, by both, and five at random."""
    attention = plain.attention_of(network, states, batch.mask)
    raises = network.decoder(states).squeeze(-1) - network.decoder.bias
    for_second = plain.output(network, states, attention)[:, None] > 0.5
    slope = torch.where(for_second, raises, -raises)
    lengths = batch.lengths.tolist()
    keys = uniform_keys(0, "orders of erasure", batch.instances, draws=5, lengths=lengths)
    drawn = torch.zeros(5, *batch.mask.shape, dtype=torch.float64)
    for row, mask in enumerate(batch.mask):
        drawn[:, row, mask] = torch.from_numpy(keys[row, :, : lengths[row]])
    scores = [attention, slope, attention * slope, *drawn]
    hidden = [one.masked_fill(~batch.mask, float("-inf")) for one in scores]
    return [one.argsort(dim=-1, descending=True, stable=True) for one in hidden]


def proved(subject, batch):
    """The plain loop finds what the check finds, in the same precision; how many texts can flip."""
    found = {
        one.measure: torch.from_numpy(one.values)
        for one in Erasure()(BatchContext(subject, batch)).measurements
    }
    network, states = subject.network, subject.forward(batch).states
    counts = plain.erasure(network, states, batch.mask, orders(network, batch, states))
    shares = torch.where(counts > 0, counts / batch.lengths.double(), 1.0)
    can = found["can_flip"] > 0
    assert not counts[:, ~can].any()  # unequal results have no ratio
    for name, want in zip((*NAMES, "random"), (*shares[:3], shares[3:].mean(0)), strict=True):
        torch.testing.assert_close(found[f"fraction_to_flip_{name}"][can], want[can])
    return int(can.sum())
