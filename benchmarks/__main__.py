"""`make bench`: ours against the plain reference, as ratios measured in one run.

CPU seconds on one thread, the two interleaved, median of the rounds. Texts of 19 and 180 words,
hidden 128, word vectors of 300, weights at random (drawn wide, so that attention is not flat). Ours
runs in float64, as audits do; the reference in float32, as published.
"""

import argparse
import platform
import statistics
import time
from datetime import date

import torch

from benchmarks import erasure, plain
from heedful.checks.attention.erasure.check import Erasure
from heedful.checks.interventions.certified_optimum import CertifiedAdversary
from heedful.checks.interventions.gradient_search import AdversarialSearch
from heedful.checks.interventions.simple import Permute
from heedful.core.batch import Batch
from heedful.core.values import Example
from heedful.methods.erasure.leave_one_out import LeaveOneOut
from heedful.methods.gradient.gradient import OneHotGradient
from heedful.models.batch_context import BatchContext
from heedful.models.recurrent.classifier import AttentionClassifier, Shape
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.models.recurrent.vocabulary import SPECIAL_TOKENS, Vocabulary, WordTokenizer
from heedful.numerics.tensor.distributions import tvd
from heedful.training.loop.trainables import SparseStep, build_recurrent_optimiser
from heedful.training.objectives import loss_for
from heedful.training.recipe import Recipe

WORDS = tuple(f"w{n}" for n in range(2000))
OURS = 4 * plain.BATCH  # texts at once, as an audit batches them


def subject(dtype):
    """A BiLSTM with additive attention of the published size."""
    torch.manual_seed(0)
    network = AttentionClassifier(Shape(len(SPECIAL_TOKENS) + len(WORDS), 2)).requires_grad_(False)
    network.embedding.weight.mul_(5)
    network.attention.out.weight.mul_(20)
    network.decoder.weight.mul_(10)
    vocabulary = Vocabulary((*SPECIAL_TOKENS, *WORDS))
    return RecurrentSubject(network.to(dtype), vocabulary, WordTokenizer(), ("no", "yes"))


def texts(one, length, count=plain.BATCH):
    """A batch of texts about as long as asked."""
    draw = torch.Generator().manual_seed(1)
    encoded = []
    for index in range(count):
        words = torch.randint(0, len(WORDS), (length - index % 3,), generator=draw).tolist()
        encoded.append(one.encode(Example(index, " ".join(WORDS[w] for w in words), 0)))
    return one.batch(encoded)


def jobs(length):
    """(name, reference, ours, its preparation) of each experiment.

    The reference works on batches of 32 texts, as published; ours on as many as an audit takes.
    """
    ours, theirs = subject(torch.float64), subject(torch.float32)
    batch, many = texts(ours, length), texts(ours, length, OURS)
    network, lstm = theirs.network, plain.two_way(theirs.network.encoder)
    embedded, lengths = theirs.embed(batch), batch.present.sum(-1)
    states = theirs.forward(batch).states

    def fresh():
        context = BatchContext(ours, many)
        context.forward, context.decode  # noqa: B018 - the shared pass is not what is timed
        return context

    def permutation(context):
        shuffled = context.decode(Permute()(context)).softmax(-1)
        tvd(shuffled, context.forward.probabilities).quantile(0.5, dim=0)

    mask = batch.mask
    can = erasure.proved(ours, batch)
    orders = erasure.orders(network, batch, states)
    return {
        "permutation, 100 draws": (
            lambda: plain.permutation(network, states, mask),
            permutation,
            fresh,
        ),
        "adversary, published search": (
            lambda: plain.adversary(network, states, mask),
            AdversarialSearch(),
            fresh,
        ),
        "adversary, exact": (
            lambda: plain.adversary(network, states, mask),
            CertifiedAdversary(),
            fresh,
        ),
        f"erasure, 8 orders (equal; {can} of {plain.BATCH} texts can flip)": (
            lambda: plain.erasure(network, states, mask, orders),
            Erasure(),
            fresh,
        ),
        "leave-one-out": (
            lambda: plain.leave_one_out(network, lstm, embedded, mask, lengths),
            lambda s: LeaveOneOut()(s, s.predicted),
            fresh,
        ),
        "gradient (with its forward)": (
            lambda: plain.gradient(network, lstm, embedded, mask, lengths),
            lambda s: OneHotGradient()(s, s.predicted),
            lambda: BatchContext(ours, many),
        ),
    }


def training(length, words=14_000):
    """The same steps by the plain loop and by ours, from the same weights: (theirs, mine, gap).

    Lengths vary by 10 % within a batch, as in the published batches.
    """
    steps = 24 if length < 100 else 8
    torch.manual_seed(0)
    made = [AttentionClassifier(Shape(words, 2)) for _ in range(2)]
    made[1].load_state_dict(made[0].state_dict())
    draw = torch.Generator().manual_seed(2)
    batches = [_batch(length, words, draw) for _ in range(steps)]
    step, loss = (
        SparseStep(made[1], build_recurrent_optimiser(made[1], Recipe())),
        loss_for([0, 1], 2),
    )

    def ours(batch, gold):
        return float(step(batch, lambda forward: loss(forward.logits, gold)))

    theirs, mine = [], []
    a = seconds(lambda: theirs.extend(plain.training(made[0], batches, torch.tensor(1.0))))
    b = seconds(lambda: mine.extend(ours(*one) for one in batches))
    gap = max(abs(x - y) / abs(x) for x, y in zip(theirs, mine, strict=True))
    return a * 100 / steps / plain.BATCH, b * 100 / steps / plain.BATCH, gap


def _batch(length, words, draw):
    noise = 0.9 + 0.2 * torch.rand(plain.BATCH, generator=draw)
    lengths = (length * noise).round().long() + 2
    places = torch.arange(int(lengths.max()))
    present = places < lengths[:, None]
    ids = torch.randint(4, words, present.shape, generator=draw) * present
    mask = (places > 0) & (places < lengths[:, None] - 1)
    gold = torch.randint(0, 2, (plain.BATCH,), generator=draw)
    return Batch(ids, present, mask, tuple(range(plain.BATCH))), gold


def seconds(work):
    """CPU seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    print(
        f"{date.today().isoformat()}, {platform.machine()}, torch {torch.__version__}, one thread"
    )
    print("| experiment | words | reference, CPU s / 100 texts | ours | ratio |")
    print("| --- | --- | --- | --- | --- |")
    for length in (19, 180):
        for name, (reference, ours, prepare) in jobs(length).items():
            theirs, mine = [], []
            for _ in range(rounds):
                theirs.append(seconds(reference))
                context = prepare()
                mine.append(seconds(lambda: ours(context)))  # noqa: B023 - called at once
            a = statistics.median(theirs) * 100 / plain.BATCH
            b = statistics.median(mine) * 100 / OURS
            print(f"| {name} | {length} | {a:.3f} | {b:.4f} | {a / b:.1f}× |", flush=True)
        tried = [training(length) for _ in range(rounds)]
        a, b = (statistics.median(one[place] for one in tried) for place in (0, 1))
        gap = max(one[2] for one in tried)
        told = f"training steps (losses equal to {gap:.0e})"
        print(f"| {told} | {length} | {a:.3f} | {b:.4f} | {a / b:.1f}× |", flush=True)


if __name__ == "__main__":
    main()
