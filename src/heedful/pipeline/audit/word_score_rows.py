"""The words of each text with their scores, so that a report can show them without the model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from heedful.checks.base import Check, HasWordScores
from heedful.core.batch import Encoded
from heedful.core.records import WORD_SCORES
from heedful.models.batch_context import BatchContext


@dataclass(frozen=True, slots=True)
class WordScoreRow:
    """One text: its words, the predicted class and its probability, and scores by name.

    A score that no check computes is None.
    """

    instance: int
    predicted: int
    label: int
    probability: float
    words: tuple[str, ...]
    scores: Mapping[str, tuple[float, ...] | None]
    question: str | None = None


def word_score_rows(
    context: BatchContext, encoded: Sequence[Encoded], parts: Mapping[str, Check]
) -> Iterator[WordScoreRow]:
    """A row per text of the batch; a word's score is the sum over its tokens."""
    scores, here = _scores(context, parts), context.batch.present
    chosen = context.forward.probabilities.amax(-1).tolist()
    for row, one in enumerate(encoded):
        yield WordScoreRow(
            one.index,
            int(context.predicted[row]),
            one.label,
            chosen[row],
            one.words,
            {
                name: _sum_by_word(one, scores[name][row], here[row]) if name in scores else None
                for name in WORD_SCORES
            },
            one.question,
        )


def _scores(context: BatchContext, parts: Mapping[str, Check]) -> dict[str, Float[Tensor, "B T"]]:
    found = {"attention": context.forward.attention}
    for check in parts.values():
        if isinstance(check, HasWordScores):
            found |= check.word_scores(context)
    return found


def _sum_by_word(
    one: Encoded, scores: Float[Tensor, "T"], here: Bool[Tensor, "T"]
) -> tuple[float, ...]:
    words = [0.0] * len(one.words)
    for word, score in zip(one.word, scores[here].tolist(), strict=True):
        if word >= 0:
            words[word] += score
    return tuple(words)
