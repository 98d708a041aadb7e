"""Whole attention maps of a few texts, kept so that a report can show every layer and head."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from heedful.core.batch import Encoded
from heedful.models.batch_context import BatchContext

MAP_TEXTS = 3  # the first of the data that are short enough
MAX_MAP_TOKENS = 64  # tokens


@dataclass(frozen=True, slots=True)
class AttentionMapRow:
    """One head's attention over one text: a row of weights per token, one after the other."""

    instance: int
    layer: int
    head: int
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    weights: tuple[float, ...]


def choose_map_instances(encoded: Sequence[Encoded]) -> frozenset[int]:
    """Which texts of the data's first job have their maps kept."""
    if not encoded or min(one.index for one in encoded) > 0:
        return frozenset()
    short = sorted(one.index for one in encoded if len(one.ids) <= MAX_MAP_TOKENS)
    return frozenset(short[:MAP_TEXTS])


def attention_map_rows(
    context: BatchContext, encoded: Sequence[Encoded], instances: frozenset[int]
) -> Iterator[AttentionMapRow]:
    """Every head's map of the chosen texts in the sitting; none without layers."""
    for row, one in enumerate(encoded):
        if one.index not in instances or one.pieces is None:
            continue
        here = context.batch.present[row]
        for layer, maps in enumerate(context.forward.maps):
            square = maps.shape[2] == len(here)
            queries = one.pieces if square else tuple(map(str, range(maps.shape[2])))
            for head, weights in enumerate(maps[row]):
                chosen = (weights[here] if square else weights)[:, here]
                flat = tuple(round(w, 4) for w in chosen.flatten().tolist())
                yield AttentionMapRow(one.index, layer, head, queries, one.pieces, flat)
