"""What a run keeps of single texts, so that a report can show them without the model."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.checks.base import Check, HasWordScores
from heedful.core.batch import Encoded
from heedful.core.records import WORD_SCORES
from heedful.core.values import Example
from heedful.data.content_ids import cluster_id, content_id
from heedful.models.batch_context import BatchContext
from heedful.results.tables import TEXT_ID_SCHEMA

Row = dict[str, Any]
MAP_TEXTS = 3  # the first of the data that are short enough
MAX_MAP_TOKENS = 64  # tokens


def word_score_rows(context: BatchContext, parts: Mapping[str, Check]) -> Iterator[Row]:
    """A row of `TEXT_SCHEMA` per text of the batch: its words, its class and scores by name.

    A word's score is the sum over its tokens; a score that no check computes is None.
    """
    scores, labels = {"attention": context.forward.attention}, context.subject.labels
    for check in parts.values():
        if isinstance(check, HasWordScores):
            scores |= check.word_scores(context)
    probabilities = context.forward.probabilities.amax(-1).tolist()
    for row, one in enumerate(context.texts):
        here = context.batch.present[row]
        yield {
            "instance": one.index,
            "predicted": labels[int(context.predicted[row])],
            "label": None if one.label < 0 else labels[one.label],
            "probability": probabilities[row],
            "words": one.words,
            **dict.fromkeys(WORD_SCORES),
            **{
                name: _sum_by_word(one, scores[name][row], here)
                for name in WORD_SCORES
                if name in scores
            },
            "question": one.question,
        }


def _sum_by_word(
    one: Encoded, scores: Float[Tensor, "T"], here: Bool[Tensor, "T"]
) -> tuple[float, ...]:
    words = [0.0] * len(one.words)
    for word, score in zip(one.word, scores[here].tolist(), strict=True):
        if word >= 0:
            words[word] += score
    return tuple(words)


def choose_map_instances(encoded: Sequence[Encoded]) -> frozenset[int]:
    """The texts whose attention maps are kept: short ones of the first job."""
    if not encoded or min(one.index for one in encoded) > 0:
        return frozenset()
    short = sorted(one.index for one in encoded if len(one.ids) <= MAX_MAP_TOKENS)
    return frozenset(short[:MAP_TEXTS])


def attention_map_rows(context: BatchContext, instances: frozenset[int]) -> Iterator[Row]:
    """A row of `MAP_SCHEMA` per layer and head of the chosen texts; none without layers.

    The weights of a head stand one query after the other.
    """
    for row, one in enumerate(context.texts):
        if one.index not in instances or one.pieces is None:
            continue
        here = context.batch.present[row]
        for layer, maps in enumerate(context.forward.maps):
            square = maps.shape[2] == len(here)
            for head, weights in enumerate(maps[row]):
                chosen = (weights[here] if square else weights)[:, here]
                yield {
                    "instance": one.index,
                    "layer": layer,
                    "head": head,
                    "queries": one.pieces if square else [str(n) for n in range(len(weights))],
                    "keys": one.pieces,
                    "weights": [round(weight, 4) for weight in chosen.flatten().tolist()],
                }


def text_id_table(examples: Iterable[Example]) -> pa.Table:
    """A row of `TEXT_ID_SCHEMA` for each text."""
    rows = [
        {"instance": one.index, "content": content_id(one), "cluster": cluster_id(one)}
        for one in examples
    ]
    return pa.Table.from_pylist(rows, TEXT_ID_SCHEMA)
