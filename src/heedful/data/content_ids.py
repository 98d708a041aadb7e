"""Ids of texts: equal for texts that say the same, whatever their row, label and annotations."""

import json
from hashlib import blake2b

from heedful.core.values import Example


def content_id(example: Example) -> str:
    """The digest of what a model reads of a text: its words, its question, its candidates.

    >>> content_id(Example(0, "a fine  film", 1)) == content_id(Example(7, "a fine film", 0))
    True
    """
    words = example.text.split() if example.tokens is None else list(example.tokens)
    pair = None if example.pair is None else example.pair.split()
    return _digest([words, pair, example.candidates])


def cluster_id(example: Example) -> str | None:
    """The digest of the name of the cluster, which may be private; None without a cluster."""
    return None if example.cluster is None else _digest(example.cluster)


def _digest(content: object) -> str:
    return blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()
