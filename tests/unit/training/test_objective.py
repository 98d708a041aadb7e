"""What training minimises, what decays, and the order in which texts are seen."""

from math import exp, log

import pytest
import torch

from heedful.core.batch import Encoded
from heedful.training.loop.epochs import shuffled_batches
from heedful.training.loop.trainables import build_recurrent_optimiser
from heedful.training.objectives import loss_for
from heedful.training.recipe import Recipe
from support import subjects


def encoded(labels):
    return [Encoded(i, label, (2, 4, 3), (-1, 0, -1), ("a",)) for i, label in enumerate(labels)]


def test_two_classes_weigh_as_published():
    """Σ over the batch of −w y log σ(z) − (1 − y) log(1 − σ(z)), with w = N/N₊ − 1."""
    gold = [1, 0, 0, 1, 0, 0, 0]
    loss = loss_for(gold, 2)
    z = [0.3, -1.2, 2.0, -0.7, 0.0, 1.5, -2.5]
    chance = [1 / (1 + exp(-one)) for one in z]
    weight = len(gold) / sum(gold) - 1
    want = sum(
        -weight * y * log(p) - (1 - y) * log(1 - p) for y, p in zip(gold, chance, strict=True)
    )
    logits = torch.tensor([[0.0, one] for one in z])
    assert float(loss(logits, torch.tensor(gold))) == pytest.approx(want, rel=1e-5)


def test_more_classes_weigh_by_inverse_frequency():
    """Σ w_y (−log p_y) / Σ w_y, with w_c = N/(C·N_c)."""
    gold = [0, 0, 0, 1, 1, 2]
    loss = loss_for(gold, 3)
    logits = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    each = [6 / (3 * gold.count(y)) for y in gold]
    lost = [log(sum(map(exp, row))) - row[y] for row, y in zip(logits.tolist(), gold, strict=True)]
    want = sum(w * one for w, one in zip(each, lost, strict=True)) / sum(each)
    assert float(loss(logits, torch.tensor(gold))) == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("attention", ["additive", "dot", "uniform"])
def test_attention_does_not_decay(attention):
    network = subjects.subject(attention=attention).network
    adam = build_recurrent_optimiser(network, Recipe(decay=0.5, rate=0.25))
    decayed = {id(p) for g in adam.param_groups if g["weight_decay"] == 0.5 for p in g["params"]}
    held = {id(p) for g in adam.param_groups if g["weight_decay"] == 0.0 for p in g["params"]}
    assert held == {id(one) for one in network.attention.parameters()}
    assert decayed == {id(one) for one in network.parameters()} - held
    assert all(group["amsgrad"] and group["lr"] == 0.25 for group in adam.param_groups)


def test_an_epoch_sees_every_text_once_in_batches_of_like_length():
    known = [Encoded(i, 0, (4,) * (3 + 7 * i % 60), (0,), ("a",)) for i in range(50)]
    first, again, second = (list(shuffled_batches(known, e, batch=8, seed=0)) for e in (0, 0, 1))
    assert first == again != second
    assert sorted(row for batch in first for row in batch) == list(range(50))
    assert {len(batch) for batch in first} == {8, 2}
    for batch in first:
        lengths = [len(known[row].ids) for row in batch]
        assert max(lengths) - min(lengths) < 30
