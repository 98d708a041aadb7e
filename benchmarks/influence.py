"""`python -m benchmarks.influence`: what sets of words cost, by the lean passes and by plain ones.

The sets are those of the check `influence`: words added in four random orders, deleted, or masked.
*plain*: every set through the pass that records attention, sets of equal length together.
*lean*: logits only, and what the sets of a text share is computed once. CPU seconds on one thread,
float64 as in audits, the two interleaved, median of the rounds. A BiLSTM of width 128 on word
vectors of 50, and a BERT of MiniLM's size (6 layers, 12 heads, 384 wide); weights at random.
"""

import argparse
import platform
import statistics
import time
from datetime import date

import torch

from benchmarks import transformer
from heedful.checks.influence.orders import additions_in_orders, draw_orders
from heedful.core.values import Example
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.erased_words import run_with_masked_tokens, run_without_tokens
from heedful.models.recurrent.classifier import AttentionClassifier, Shape
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.models.recurrent.vocabulary import SPECIAL_TOKENS, Vocabulary, WordTokenizer

WORDS = transformer.WORDS
ORDERS = 4
TEXTS = {"bilstm": {20: 32, 200: 2}, "bert": {20: 4, 200: 1}}
EVERY = {("bert", 200): 16}  # only every 16th set: they take a second each
WAYS = {"deleted": run_without_tokens, "masked": run_with_masked_tokens}


def subjects():
    """By name, in float64."""
    torch.manual_seed(0)
    shape = Shape(len(SPECIAL_TOKENS) + len(WORDS), 2, embedding=50)
    network = AttentionClassifier(shape).double().requires_grad_(False)
    vocabulary = Vocabulary((*SPECIAL_TOKENS, *WORDS))
    yield "bilstm", RecurrentSubject(network, vocabulary, WordTokenizer(), ("no", "yes"))
    bert = transformer.subject()
    bert.model.double()
    yield "bert", bert


def sets(subject, length, count):
    """A batch of texts, and the sets of their words: rows and tokens that are gone."""
    draw = torch.Generator().manual_seed(1)
    numbers = torch.randint(0, len(WORDS), (count, length), generator=draw).tolist()
    texts = [Example(n, " ".join(WORDS[w] for w in row), 0) for n, row in enumerate(numbers)]
    batch = subject.batch([subject.encode(one) for one in texts])
    rows, gone = [], []
    for row in range(count):
        left = additions_in_orders(draw_orders(length, ORDERS, 0, str(row))).sets
        rows += [row] * len(left)
        gone.append(torch.nn.functional.pad(torch.from_numpy(~left), (1, 1)))
    return batch, torch.tensor(rows), torch.cat(gone)


def tokens(asked):
    """How many tokens the sets leave."""
    batch, rows, gone = asked
    return int((batch.present[rows] & ~gone).sum())


def plain(context, batch, embedded):
    """The logits by the pass that records attention."""
    return context.subject.forward(batch, embedded).logits


def logits(way, subject, asked, **more):
    """The logits of all sets."""
    batch, rows, gone = asked
    found = torch.zeros(len(rows), len(subject.labels), dtype=torch.float64)
    for variants, which, some in way(BatchContext(subject, batch), rows, gone, **more):
        found[variants] = some[which]
    return found


def seconds(work, *given, **more):
    """CPU seconds of one call, and its result."""
    start = time.process_time()
    found = work(*given, **more)
    return time.process_time() - start, found


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    print(
        f"{date.today().isoformat()}, {platform.machine()}, torch {torch.__version__}, one thread"
    )
    print(
        "| model | words | sets | plain, CPU s / 1 000 tokens | lean | ratio | largest difference |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, subject in subjects():
        for length, count in TEXTS[name].items():
            batch, *drawn = sets(subject, length, count)
            asked = batch, *(one[:: EVERY.get((name, length), 1)] for one in drawn)
            for way, run in WAYS.items():
                theirs, mine = [], []
                for _ in range(rounds):
                    a, wanted = seconds(logits, run, subject, asked, output=plain)
                    b, found = seconds(logits, run, subject, asked)
                    theirs.append(1000 * a / tokens(asked))
                    mine.append(1000 * b / tokens(asked))
                a, b = statistics.median(theirs), statistics.median(mine)
                gap = float((found - wanted).abs().max())
                print(
                    f"| {name} | {length} | {way} | {a:.4f} | {b:.4f} | {a / b:.2f}× | {gap:.0e} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
