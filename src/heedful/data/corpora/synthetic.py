"""Corpora whose decisive words are known by construction.

Every row is drawn from its own random stream (seed, corpus, split, index), so nothing is stored
and any row can be generated on its own. Labels alternate, so every corpus is balanced.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from heedful.core.rng import generator
from heedful.data.corpora import word_lists as words
from heedful.data.dataset import Corpus, NumberedRow, corpora

SEED = 0
SIZES = {"train": 2000, "dev": 400, "test": 400}
SHORTEST, LONGEST = 8, 24  # tokens
SENTIMENT = ("negative", "positive")
BLAME_AND_PRAISE = (words.NEGATIVE, words.POSITIVE)
COUNTING_LABELS = ("more", "not more")
ASKED_SYMBOL_RATE = 0.25  # probability of each of the two symbols; the others share the rest

Rng = np.random.Generator
Row = dict[str, object]
RowSampler = Callable[[Rng, int], Row]
Cues = list[tuple[str, bool]]  # cue words, each with: is it part of the rationale?


def register_synthetic(name: str) -> Callable[[RowSampler], RowSampler]:
    """Register a function that draws rows as a corpus; its docstring describes the corpus."""

    def register(draw_row: RowSampler) -> RowSampler:
        def build_corpus() -> Corpus:
            rows = {split: partial(_draw_rows, name, split, draw_row) for split in SIZES}
            return Corpus(name, rows)

        build_corpus.__doc__ = draw_row.__doc__
        corpora.register(name)(build_corpus)
        return draw_row

    return register


def _draw_rows(name: str, split: str, draw_row: RowSampler) -> Iterator[NumberedRow]:
    for index in range(SIZES[split]):
        yield index + 1, draw_row(generator(SEED, f"{name}/{split}", index), index)


@register_synthetic("synthetic:needle")
def draw_needle(rng: Rng, index: int) -> Row:
    """One word of praise or blame among fillers decides; the rationale is that word."""
    label = index % 2
    word = _choose_word(BLAME_AND_PRAISE[label], rng)
    return _build_row([(word, True)], SENTIMENT[label], rng)


@register_synthetic("synthetic:votes")
def draw_votes(rng: Rng, index: int) -> Row:
    """Three, five or seven words of praise and blame; the majority decides.

    The rationale is all of them, the outvoted ones too: removing any changes the margin.
    """
    label, total = index % 2, int(rng.choice((3, 5, 7)))
    winning = int(rng.integers(total // 2 + 1, total + 1))
    polarities = [label] * winning + [1 - label] * (total - winning)
    cues = [(_choose_word(BLAME_AND_PRAISE[polarity], rng), True) for polarity in polarities]
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
    top = int(rng.integers(below, len(words.RANKED["positive"])))
    allies = below - 1 if rng.random() < 0.5 else 0
    polarities = [label] * allies + [1 - label] * (below - allies)
    ranks = rng.permutation(np.arange(top - below, top)).tolist()
    drawn = zip(ranks, polarities, strict=True)
    others = [(words.RANKED[SENTIMENT[polarity]][rank], False) for rank, polarity in drawn]
    return _build_row([(words.RANKED[SENTIMENT[label]][top], True), *others], SENTIMENT[label], rng)


@register_synthetic("synthetic:topics")
def draw_topics(rng: Rng, index: int) -> Row:
    """One word determines which of four topics a text has; the rationale is that word."""
    topic, known = tuple(words.TOPICS.items())[index % len(words.TOPICS)]
    return _build_row([(_choose_word(known, rng), True)], topic, rng)


@register_synthetic("synthetic:questions")
def draw_question_row(rng: Rng, index: int) -> Row:
    """Where is one of two to four people? The rationale is the place after the name.

    The people are in as many different places, among fillers. The answer occurs nowhere else.
    """
    answer = words.PLACES[index % len(words.PLACES)]
    count = int(rng.integers(2, 5))
    people = rng.permutation(words.PEOPLE)[:count].tolist()
    elsewhere = [place for place in words.PLACES if place != answer]
    others = rng.permutation(elsewhere)[: count - 1].tolist()
    asked, tokens, rationale = int(rng.integers(count)), list[str](), list[int]()
    for number, person in enumerate(people):
        few = rng.integers(2, 5)  # enough fillers that no text is repeated
        tokens += [words.FILLERS[i] for i in rng.integers(len(words.FILLERS), size=few).tolist()]
        place = answer if number == asked else others.pop()
        rationale += [len(tokens) + 1] if number == asked else []
        tokens += [person, place]
    return {
        "paragraph": " ".join(tokens),
        "question": f"where is {people[asked]}",
        "label": answer,
        "tokens": tokens,
        "rationale": rationale,
    }


@register_synthetic("synthetic:counting")
def draw_counting_row(rng: Rng, index: int) -> Row:
    """Is the first of two symbols more frequent? The rationale is the positions of both.

    The toy task of De Cao et al. (2020): the text is drawn over the alphabet of the two symbols,
    each of which has probability ¼ at every position.
    """
    label = index % 2
    while True:  # until the answer is the label and at least one of the two symbols occurs
        asked, drawn = draw_counting(rng)
        first, second = (int((drawn == symbol).sum()) for symbol in asked)
        if int(first <= second) == label and first + second:
            break
    tokens = [words.SYMBOLS[number] for number in drawn.tolist()]
    return {
        "paragraph": " ".join(tokens),
        "question": " ".join(words.SYMBOLS[number] for number in asked),
        "label": COUNTING_LABELS[label],
        "tokens": tokens,
        "rationale": np.isin(drawn, asked).nonzero()[0].tolist(),
    }


def draw_counting(rng: Rng) -> tuple[list[int], NDArray[np.int64]]:
    """Draw two symbols and a text, as indices."""
    asked = rng.permutation(len(words.SYMBOLS))[:2].tolist()
    share = np.full(len(words.SYMBOLS), (1 - 2 * ASKED_SYMBOL_RATE) / (len(words.SYMBOLS) - 2))
    share[asked] = ASKED_SYMBOL_RATE
    length = int(rng.integers(SHORTEST, LONGEST + 1))
    return asked, rng.choice(len(words.SYMBOLS), size=length, p=share)


def _build_row(cues: Cues, label: str, rng: Rng) -> Row:
    """Put the cues at random positions among fillers; the rationale is the decisive cues."""
    length = int(rng.integers(SHORTEST, LONGEST + 1))
    tokens = [words.FILLERS[i] for i in rng.integers(len(words.FILLERS), size=length).tolist()]
    places = rng.permutation(length)[: len(cues)].tolist()
    for place, (cue, _) in zip(places, cues, strict=True):
        tokens[place] = cue
    decisive = sorted(place for place, (_, decides) in zip(places, cues, strict=True) if decides)
    return {"text": " ".join(tokens), "label": label, "tokens": tokens, "rationale": decisive}


def _choose_word(known: Sequence[str], rng: Rng) -> str:
    return known[int(rng.integers(len(known)))]
