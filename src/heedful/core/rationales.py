"""What people said of a text's words: which of them decide, and how strongly each one speaks."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from heedful.core.values import Example

PAIR_NOT_ALIGNED = (
    "what people marked in one text of a pair is not read where a model explains both"
)
WORDS_NOT_FOUND = (
    "the words that the model reads cannot be found among the tokens that people marked"
)


@dataclass(frozen=True, slots=True)
class WordAnnotations:
    """For each word of a text whether people marked it, and the number they gave it.

    Each is None where the row does not tell; `why` says so where it told and cannot be read.
    """

    marked: tuple[bool, ...] | None = None
    scores: tuple[float, ...] | None = None
    why: str = ""


def align_annotations(example: Example, words: Sequence[str]) -> WordAnnotations:
    """What a row tells of the words as a model reads them.

    Rows tell it of their `tokens`; without these, of what white space parts. A word that a model
    has made of a part of a token is marked where the token is, and has its score. Of a pair they
    tell the first text's, and are read where a model explains that one alone.

    >>> people_of(Example(0, "isn't bad", 1, rationale=(1,)), ("is", "n't", "bad")).marked
    (False, False, True)
    """
    if example.rationale is None and example.word_scores is None:
        return WordAnnotations()
    tokens = annotated_tokens(example)
    places = _token_ranges(words, tokens)
    if places is None:
        return WordAnnotations(why=WORDS_NOT_FOUND if example.pair is None else PAIR_NOT_ALIGNED)
    marked, scores = example.rationale, example.word_scores
    inside = set(marked or ())
    return WordAnnotations(
        None if marked is None else tuple(not inside.isdisjoint(one) for one in places),
        None if scores is None else tuple(scores[one[0]] for one in places),
    )


def annotated_tokens(example: Example) -> tuple[str, ...]:
    """The tokens that a row's rationale counts."""
    return tuple(example.text.split()) if example.tokens is None else example.tokens


def _token_ranges(words: Sequence[str], tokens: Sequence[str]) -> list[range] | None:
    """The tokens that each word covers any of; None where a word is not found in its turn."""
    if tuple(words) == tuple(tokens[: len(words)]):
        return [range(place, place + 1) for place in range(len(words))]
    lowered = [token.lower() for token in tokens]
    text = " ".join(lowered)
    starts = list(accumulate((len(token) + 1 for token in lowered[:-1]), initial=0))
    found, at = [], 0
    for word in map(str.lower, words):
        start = text.find(word, at)
        # a model may drop signs; where it drops letters, the word may have been found too early
        if not word or start < 0 or any(sign.isalnum() for sign in text[at:start]):
            return None
        at = start + len(word)
        found.append(range(bisect_right(starts, start) - 1, bisect_right(starts, at - 1)))
    return found
