"""Which texts of a run are copies, and which belong together, from ids alone: no words are kept."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Int64
from numpy.typing import NDArray

from heedful.results.tables import PartitionedTable

Ids = NDArray[Any]  # of strings


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
