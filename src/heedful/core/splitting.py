"""What a word of a text is: the patterns that part words, signs and contractions."""

import re
from functools import cache
from unicodedata import category


@cache
def word_patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Words alone, and words with punctuation: "don't" → do n't, "film's" → film 's, as spaCy does.

    Python's \\w leaves out combining marks, without which Hindi or decomposed letters fall apart.

    >>> word_patterns()[1].findall("It isn't.")
    ['It', 'is', "n't", '.']
    """
    marks = "".join(chr(c) for c in range(0x300, 0x1F000) if category(chr(c))[0] == "M")
    word = f"[\\w{re.escape(marks)}]"
    split = rf"(?i:{word}+?(?=n[’']t\b)|n[’']t\b)|(?<=\w)[’']{word}+|{word}+|[^\w\s]"
    return re.compile(f"{word}+"), re.compile(split)
