"""Other people's text on our page."""


def escape_control_characters(text: str) -> str:
    """Control characters could move the cursor or hide words; show that something was there.

    >>> escape_control_characters("a\\x1b[2Jb")
    'a\ufffd[2Jb'
    """
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)
