"""Readers of published data sets as their authors distribute them: `sst:PATH` and so on."""

from heedful.data.dataset import Corpus
from heedful.data.readers import adr, agnews, babi, cnn, imdb, mimic, newsgroups, snli, sst
from heedful.data.readers.base import readers

REGISTERED = (adr, agnews, babi, cnn, imdb, mimic, newsgroups, snli, sst)  # by being imported
__all__ = ["open_reader", "readers"]


def open_reader(reader: str, path: str) -> Corpus:
    """Open the splits that a reader finds at a path."""
    corpus: Corpus = readers[reader](f"{reader}:{path}", path)
    return corpus
