"""The patterns that split a text into words, contractions and punctuation."""

import re
from functools import cache, lru_cache
from unicodedata import category

MAX_CACHED_LENGTH = 40  # characters; longer pieces are unlikely to occur again


@cache
def word_patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Words only, and words with punctuation: "don't" → do n't, "film's" → film 's, as spaCy does.

    Python's \\w excludes combining marks, without which Hindi or decomposed letters would be split.

    >>> word_patterns()[1].findall("It isn't.")
    ['It', 'is', "n't", '.']
    """
    marks = "".join(chr(c) for c in range(0x300, 0x1F000) if category(chr(c))[0] == "M")
    word = f"[\\w{re.escape(marks)}]"
    split = rf"(?i:{word}+?(?=n[’']t\b)|n[’']t\b)|(?<=\w)[’']{word}+|{word}+|[^\w\s]"
    return re.compile(f"{word}+"), re.compile(split)


def split_words(text: str) -> list[str]:
    """The matches of the second pattern, cached for pieces seen before.

    No match spans white space, so the text is split there first.

    >>> split_words("It isn't, is it?")
    ['It', 'is', "n't", ',', 'is', 'it', '?']
    """
    return [
        part
        for piece in text.split()
        for part in (_cached_parts if len(piece) <= MAX_CACHED_LENGTH else _parts)(piece)
    ]


def _parts(piece: str) -> tuple[str, ...]:
    return tuple(word_patterns()[1].findall(piece))


_cached_parts = lru_cache(maxsize=100_000)(_parts)
