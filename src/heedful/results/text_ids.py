"""Which texts of a run are copies, and which belong together, from ids alone: no words are kept.

Ids are equal for texts that say the same, whatever their row, label and annotations.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Int64
from numpy.typing import NDArray

from heedful.core.values import Example
from heedful.results.tables import TEXT_ID_SCHEMA, PartitionedTable

Ids = NDArray[Any]  # of strings


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


@dataclass(frozen=True, eq=False)
class TextIds:
    """An id of the content of each text, and one of its cluster where the data has clusters."""

    content: Ids
    cluster: Ids | None = None

    @property
    def drawn_together(self) -> Ids:
        """What resamples draw: clusters, or distinct texts."""
        return self.content if self.cluster is None else self.cluster

    @property
    def distinct(self) -> int:
        """The number of distinct texts."""
        return len(np.unique(self.content))

    @property
    def clusters(self) -> int | None:
        """The number of clusters; None where the data has none."""
        return None if self.cluster is None else len(np.unique(self.cluster))


def text_id_table(examples: Iterable[Example]) -> pa.Table:
    """A row of `TEXT_ID_SCHEMA` for each text."""
    rows = [
        {"instance": one.index, "content": content_id(one), "cluster": cluster_id(one)}
        for one in examples
    ]
    return pa.Table.from_pylist(rows, TEXT_ID_SCHEMA)


def read_text_ids(
    ids: PartitionedTable | None, instances: Int64[np.ndarray, "n"]
) -> TextIds | None:
    """The ids of some texts, in their order; None where not every one of them has an id.

    So it is in runs of versions that kept none.
    """
    content, cluster = (np.full(len(instances), None, dtype=object) for _ in range(2))
    for table in ids.read() if ids else ():
        whose = table["instance"].to_numpy()
        known = np.isin(whose, instances)  # texts that were too short have ids too
        places = np.searchsorted(instances, whose[known])
        content[places] = _strings(table["content"])[known]
        cluster[places] = _strings(table["cluster"])[known]
    if not len(instances) or _any_missing(content):
        return None
    return TextIds(content.astype(str), None if _any_missing(cluster) else cluster.astype(str))


def _strings(column: pa.ChunkedArray) -> NDArray[Any]:
    return np.array(column.to_pylist(), dtype=object)


def _any_missing(ids: NDArray[Any]) -> bool:
    return any(one is None for one in ids.tolist())
