"""How a paper cleaned its texts: the words that are kept of a row."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from heedful.core.word_split import split_words
from heedful.data.cleaning.split_ratios import Shares
from heedful.data.sources.row_schema import ValidRow

KERAS_FILTER = str.maketrans(dict.fromkeys('!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n', " "))
NUMBER_TOKEN = "qqq"  # noqa: S105 - replaces every word with a digit
DEIDENTIFIED_TOKEN = "<DE>"  # noqa: S105 - replaces [**Hospital 12**] in clinical notes
OPEN, SHUT = ("[", "*", "*"), ("*", "*", "]")
FINAL_PUNCTUATION = (".", "?")

IndexedWords = list[tuple[str, int]]  # words, each with the index of the token it comes from

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

    `split` is how words are split: at white "space", with "signs" (punctuation) and contractions
    apart (in place of spaCy), "letters" only, or as by "keras". `signs` is what happens to repeated
    punctuation: "all" is kept, each mark "once", or only the "last" mark before a word. `hidden`
    replaces de-identified spans, and `closing` keeps the final punctuation.
    Rows are kept that have more than `longer_than` and fewer than `shorter_than` words; with
    `own_ends`, a bound that is not given is the length of the split's shortest or longest text,
    exclusive. `fewer_than` bounds words before `shares` are drawn. `min_df` is the minimum number
    of texts in which a word of the vocabulary occurs.
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

    def clean_text(self, text: str) -> list[str]:
        """The words of one text.

        >>> Cleaning("mine", numbers=True, signs="last").clean_text("Won 7-2, isn't that great!!")
        ['won', 'qqq', 'qqq', 'is', 'n', "'", 't', 'that', 'great', '!']
        """
        return [word for word, _ in self._clean_tokens([text])]

    def clean_row(self, row: ValidRow) -> ValidRow:
        """The row with its words cleaned; annotations follow their tokens."""
        annotated = row.rationale is not None or row.word_scores is not None
        tokens = row.tokens or (row.text.split() if annotated else (row.text,))
        indexed = self._clean_tokens(tokens)
        words, rationale = tuple(word for word, _ in indexed), row.rationale
        if rationale is not None:
            marked = set(rationale)
            rationale = tuple(number for number, (_, at) in enumerate(indexed) if at in marked)
        return replace(
            row,
            text=" ".join(words),
            tokens=words,
            rationale=rationale,
            pair=None if row.pair is None else " ".join(self.clean_text(row.pair)),
            word_scores=row.word_scores and tuple(row.word_scores[at] for _, at in indexed),
        )

    def _clean_tokens(self, tokens: Sequence[str]) -> IndexedWords:
        split = WORD_SPLITTERS[self.split]
        words = [(word, at) for at, token in enumerate(tokens) for word in split(token)]
        if self.hidden:
            words = list(_replace_deidentified(words))
        if self.lower:
            words = [
                (word if word == DEIDENTIFIED_TOKEN else word.lower(), at) for word, at in words
            ]
        if self.numbers:
            words = [
                (NUMBER_TOKEN if any(map(str.isdigit, word)) else word, at) for word, at in words
            ]
        if self.signs != "all":
            reduce = _collapse_repeats if self.signs == "once" else _drop_inner_punctuation
            words = list(reduce(words))
        if not self.closing and words and words[-1][0] in FINAL_PUNCTUATION:
            words.pop()
        return words


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
    """The number of words of a cleaned row; 0 if the second text of a pair has none."""
    return 0 if row.pair == "" else len(row.tokens or ())


def _replace_deidentified(indexed: IndexedWords) -> Iterator[tuple[str, int]]:
    """Replace each bracket [** … **] by one word, in linear time even if many never close."""
    words = [word for word, _ in indexed]
    shuts = [at for at in range(len(words) - 2) if tuple(words[at : at + 3]) == SHUT]
    at, nearest = 0, 0
    while at < len(words):
        while nearest < len(shuts) and shuts[nearest] < at + len(OPEN):
            nearest += 1
        if nearest < len(shuts) and tuple(words[at : at + 3]) == OPEN:
            yield DEIDENTIFIED_TOKEN, indexed[at][1]
            at = shuts[nearest] + len(SHUT)
        else:
            yield indexed[at]
            at += 1


def _is_punctuation(word: str) -> bool:
    return len(word) == 1 and not (word.isascii() and word.isalnum())


def _collapse_repeats(words: IndexedWords) -> Iterator[tuple[str, int]]:
    """Keep the first of a repeated punctuation mark."""
    yield from words[:1]
    for (before, _), (word, at) in pairwise(words):
        if word != before or not _is_punctuation(word):
            yield word, at


def _drop_inner_punctuation(words: IndexedWords) -> Iterator[tuple[str, int]]:
    """Keep the last character of every run of punctuation and white space, as for 20News.

    So punctuation before white space is dropped; inside a word or at the end of the text it stays.
    """
    for number, (word, at) in enumerate(words):
        ends = number + 1 == len(words)
        parts = re.findall(r"\w+|\W+", word)
        for place, part in enumerate(parts):
            trailing = place + 1 == len(parts) and not ends
            if re.match(r"\w", part):
                yield part, at
            elif not trailing:
                yield part[-1], at
