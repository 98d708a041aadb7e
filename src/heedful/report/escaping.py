"""Other people's text on our pages and in the terminal."""


def escape_control_characters(text: str) -> str:
    """Control characters could move the cursor or hide words; show that something was there.

    >>> escape_control_characters("a\\x1b[2Jb")
    'a\ufffd[2Jb'
    """
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def shorten_word(word: str, most: int) -> str:
    """A word, cut where it is very long.

    >>> shorten_word("incomprehensible", 8)
    'incompr…'
    """
    return word if len(word) <= most else f"{word[: most - 1]}…"
