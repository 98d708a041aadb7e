"""How a paper cleaned its texts: which words are left of a row, before any row is left out."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from heedful.core.word_split import split_words
from heedful.data.cleaning.split_ratios import Shares
from heedful.data.sources.row_schema import ValidRow

KERAS_FILTER = str.maketrans(dict.fromkeys('!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n', " "))
NUMBER_TOKEN = "qqq"  # stands for every word with a digit in it
DEIDENTIFIED_TOKEN = "<DE>"  # stands for what was taken out of clinical notes: [**Hospital 12**]
OPEN, SHUT = ("[", "*", "*"), ("*", "*", "]")
FINAL_PUNCTUATION = (".", "?")

IndexedWords = list[tuple[str, int]]  # words, each with the number of the token it comes from


WORD_SPLITTERS: dict[str, Callable[[str], list[str]]] = {
    "space": str.split,
    "signs": split_words,
    "letters": lambda text: re.sub(r"\W", " ", text).split(),
    "keras": lambda text: text.lower().translate(KERAS_FILTER).split(),
}


SPLITTER_LABELS = {
    "space": "words at white space",
    "signs": "words and signs",
    "letters": "words only",
    "keras": "words as Keras has them",
}
PUNCTUATION_LABELS = {"once": "repeated signs once", "last": "signs between words dropped"}


@dataclass(frozen=True)
class Cleaning:
    """One paper's cleaning of one data set, by its public name.

    `split` says what words are: at white "space", "signs" and contractions apart (in the place of
    spaCy), "letters" alone, or as the word sequences of "keras". `signs` says what becomes of
    signs in a row: all are kept, each stands "once", or those go that a word follows ("last").
    Rows are kept that have more than `longer_than` and fewer than `shorter_than` words; where
    `own_ends` is set, a bound that is not named is the split's own shortest or longest text,
    which goes too. `fewer_than` bounds words before `shares` are drawn. `min_df` is how many texts
    a word of the vocabulary occurs in.
    """

    name: str
    split: Literal["space", "signs", "letters", "keras"] = "signs"
    lower: bool = True
    numbers: bool = False
    signs: Literal["all", "once", "last"] = "all"
    hidden: bool = False
    closing: bool = True
    longer_than: int | None = None
    shorter_than: int | None = None
    own_ends: bool = False
    fewer_than: int | None = None
    shares: Shares | None = None
    min_df: int = 1

    def __str__(self) -> str:
        """What it does, in one line."""
        return ", ".join((*_describe_words(self), *_describe_rows(self)))

    def words(self, text: str) -> list[str]:
        """The words of one text.

        >>> Cleaning("mine", numbers=True, signs="last").words("Won 7-2, isn't that great!!")
        ['won', 'qqq', 'qqq', 'is', 'n', "'", 't', 'that', 'great', '!']
        """
        return [word for word, _ in self._told([text])]

    def row(self, row: ValidRow) -> ValidRow:
        """The row with its words cleaned; what people marked goes along with its tokens."""
        marked = row.rationale is not None or row.word_scores is not None
        tokens = row.tokens or (row.text.split() if marked else (row.text,))
        told = self._told(tokens)
        words = tuple(word for word, _ in told)
        return replace(
            row,
            text=" ".join(words),
            tokens=words,
            rationale=_carry_rationale(row.rationale, told),
            pair=None if row.pair is None else " ".join(self.words(row.pair)),
            word_scores=row.word_scores and tuple(row.word_scores[at] for _, at in told),
        )

    def _told(self, tokens: Sequence[str]) -> IndexedWords:
        split = WORD_SPLITTERS[self.split]
        told = [(word, at) for at, token in enumerate(tokens) for word in split(token)]
        if self.hidden:
            told = list(_replace_deidentified(told))
        if self.lower:
            told = [(word if word == DEIDENTIFIED_TOKEN else word.lower(), at) for word, at in told]
        if self.numbers:
            told = [
                (NUMBER_TOKEN if any(map(str.isdigit, word)) else word, at) for word, at in told
            ]
        if self.signs != "all":
            told = list(
                (_collapse_repeats if self.signs == "once" else _drop_inner_punctuation)(told)
            )
        if not self.closing and told and told[-1][0] in FINAL_PUNCTUATION:
            told.pop()
        return told


def _describe_words(one: Cleaning) -> Iterator[str]:
    yield SPLITTER_LABELS[one.split]
    if one.lower:
        yield "lower case"
    if one.numbers:
        yield f"digits → {NUMBER_TOKEN}"
    if one.signs != "all":
        yield PUNCTUATION_LABELS[one.signs]
    if one.hidden:
        yield f"[**…**] → {DEIDENTIFIED_TOKEN}"
    if not one.closing:
        yield "no last sign"


def _describe_rows(one: Cleaning) -> Iterator[str]:
    if one.fewer_than is not None:
        yield f"< {one.fewer_than} words"
    if one.shares is not None:
        yield str(one.shares)
    if one.longer_than is not None or one.own_ends:
        yield f"> {'the shortest' if one.longer_than is None else one.longer_than}"
    if one.shorter_than is not None or one.own_ends:
        yield f"< {'the longest' if one.shorter_than is None else one.shorter_than}"
    yield f"min. {one.min_df} text{'s' * (one.min_df > 1)} a word"


def count_words(row: ValidRow) -> int:
    """How many words a cleaned row has; none where its second text has none."""
    return 0 if row.pair == "" else len(row.tokens or ())


def _carry_rationale(
    rationale: tuple[int, ...] | None, told: IndexedWords
) -> tuple[int, ...] | None:
    if rationale is None:
        return None
    marked = set(rationale)
    return tuple(number for number, (_, at) in enumerate(told) if at in marked)


def _replace_deidentified(told: IndexedWords) -> Iterator[tuple[str, int]]:
    """One word in the place of each bracket [** … **]; in one pass, however many never close."""
    words = [word for word, _ in told]
    shuts = [at for at in range(len(words) - 2) if tuple(words[at : at + 3]) == SHUT]
    at, nearest = 0, 0
    while at < len(words):
        while nearest < len(shuts) and shuts[nearest] < at + len(OPEN):
            nearest += 1
        if nearest < len(shuts) and tuple(words[at : at + 3]) == OPEN:
            yield DEIDENTIFIED_TOKEN, told[at][1]
            at = shuts[nearest] + len(SHUT)
        else:
            yield told[at]
            at += 1


def _is_punctuation(word: str) -> bool:
    return len(word) == 1 and not (word.isascii() and word.isalnum())


def _collapse_repeats(told: IndexedWords) -> Iterator[tuple[str, int]]:
    """Of a sign that comes several times in a row, the first."""
    yield from told[:1]
    for (before, _), (word, at) in pairwise(told):
        if word != before or not _is_punctuation(word):
            yield word, at


def _drop_inner_punctuation(told: IndexedWords) -> Iterator[tuple[str, int]]:
    """Signs go where white space follows, as in 20News: of a run, space included, the last stays.

    So signs inside of a word stay, apart, and the sign that ends the text.
    """
    for number, (word, at) in enumerate(told):
        ends = number + 1 == len(told)
        parts = re.findall(r"\w+|\W+", word)
        for place, part in enumerate(parts):
            trailing = place + 1 == len(parts) and not ends
            if re.match(r"\w", part):
                yield part, at
            elif not trailing:
                yield part[-1], at
