"""Clusters of texts: the units that a bootstrap draws.

Texts of one cluster are drawn together, since what is true of one is likely true of the others:
copies of a text, sentences of a document. A cluster counts with the sums over its texts.

Clusters are drawn in the order of their ids. Ids that come from what the texts say, such as a
digest, give the same draws in any order of the texts.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float64, Int64
from numpy.typing import NDArray

from heedful.core.errors import ShapeError
from heedful.core.rng import generator

ClusterIds = NDArray[np.generic] | Sequence[str] | Sequence[int]  # one per text
WEIGHTS_PER_BLOCK = 2_000_000  # numbers: 16 MB, whatever the number of resamples


def cluster_codes(count: int, clusters: ClusterIds | None) -> Int64[np.ndarray, "n"]:
    """The number of each text's cluster, in the order of the ids; without ids, that of the text.

    >>> cluster_codes(3, ["b", "a", "b"])
    array([1, 0, 1])
    """
    if clusters is None:
        return np.arange(count)
    ids = np.asarray(clusters)
    if ids.shape != (count,):
        raise ShapeError(f"{count} texts need as many ids of clusters, not {ids.shape}.")
    return np.unique(ids, return_inverse=True)[1].astype(np.int64)


def count_clusters(clusters: ClusterIds | None, texts: Bool[np.ndarray, "n"]) -> int:
    """The number of clusters that some texts are in."""
    return int(texts.sum()) if clusters is None else len(np.unique(np.asarray(clusters)[texts]))


def sum_by_cluster(
    values: Float64[np.ndarray, "n K"], clusters: ClusterIds | None
) -> Float64[np.ndarray, "C K"]:
    """The sums of each column over the texts of each cluster, in the order of the ids.

    Without clusters each text is one. The texts of a cluster may stand in any order: equal values
    have equal sums, to the last bit.

    >>> sum_by_cluster(np.array([[1.0], [2.0], [4.0]]), ["b", "a", "b"])
    array([[2.],
           [5.]])
    """
    if clusters is None:
        return values
    codes = cluster_codes(len(values), clusters)
    count = int(codes.max(initial=-1)) + 1
    if count == len(values):
        return np.ascontiguousarray(values[np.argsort(codes)])
    sums = np.empty((count, values.shape[1]))
    for column, own in enumerate(values.T):
        order = np.lexsort((own, codes))  # a fixed order of addition
        sums[:, column] = np.bincount(codes[order], weights=own[order], minlength=count)
    return sums


def draw_weights(
    count: int, *, resamples: int, seed: int = 0
) -> Iterator[Float64[np.ndarray, "rows count"]]:
    """How often each cluster is drawn in each resample, some resamples at a time.

    All calls with one seed and one count draw alike, so that what they give is paired.

    >>> [block.sum(1) for block in draw_weights(5, resamples=3)]
    [array([5., 5., 5.])]
    """
    random, rows = generator(seed, "bootstrap"), max(1, WEIGHTS_PER_BLOCK // max(1, count))
    for start in range(0, resamples, rows):
        weights = np.empty((min(rows, resamples - start), count))
        for row in weights:
            row[:] = np.bincount(random.integers(count, size=count), minlength=count)
        yield weights


def sum_values(values: Float64[np.ndarray, "n"], clusters: ClusterIds) -> Float64[np.ndarray, "C"]:
    """The sum of the defined values of each cluster; NaN where a cluster has none.

    >>> sum_values(np.array([1.0, 2.0, np.nan]), ["a", "a", "b"])
    array([ 3., nan])
    """
    defined = ~np.isnan(values)
    both = np.stack((np.where(defined, values, 0.0), defined.astype(np.float64)), axis=1)
    sums = sum_by_cluster(both, clusters)
    return np.where(sums[:, 1] > 0, sums[:, 0], np.nan)
