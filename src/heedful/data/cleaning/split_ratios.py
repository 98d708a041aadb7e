"""Splits that a paper drew itself: shares of the training texts, or of all texts together.

The papers drew with scikit-learn from lists whose order is not published, so their exact rows are
unknown. Here rows are drawn by a fixed seed; only the sizes are those of the papers.
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
    """The shares of texts that become dev and test.

    If `pooled`, the share `test` of all texts is the test split, and the share `dev` of the others
    the dev split. Otherwise `dev` is a share of the training texts, and `test` is the share of the
    test texts that is kept (0: all). `by_class` stratifies by class.
    """

    dev: float = 0.0
    test: float = 0.0
    pooled: bool = False
    by_class: bool = False

    def __str__(self) -> str:
        test = f"{self.test:.0%} {'of all to test' if self.pooled else 'of test kept'}"
        dev = f"{self.dev:.0%} of {'the rest' if self.pooled else 'train'} to dev"
        return " and ".join([test] * bool(self.test) + [dev] * bool(self.dev))

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits of pooled texts."""
        return ("train", *(("dev",) if self.dev else ()), "test")

    def split_mask(
        self, split: str, labels: Sequence[str], *, purpose: str
    ) -> Bool[np.ndarray, "rows"]:
        """Which of the rows with these labels belong to the split."""
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
    """Draw `count` of the rows, stratified by class as closely as possible."""
    mixed = generator(SEED, purpose).permutation(rows)
    names, sizes = np.unique(classes[rows], return_counts=True)
    quotas = count * sizes / max(1, len(rows))
    counts = np.floor(quotas).astype(int)
    for extra in np.argsort(counts - quotas, kind="stable")[: count - counts.sum()]:
        counts[extra] += 1  # the rest of rounding goes to the largest remainders
    parts = [mixed[classes[mixed] == one][:few] for one, few in zip(names, counts, strict=True)]
    return np.sort(np.concatenate([rows[:0], *parts]))
