"""Corpora whose decisive words are known by construction: cue words among fillers.

Every row is drawn from its own random stream (seed, corpus, split, index), so nothing is stored
and any row can be generated on its own. Labels alternate, so every corpus is balanced.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from heedful.core.rng import generator
from heedful.data.corpora.word_lists import FILLERS, NEGATIVE, POSITIVE, RANKED, TOPICS
from heedful.data.dataset import NumberedRow, corpora, pick_split, rows_sha256

SEED = 0
SIZES = {"train": 2000, "dev": 400, "test": 400}
SHORTEST, LONGEST = 8, 24  # tokens
SENTIMENT = ("negative", "positive")

Rng = np.random.Generator
Cues = list[tuple[str, bool]]  # cue words, each with: is it part of the rationale?
CueSampler = Callable[[Rng, int], Cues]


@dataclass(frozen=True)
class SyntheticSource:
    """One split of a synthetic corpus; `draw` chooses the cue words of a text of a class."""

    name: str
    split: str
    classes: tuple[str, ...]
    draw: CueSampler

    def sha256(self) -> str:
        """Hex digest of the rows as canonical JSON."""
        return rows_sha256(self)

    def __iter__(self) -> Iterator[NumberedRow]:
        for index in range(SIZES[self.split]):
            rng = generator(SEED, f"{self.name}/{self.split}", index)
            label = index % len(self.classes)
            tokens, rationale = _scatter_cues(self.draw(rng, label), rng)
            row = {"text": " ".join(tokens), "label": self.classes[label]}
            yield index + 1, {**row, "tokens": tokens, "rationale": rationale}


def _scatter_cues(cues: Cues, rng: Rng) -> tuple[list[str], list[int]]:
    """Put the cues at random positions among fillers; also return those of decisive cues."""
    length = int(rng.integers(SHORTEST, LONGEST + 1))
    tokens = [FILLERS[i] for i in rng.integers(len(FILLERS), size=length).tolist()]
    places = rng.permutation(length)[: len(cues)].tolist()
    for place, (cue, _) in zip(places, cues, strict=True):
        tokens[place] = cue
    decisive = [place for place, (_, decides) in zip(places, cues, strict=True) if decides]
    return tokens, sorted(decisive)


def _choose_word(words: Sequence[str], rng: Rng) -> str:
    return words[int(rng.integers(len(words)))]


@corpora.register("synthetic:needle")
@dataclass(frozen=True)
class Needle:
    """One word of praise or blame among fillers decides; the rationale is that word."""

    splits: tuple[str, ...] = field(default=tuple(SIZES), init=False)

    def __call__(self, split: str) -> SyntheticSource:
        return _build_source("synthetic:needle", split, SENTIMENT, draw=draw_needle)


@corpora.register("synthetic:votes")
@dataclass(frozen=True)
class Votes:
    """Three, five or seven words of praise and blame; the majority decides.

    The rationale is all of them, the outvoted ones too: removing any changes the margin.
    """

    splits: tuple[str, ...] = field(default=tuple(SIZES), init=False)

    def __call__(self, split: str) -> SyntheticSource:
        return _build_source("synthetic:votes", split, SENTIMENT, draw=draw_votes)


@corpora.register("synthetic:priority")
@dataclass(frozen=True)
class Priority:
    """Three to five words of different rank; the word of highest rank decides.

    There are ten ranks of praise and ten of blame (`word_lists.RANKED`). In half of the texts all
    other words, of the ranks directly below, contradict the highest word; in the other half all
    but one agree with it: a majority is as often wrong as right. The rationale is the highest word.

    Attention solves this by scores that grow with rank. A sum of word weights could too, since
    Σ αₜ·vₜ has the sign of Σ exp(sₜ)·vₜ; but its weights would have to double from rank to rank.
    With weights of ordinary size, as uniform attention learns, it is right on 2 in 3.
    """

    splits: tuple[str, ...] = field(default=tuple(SIZES), init=False)

    def __call__(self, split: str) -> SyntheticSource:
        return _build_source("synthetic:priority", split, SENTIMENT, draw=draw_priority)


@corpora.register("synthetic:topics")
@dataclass(frozen=True)
class Topics:
    """One word determines which of four topics a text has; the rationale is that word."""

    splits: tuple[str, ...] = field(default=tuple(SIZES), init=False)

    def __call__(self, split: str) -> SyntheticSource:
        return _build_source("synthetic:topics", split, tuple(TOPICS), draw=draw_topics)


def _build_source(
    name: str, split: str, classes: tuple[str, ...], *, draw: CueSampler
) -> SyntheticSource:
    return SyntheticSource(name, pick_split(split, SIZES, name=name), classes, draw)


def draw_needle(rng: Rng, label: int) -> Cues:
    """One cue of the label's polarity."""
    return [(_choose_word((NEGATIVE, POSITIVE)[label], rng), True)]


def draw_votes(rng: Rng, label: int) -> Cues:
    """An odd number of cues, the majority of the label's polarity."""
    total = int(rng.choice((3, 5, 7)))
    winning = int(rng.integers(total // 2 + 1, total + 1))
    polarities = [label] * winning + [1 - label] * (total - winning)
    return [(_choose_word((NEGATIVE, POSITIVE)[polarity], rng), True) for polarity in polarities]


def draw_priority(rng: Rng, label: int) -> Cues:
    """The deciding cue, and cues of the ranks directly below it."""
    below = int(rng.integers(2, 5))
    top = int(rng.integers(below, len(RANKED["positive"])))
    allies = below - 1 if rng.random() < 0.5 else 0
    polarities = [label] * allies + [1 - label] * (below - allies)
    ranks = rng.permutation(np.arange(top - below, top)).tolist()
    others = [
        (RANKED[SENTIMENT[polarity]][rank], False)
        for rank, polarity in zip(ranks, polarities, strict=True)
    ]
    return [(RANKED[SENTIMENT[label]][top], True), *others]


def draw_topics(rng: Rng, label: int) -> Cues:
    """One cue of the label's topic."""
    return [(_choose_word(tuple(TOPICS.values())[label], rng), True)]
