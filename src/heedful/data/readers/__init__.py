"""Readers of published data sets as their authors distribute them: `sst:PATH` and so on."""

from heedful.data.readers import (  # noqa: F401 - registers them
    adr,
    agnews,
    babi,
    cnn,
    imdb,
    mimic,
    newsgroups,
    snli,
    sst,
)
from heedful.data.readers.base import ReaderSplits, readers

__all__ = ["ReaderSplits", "open_reader", "readers"]


def open_reader(reader: str, path: str) -> ReaderSplits:
    """Open the splits that a reader finds at a path."""
    splits: ReaderSplits = readers[reader](f"{reader}:{path}", path)
    return splits
