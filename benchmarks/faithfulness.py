"""`python -m benchmarks.faithfulness`: comprehensiveness and sufficiency beside a loop over texts.

CPU seconds on one thread, float32, the MiniLM of `benchmarks.methods`, sentences of about 20
tokens, five methods, from scores to figures, interleaved, medians. The loop removes words from one
text at a time, one batch for each method, of its own ten variants, padded. Both must find the same,
or there is no ratio.
"""

import argparse
import math
import platform
import statistics
from datetime import date

import torch

from benchmarks.methods import seconds, subject, texts
from heedful.checks.faithfulness.faithfulness.check import Faithfulness
from heedful.checks.faithfulness.item_removal import ItemView, Removals
from heedful.checks.faithfulness.removal_metrics import RemovalMetrics
from heedful.data.batching import batches
from heedful.models.batch_context import BatchContext

NAMES = ("attention", "input_x_gradient", "one_hot_gradient", "leave_one_out", "gradient")
CLOSE = 1e-5


def contexts(one, encoded):
    """Contexts of the texts as an audit batches them, with the scores of the words."""
    check, found = Faithfulness(methods=NAMES), []
    for rows in batches(encoded, max_batch_tokens=one.max_batch_tokens):
        context = BatchContext(one, one.batch([encoded[row] for row in rows]))
        with torch.no_grad():
            scores, _ = check.scores(ItemView(context))
        found.append((context, scores, check))
    return found


def ours(many):
    """Both figures of every method and text, all variants of a batch together."""
    found = []
    for context, scores, check in many:
        removals = Removals(ItemView(context), "deletion")
        trial = RemovalMetrics(
            removals, scores, check.chance(removals.words)[:0], check.bins, check.steps
        )
        whole = removals.at(
            torch.zeros_like(removals.words.real), torch.ones(len(context.batch)).bool()
        )
        without, alone = trial.both()
        both = torch.stack([(whole.p - one).mean(1)[: len(NAMES)] for one in (without, alone)])
        found.extend(both.permute(2, 1, 0))
    return torch.stack(found)


def theirs(many):
    """The same, text by text and method by method."""
    found = [
        torch.stack([_loop(context, row, one[row], check) for one in scores[:-1]])
        for context, scores, check in many
        for row in range(len(context.batch))
    ]
    return torch.stack(found)


def _loop(context, row, scores, check):
    batch, one = context.batch.select(torch.tensor([row])), context.subject
    ids, word = batch.ids[0][batch.present[0]], batch.word[0][batch.present[0]]
    names = [w for w in dict.fromkeys(word.tolist()) if w >= 0]
    order = sorted(range(len(names)), key=lambda w: -float(scores[w]))
    target, variants = int(context.predicted[row]), [[]]
    for share in check.bins:
        k = max(1, math.ceil(share * len(names) - 1e-9))
        variants += [order[:k], order[k:]]
    rows = [torch.isin(word, torch.tensor([names[w] for w in gone] or [-2])) for gone in variants]
    width = max(int((~gone).sum()) for gone in rows)
    given = torch.zeros(len(rows), width, dtype=torch.long)
    present = torch.zeros(len(rows), width, dtype=torch.long)
    for place, gone in enumerate(rows):
        left = ids[~gone]
        given[place, : len(left)], present[place, : len(left)] = left, 1
    with torch.no_grad():
        logits = one.model(input_ids=given, attention_mask=present).logits
    p = logits.double().softmax(-1)[:, target]
    return torch.stack([(p[0] - p[1::2]).mean(), (p[0] - p[2::2]).mean()])


def main():
    """Print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--texts", type=int, default=48)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    one = subject()
    many = contexts(one, texts(one, 20, chosen.texts))
    gap = float((ours(many) - theirs(many)).abs().max())
    assert gap < CLOSE, f"unequal results have no ratio: {gap}"
    times = [
        (seconds(lambda: theirs(many)), seconds(lambda: ours(many))) for _ in range(chosen.rounds)
    ]
    a, b = (statistics.median(side) for side in zip(*times, strict=True))
    print(f"{date.today()}, {platform.machine()}, torch {torch.__version__}, one thread")
    print("| experiment | tokens | loop over texts, CPU s | ours | ratio |")
    print("| --- | --- | --- | --- | --- |")
    told = f"comprehensiveness and sufficiency, {len(NAMES)} methods (equal to {gap:.0e})"
    print(f"| {told} | 20 | {a:.2f} | {b:.2f} | {a / b:.2f}× |", flush=True)


if __name__ == "__main__":
    main()
