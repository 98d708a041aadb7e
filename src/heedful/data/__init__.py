"""Where texts come from: files, the hub, samples and synthetic corpora; and texts in batches."""

from heedful.data import counting, movies, questions, synthetic  # noqa: F401 - registers their corpora
from heedful.data.base import Dataset, corpora
from heedful.data.batching import batches
from heedful.data.resolve import read, splits

__all__ = ["Dataset", "batches", "corpora", "read", "splits"]
