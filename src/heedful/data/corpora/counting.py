"""A counting corpus whose decisive words are known: which of two symbols is more frequent?

The toy task of De Cao et al. (2020): the question is two symbols, and the text is drawn over the
same alphabet, each of the two with probability ¼ at every position. Only positions with one of the
two matter.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from heedful.core.rng import generator
from heedful.data.corpora.synthetic import LONGEST, SEED, SHORTEST, SIZES, Rng
from heedful.data.corpora.word_lists import SYMBOLS
from heedful.data.dataset import NumberedRow, corpora, pick_split, rows_sha256

COUNTING_LABELS = ("more", "not more")
ASKED_SYMBOL_RATE = 0.25  # probability of each of the two symbols; the others share the rest


@dataclass(frozen=True)
class CountingSource:
    """One split: symbols, the two of the question, and whether the first is more frequent."""

    split: str
    name: str = "synthetic:counting"

    def sha256(self) -> str:
        """Hex digest of the rows as canonical JSON."""
        return rows_sha256(self)

    def __iter__(self) -> Iterator[NumberedRow]:
        for index in range(SIZES[self.split]):
            rng = generator(SEED, f"{self.name}/{self.split}", index)
            yield index + 1, _row(rng, index % 2)


@corpora.register("synthetic:counting")
@dataclass(frozen=True)
class Counting:
    """Is the first of two symbols more frequent? The rationale is the positions of both."""

    splits: tuple[str, ...] = field(default=tuple(SIZES), init=False)

    def __call__(self, split: str) -> CountingSource:
        return CountingSource(pick_split(split, SIZES, name="synthetic:counting"))


def _row(rng: Rng, label: int) -> dict[str, object]:
    """Draw until the answer is the given label and at least one of the two symbols occurs."""
    while True:
        asked, drawn = draw_counting(rng)
        one, other = (int((drawn == number).sum()) for number in asked)
        if int(one <= other) == label and one + other:
            break
    tokens = [SYMBOLS[number] for number in drawn.tolist()]
    return {
        "paragraph": " ".join(tokens),
        "question": " ".join(SYMBOLS[number] for number in asked),
        "label": COUNTING_LABELS[label],
        "tokens": tokens,
        "rationale": np.isin(drawn, asked).nonzero()[0].tolist(),
    }


def draw_counting(rng: Rng) -> tuple[list[int], NDArray[np.int64]]:
    """Draw two symbols and a text, as indices."""
    asked = rng.permutation(len(SYMBOLS))[:2].tolist()
    share = np.full(len(SYMBOLS), (1 - 2 * ASKED_SYMBOL_RATE) / (len(SYMBOLS) - 2))
    share[asked] = ASKED_SYMBOL_RATE
    length = int(rng.integers(SHORTEST, LONGEST + 1))
    return asked, rng.choice(len(SYMBOLS), size=length, p=share)
