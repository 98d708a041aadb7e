"""How long work tells the outside how far it is."""

from collections.abc import Callable

Progress = Callable[[int, int, str], None]
"""Called with what is done, what there is to do, and a few words."""


def silent(done: int, total: int, words: str) -> None:
    """Tell nobody."""
