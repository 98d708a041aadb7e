"""Corpora whose decisive words are known by construction: cue words among fillers.

Every row is drawn from its own random stream (seed, corpus, split, index), so nothing is stored
and any row can be generated on its own. Labels alternate, so every corpus is balanced.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from heedful.core.rng import generator
from heedful.data.corpora.word_lists import FILLERS, NEGATIVE, POSITIVE, RANKED, TOPICS
from heedful.data.dataset import NumberedRow, corpora, pick_split, rows_sha256

SEED = 0
SIZES = {"train": 2000, "dev": 400, "test": 400}
SHORTEST, LONGEST = 8, 24  # tokens
SENTIMENT = ("negative", "positive")

Rng = np.random.Generator
Row = dict[str, object]
RowSampler = Callable[[Rng, int], Row]
Cues = list[tuple[str, bool]]  # cue words, each with: is it part of the rationale?


@dataclass(frozen=True)
class SyntheticSource:
    """One split of a synthetic corpus; `draw_row` draws the row of an index."""

    name: str
    split: str
    draw_row: RowSampler

    def sha256(self) -> str:
        """Hex digest of the rows as canonical JSON."""
        return rows_sha256(self)

    def __iter__(self) -> Iterator[NumberedRow]:
        for index in range(SIZES[self.split]):
            rng = generator(SEED, f"{self.name}/{self.split}", index)
            yield index + 1, self.draw_row(rng, index)


@dataclass(frozen=True)
class SyntheticCorpus:
    """A corpus of generated rows."""

    name: str
    draw_row: RowSampler
    splits: tuple[str, ...] = tuple(SIZES)

    def __call__(self, split: str) -> SyntheticSource:
        return SyntheticSource(self.name, pick_split(split, SIZES, name=self.name), self.draw_row)


def register_synthetic(name: str) -> Callable[[RowSampler], RowSampler]:
    """Register a function that draws rows as a corpus; its docstring describes the corpus."""

    def register(draw_row: RowSampler) -> RowSampler:
        def build_corpus() -> SyntheticCorpus:
            return SyntheticCorpus(name, draw_row)

        build_corpus.__doc__ = draw_row.__doc__
        corpora.register(name)(build_corpus)
        return draw_row

    return register


@register_synthetic("synthetic:needle")
def draw_needle(rng: Rng, index: int) -> Row:
    """One word of praise or blame among fillers decides; the rationale is that word."""
    label = index % 2
    return _build_row(
        [(_choose_word((NEGATIVE, POSITIVE)[label], rng), True)], SENTIMENT[label], rng
    )


@register_synthetic("synthetic:votes")
def draw_votes(rng: Rng, index: int) -> Row:
    """Three, five or seven words of praise and blame; the majority decides.

    The rationale is all of them, the outvoted ones too: removing any changes the margin.
    """
    label, total = index % 2, int(rng.choice((3, 5, 7)))
    winning = int(rng.integers(total // 2 + 1, total + 1))
    polarities = [label] * winning + [1 - label] * (total - winning)
    cues = [(_choose_word((NEGATIVE, POSITIVE)[polarity], rng), True) for polarity in polarities]
    return _build_row(cues, SENTIMENT[label], rng)


@register_synthetic("synthetic:priority")
def draw_priority(rng: Rng, index: int) -> Row:
    """Three to five words of different rank; the word of highest rank decides.

    There are ten ranks of praise and ten of blame (`word_lists.RANKED`). In half of the texts all
    other words, of the ranks directly below, contradict the highest word; in the other half all
    but one agree with it: a majority is as often wrong as right. The rationale is the highest word.

    Attention solves this by scores that grow with rank. A sum of word weights could too, since
    Σ αₜ·vₜ has the sign of Σ exp(sₜ)·vₜ; but its weights would have to double from rank to rank.
    With weights of ordinary size, as uniform attention learns, it is right on 2 in 3.
    """
    label, below = index % 2, int(rng.integers(2, 5))
    top = int(rng.integers(below, len(RANKED["positive"])))
    allies = below - 1 if rng.random() < 0.5 else 0
    polarities = [label] * allies + [1 - label] * (below - allies)
    ranks = rng.permutation(np.arange(top - below, top)).tolist()
    others = [
        (RANKED[SENTIMENT[polarity]][rank], False)
        for rank, polarity in zip(ranks, polarities, strict=True)
    ]
    return _build_row([(RANKED[SENTIMENT[label]][top], True), *others], SENTIMENT[label], rng)


@register_synthetic("synthetic:topics")
def draw_topics(rng: Rng, index: int) -> Row:
    """One word determines which of four topics a text has; the rationale is that word."""
    topic, words = tuple(TOPICS.items())[index % len(TOPICS)]
    return _build_row([(_choose_word(words, rng), True)], topic, rng)


def _build_row(cues: Cues, label: str, rng: Rng) -> Row:
    """Put the cues at random positions among fillers; the rationale is the decisive cues."""
    length = int(rng.integers(SHORTEST, LONGEST + 1))
    tokens = [FILLERS[i] for i in rng.integers(len(FILLERS), size=length).tolist()]
    places = rng.permutation(length)[: len(cues)].tolist()
    for place, (cue, _) in zip(places, cues, strict=True):
        tokens[place] = cue
    decisive = sorted(place for place, (_, decides) in zip(places, cues, strict=True) if decides)
    return {"text": " ".join(tokens), "label": label, "tokens": tokens, "rationale": decisive}


def _choose_word(words: Sequence[str], rng: Rng) -> str:
    return words[int(rng.integers(len(words)))]
