"""Data: files, the hub, sample and synthetic corpora; and batches of texts."""

from heedful.data.batching import batches
from heedful.data.corpora import movies, synthetic  # noqa: F401 - register
from heedful.data.dataset import Dataset, corpora
from heedful.data.read import read, splits

__all__ = ["Dataset", "batches", "corpora", "read", "splits"]
