"""A training step with a kept gradient is the plain step: autograd through the word vectors."""

import torch

from heedful.core.batch import Batch
from heedful.models.recurrent.classifier import AttentionClassifier, Shape
from heedful.training.loop.trainables import SparseStep, build_recurrent_optimiser
from heedful.training.objectives import loss_for
from heedful.training.recipe import Recipe

WORDS = 30


def drawn_batch(draw):
    lengths = torch.randint(3, 9, (6,), generator=draw)
    places = torch.arange(int(lengths.max()))
    present = places < lengths[:, None]
    ids = torch.randint(1, WORDS, present.shape, generator=draw) * present
    mask = (places > 0) & (places < lengths[:, None] - 1)
    return Batch(ids, present, mask, tuple(range(6))), torch.randint(0, 2, (6,), generator=draw)


def plain_step(network, loss_of, adam, batch, gold):
    adam.zero_grad()
    loss = loss_of(network(batch, network.embed(batch.ids)).logits, gold)
    loss.backward()
    adam.step()
    return loss.detach()


def test_ten_steps_equal_plain_autograd():
    torch.manual_seed(3)
    ours, theirs = (
        AttentionClassifier(Shape(WORDS, 2, hidden=8, embedding=5)).double() for _ in "ab"
    )
    ours.load_state_dict(theirs.state_dict())
    loss, recipe = loss_for([0, 1, 1], 2), Recipe(rate=0.05, decay=0.01)
    step, adam = (
        SparseStep(ours, build_recurrent_optimiser(ours, recipe)),
        build_recurrent_optimiser(theirs, recipe),
    )
    draw = torch.Generator().manual_seed(0)
    before = theirs.embedding.weight.detach().clone()
    for _ in range(
        10
    ):  # several, with other words each: nothing of one step may leak into the next
        batch, gold = drawn_batch(draw)
        found = step(batch, lambda seen, gold=gold: loss(seen.logits, gold))
        wanted = plain_step(theirs, loss, adam, batch, gold)
        torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)
    for name, weight in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], weight, rtol=1e-10, atol=1e-12)
    assert (theirs.embedding.weight - before).abs().max() > 0.1
    assert ours.embedding.weight[0].abs().max() == 0
