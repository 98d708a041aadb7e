"""Planted cases, run once: what attention, output and deletion are in every cell."""

from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau

from heedful.models.batch_context import BatchContext
from heedful.planted import DIFFICULTIES, LENGTHS, Case, TrainedCase, row_to_example

CELLS = list(product(DIFFICULTIES, LENGTHS))
USUAL = {("hard", 10), ("easy", 20), ("middle", 60), ("hard", 200)}  # the others with the studies


def cells_of(kinds):
    """Every cell of some kinds, as parameters: kind, difficulty, length."""
    return pytest.mark.parametrize(
        ("kind", "difficulty", "length"),
        [
            pytest.param(kind, *cell, marks=() if cell in USUAL else pytest.mark.study)
            for kind in kinds
            for cell in CELLS
        ],
    )


TEXTS, FEW, FEWEST = 16, 6, 2  # of transformers; of them on long texts
SEED = 5


@dataclass(frozen=True, eq=False)
class Seen:
    """A case and its first texts."""

    case: Case

    @cached_property
    def rows(self):
        few = FEW if self.case.length < 100 else FEWEST
        return self.case.texts(few if self.case.kind.startswith("compiled") else TEXTS)

    @cached_property
    def context(self):
        subject = self.case.subject
        encoded = [subject.encode(row_to_example(row, i)) for i, row in enumerate(self.rows)]
        return BatchContext(subject, subject.batch(encoded))

    @cached_property
    def texts(self):
        """Of each text: the numbers of its words, their weights, and the log-odds."""
        forward, found = self.context.forward, []
        for row, mask in enumerate(self.context.batch.mask):
            ids = np.array([int(word[1:]) for word in self.rows[row]["text"].split()])
            z = float(odds(forward.logits[row]))
            found.append((ids, forward.attention[row][mask].numpy(), z))
        return found

    @cached_property
    def moved(self):
        """Of each text: how far deleting each word moves the log-odds."""
        moved = (odds(self.context.without_each) - odds(self.context.forward.logits)[:, None]).abs()
        return [moved[row][mask].numpy() for row, mask in enumerate(self.context.batch.mask)]

    @cached_property
    def taus(self):
        pairs = zip(self.texts, self.moved, strict=True)
        return np.array([kendalltau(weights, moved).statistic for (_, weights, _), moved in pairs])

    def output(self, weights):
        """Probability of the second class under weights over the words."""
        rows = self.context.forward.rows
        given = weights if rows is None else weights[:, None]
        with torch.no_grad():
            return self.context.decode(self.context.place_on_words(given)).softmax(-1)[:, 1]

    @cached_property
    def farthest(self):
        """How far the output moves with all weight on one word, the worst word of each text.

        Log-odds are linear in the weights, so nothing moves the output farther.
        """
        mask, own = self.context.batch.mask, self.context.forward.probabilities[:, 1]
        worst = torch.zeros_like(own)
        for place in range(mask.shape[1]):
            inside = mask[:, place]
            alone = torch.zeros(mask.shape, dtype=torch.float64)
            alone[:, place] = 1.0
            alone = torch.where(inside[:, None], alone, self.context.forward.attention)
            worst = torch.maximum(worst, (self.output(alone) - own).abs())
        return worst.numpy()

    def shuffled(self, draws=10):
        """How far the output moves when the weights change places: of each text the median."""
        attention, mask = self.context.forward.attention, self.context.batch.mask
        draw, moved = np.random.default_rng(0), []
        for _ in range(draws):
            other = attention.clone()
            for row, inside in enumerate(mask):
                places = inside.nonzero()[:, 0]
                other[row, places] = attention[row, places[draw.permutation(len(places))]]
            moved.append(
                (self.output(other) - self.context.forward.probabilities[:, 1]).abs().numpy()
            )
        return np.median(moved, axis=0)


def odds(logits):
    return logits[..., 1] - logits[..., 0]


@cache
def seen(kind, difficulty, length):
    return Seen(Case(kind, difficulty, length, SEED))


@cache
def trained(kind):
    """One trained case of a kind; it is trained once for all tests."""
    return TrainedCase(kind, 10, SEED)
