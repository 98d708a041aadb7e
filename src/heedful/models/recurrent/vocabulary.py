"""Tokenizer and vocabulary of the 2019 papers: split, lower-case, count, number the words."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Literal

from heedful.core.errors import ConfigError, DataError
from heedful.core.settings import check_on_init
from heedful.core.word_split import word_patterns

PAD, UNKNOWN, START, END = "<PAD>", "<UNK>", "<SOS>", "<EOS>"
SPECIAL_TOKENS = (PAD, UNKNOWN, START, END)

MOST_WORDS = 2_500_000  # more than any published word vectors have; to train takes 12 GB

_DIGIT = re.compile(r"\d")


@check_on_init
@dataclass(frozen=True)
class WordTokenizer:
    """Splits a text into words.

    `punctuation="drop"` is the papers' cleaning of SST (every non-word character becomes a
    space); `digits="qqq"` is how they treat numbers in 20News, MIMIC and SNLI.
    """

    lower: bool = True
    punctuation: Literal["split", "drop"] = "split"
    digits: Literal["keep", "qqq"] = "keep"

    def __call__(self, text: str, most: int | None = None) -> tuple[str, ...]:
        """The words of the text as written, at most the first `most` of them.

        >>> WordTokenizer()("It isn't Bond's best.")
        ('It', 'is', "n't", 'Bond', "'s", 'best', '.')
        >>> WordTokenizer(punctuation="drop")("It isn't Bond's best.")
        ('It', 'isn', 't', 'Bond', 's', 'best')
        """
        return tuple(text[start:end] for start, end in islice(self.spans(text), most))

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Start and end of each word in the text."""
        words_only, with_punctuation = word_patterns()
        pattern = words_only if self.punctuation == "drop" else with_punctuation
        return (match.span() for match in pattern.finditer(text))

    def normalise(self, word: str) -> str:
        """The form of a word in the vocabulary.

        >>> WordTokenizer(digits="qqq").normalise("B2B")
        'qqq'
        """
        if self.digits == "qqq" and _DIGIT.search(word):
            return "qqq"
        return word.lower() if self.lower else word


@dataclass(frozen=True)
class Vocabulary:
    """Words by id: 0 padding, 1 unknown, 2 start, 3 end, then those of the training texts."""

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.words[: len(SPECIAL_TOKENS)] != SPECIAL_TOKENS:
            raise ConfigError(f"A vocabulary starts with {SPECIAL_TOKENS}, not {self.words[:4]}.")
        if len(self.numbers) != len(self.words):
            raise ConfigError("A vocabulary holds every word once; this one repeats some.")

    @classmethod
    def from_texts(cls, texts: Iterable[Iterable[str]], *, min_df: int = 1) -> "Vocabulary":
        """Keep words found in at least `min_df` texts, most frequent first.

        >>> Vocabulary.from_texts([["good", "film"], ["good"]], min_df=2).words[4:]
        ('good',)
        """
        frequency = Counter(word for words in texts for word in set(words))
        kept = sorted(
            (word for word, df in frequency.items() if df >= min_df and word not in SPECIAL_TOKENS),
            key=lambda word: (-frequency[word], word),
        )
        if len(kept) > MOST_WORDS:
            raise DataError(
                f"The training texts have {len(kept)} different words at --min-df {min_df}; at "
                f"most {MOST_WORDS} can be learnt. Give a larger --min-df, or fewer texts."
            )
        return cls((*SPECIAL_TOKENS, *kept))

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The id of each word."""
        return {word: number for number, word in enumerate(self.words)}

    def number(self, word: str) -> int:
        """The id of a word, or that of the unknown word."""
        number = self.numbers.get(word, 1)
        return number if number >= len(SPECIAL_TOKENS) else 1  # "<PAD>" in a text is not padding

    def __len__(self) -> int:
        return len(self.words)
