"""Splits that a paper drew itself: shares of the training texts, or of all texts together.

The papers drew with scikit-learn, from lists in an order that is not published, so that their very
rows cannot be had. Here rows are drawn once for all from our own streams: the sizes are theirs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

import numpy as np
from jaxtyping import Bool, Int64

from heedful.core.rng import generator

SEED = 0  # a split belongs to the data, not to a run


@dataclass(frozen=True)
class Shares:
    """How much becomes dev and test.

    `pooled`: all texts are put together, `test` of them are the test split, `dev` of the others
    the dev split. Otherwise `dev` is taken out of the training texts, and `test` is how much of
    the test texts is kept (0: all). `by_class` keeps the share of every class.
    """

    dev: float = 0.0
    test: float = 0.0
    pooled: bool = False
    by_class: bool = False

    def __str__(self) -> str:
        parts = [f"{self.dev:.0%} of {'the rest' if self.pooled else 'train'} to dev"]
        kept = "of all to test" if self.pooled else "of test kept"
        told = [*([f"{self.test:.0%} {kept}"] if self.test else ()), *(parts if self.dev else ())]
        return " and ".join(told)

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits of a pool."""
        return ("train", *(("dev",) if self.dev else ()), "test")

    def part(self, split: str, labels: Sequence[str], *, purpose: str) -> Bool[np.ndarray, "rows"]:
        """Which rows belong to the split, of rows with these labels."""
        rows = np.arange(len(labels))
        classes = np.asarray(labels) if self.by_class else np.zeros(len(labels), dtype=int)
        if self.pooled:
            test = _draw(rows, ceil(self.test * len(rows)), classes, f"{purpose}/test")
            rest = np.setdiff1d(rows, test)
        elif split == "test":
            test, rest = _draw(rows, floor(self.test * len(rows)), classes, f"{purpose}/test"), rows
        else:
            test, rest = rows[:0], rows
        dev = _draw(rest, ceil(self.dev * len(rest)), classes, f"{purpose}/dev")
        chosen = {"test": test, "dev": dev, "train": np.setdiff1d(rest, dev)}[split]
        return np.isin(rows, chosen)


def _draw(
    rows: Int64[np.ndarray, "rows"], count: int, classes: np.ndarray, purpose: str
) -> Int64[np.ndarray, "drawn"]:
    """`count` of the rows, as near as can be in the shares of their classes."""
    mixed = generator(SEED, purpose).permutation(rows)
    names, sizes = np.unique(classes[rows], return_counts=True)
    quotas = count * sizes / max(1, len(rows))
    taken = np.floor(quotas).astype(int)
    for extra in np.argsort(taken - quotas, kind="stable")[: count - taken.sum()]:
        taken[extra] += 1  # what rounding left goes to the largest remainders
    parts = [mixed[classes[mixed] == one][:few] for one, few in zip(names, taken, strict=True)]
    return np.sort(np.concatenate([rows[:0], *parts]))
