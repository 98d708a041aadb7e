"""Human annotations of the words of a text: a rationale, and scores of words."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from heedful.core.values import Example

PAIR_NOT_ALIGNED = "annotations of one text of a pair are not used where a model explains both"
WORDS_NOT_FOUND = "the words that the model reads cannot be found among the annotated tokens"


@dataclass(frozen=True, slots=True)
class WordAnnotations:
    """For each word of a text whether annotators marked it, and the score they gave it.

    A field is None where the row has no such annotation; `why` gives the reason where it has one
    that cannot be aligned with the words.
    """

    marked: tuple[bool, ...] | None = None
    scores: tuple[float, ...] | None = None
    why: str = ""


def align_annotations(example: Example, words: Sequence[str]) -> WordAnnotations:
    """The annotations of a row, aligned with the words as a model reads them.

    Annotations refer to the `tokens` of the row, or else to the text split at white space. A word
    that is part of a token takes over the mark and the score of the token. In a pair they refer to
    the first text, and are used where a model explains that text alone.

    >>> align_annotations(Example(0, "isn't bad", 1, rationale=(1,)), ("is", "n't", "bad")).marked
    (False, False, True)
    """
    if example.rationale is None and example.word_scores is None:
        return WordAnnotations()
    places = _token_ranges(words, annotated_tokens(example))
    if places is None:
        return WordAnnotations(why=WORDS_NOT_FOUND if example.pair is None else PAIR_NOT_ALIGNED)
    marked, scores = example.rationale, example.word_scores
    inside = set(marked or ())
    return WordAnnotations(
        None if marked is None else tuple(not inside.isdisjoint(tokens) for tokens in places),
        None if scores is None else tuple(scores[tokens[0]] for tokens in places),
    )


def annotated_tokens(example: Example) -> tuple[str, ...]:
    """The tokens that the rationale of a row refers to."""
    return tuple(example.text.split()) if example.tokens is None else example.tokens


def _token_ranges(words: Sequence[str], tokens: Sequence[str]) -> list[range] | None:
    """The range of tokens that each word overlaps; None if a word is not found in order."""
    if tuple(words) == tuple(tokens[: len(words)]):
        return [range(place, place + 1) for place in range(len(words))]
    lowered = [token.lower() for token in tokens]
    text = " ".join(lowered)
    starts = list(accumulate((len(token) + 1 for token in lowered[:-1]), initial=0))
    ranges, at = [], 0
    for word in map(str.lower, words):
        start = text.find(word, at)
        # a model may drop punctuation; where letters are skipped, the alignment is not reliable
        if not word or start < 0 or any(character.isalnum() for character in text[at:start]):
            return None
        at = start + len(word)
        ranges.append(range(bisect_right(starts, start) - 1, bisect_right(starts, at - 1)))
    return ranges
