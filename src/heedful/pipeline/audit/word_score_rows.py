"""The words of each text with their scores, kept so that a report can show them without a model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from heedful.checks import Check
from heedful.checks.attention.adversarial.check import Adversarial
from heedful.checks.attention.agreement.check import Agreement
from heedful.core.batch import Encoded
from heedful.core.records import WORD_SCORES
from heedful.methods.erasure.leave_one_out import LeaveOneOut
from heedful.methods.gradient.one_hot_gradient import OneHotGradient
from heedful.models.batch_context import Sitting


@dataclass(frozen=True, slots=True)
class TextRow:
    """One text: its words, what was predicted with which probability, and scores by name.

    A score that no check asked for is None: nothing is computed for the show alone.
    """

    instance: int
    predicted: int
    label: int
    probability: float
    words: tuple[str, ...]
    scores: Mapping[str, tuple[float, ...] | None]
    question: str | None = None


def text_rows(
    sitting: Sitting, encoded: Sequence[Encoded], parts: Mapping[str, Check]
) -> Iterator[TextRow]:
    """A row per text of the sitting; a word's score is the sum over its tokens."""
    scores, here = _scores(sitting, parts), sitting.batch.present
    chosen = sitting.forward.probabilities.amax(-1).tolist()
    for row, one in enumerate(encoded):
        yield TextRow(
            one.index,
            int(sitting.predicted[row]),
            one.label,
            chosen[row],
            one.words,
            {
                name: _by_word(one, scores[name][row], here[row]) if name in scores else None
                for name in WORD_SCORES
            },
            one.question,
        )


def _scores(sitting: Sitting, parts: Mapping[str, Check]) -> dict[str, Float[Tensor, "B T"]]:
    found = {"attention": sitting.forward.attention}
    for check in parts.values():
        if isinstance(check, Adversarial):
            found["adversarial"] = check.best(sitting)
        if isinstance(check, Agreement):
            target = sitting.predicted
            found["one_hot_gradient"] = OneHotGradient()(sitting, target).scores
            found["leave_one_out"] = LeaveOneOut()(sitting, target).scores
    return found


def _by_word(
    one: Encoded, scores: Float[Tensor, "T"], here: Bool[Tensor, "T"]
) -> tuple[float, ...]:
    words = [0.0] * len(one.words)
    for word, score in zip(one.word, scores[here].tolist(), strict=True):
        if word >= 0:
            words[word] += score
    return tuple(words)
