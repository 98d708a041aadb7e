"""A counting corpus whose decisive words are known: which of two symbols is more frequent?

The toy task of De Cao et al. (2020): the question is two symbols, and the text is drawn over the
same alphabet, each of the two with probability ¼ at every position. Only positions with one of the
two matter.
"""

import numpy as np
from numpy.typing import NDArray

from heedful.data.corpora.synthetic import LONGEST, SHORTEST, Rng, Row, register_synthetic
from heedful.data.corpora.word_lists import SYMBOLS

COUNTING_LABELS = ("more", "not more")
ASKED_SYMBOL_RATE = 0.25  # probability of each of the two symbols; the others share the rest


@register_synthetic("synthetic:counting")
def draw_counting_row(rng: Rng, index: int) -> Row:
    """Is the first of two symbols more frequent? The rationale is the positions of both."""
    label = index % 2
    while True:  # until the answer is the label and at least one of the two symbols occurs
        asked, drawn = draw_counting(rng)
        first, second = (int((drawn == symbol).sum()) for symbol in asked)
        if int(first <= second) == label and first + second:
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
