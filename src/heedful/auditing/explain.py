"""Explain one text by several methods side by side."""

from collections.abc import Sequence

import torch

from heedful.core.errors import ConfigError, DataError
from heedful.core.records import Explained, MethodScores
from heedful.core.values import Encoded, Example
from heedful.methods import Method, methods
from heedful.models.base import Subject
from heedful.models.sitting import Sitting

GRANULARITIES = ("word", "token")


def explain_text(
    subject: Subject,
    text: str,
    *,
    names: Sequence[str],
    target: str | None = None,
    granularity: str = "word",
    seed: int = 0,
) -> Explained:
    """Explain the prediction for a text, or the chance of another class, word by word."""
    if granularity not in GRANULARITIES:
        raise ConfigError(f"granularity must be word or token, not {granularity!r}.")
    parts: dict[str, Method] = {name: methods.build(name) for name in names}
    encoded = subject.encode(Example(0, text, 0))
    if not encoded.explained:
        raise DataError("The text holds no word to explain; give at least one.")
    sitting = Sitting(subject, subject.batch([encoded]), seed)
    chosen = _target(subject, target, int(sitting.predicted))
    found = {}
    for name, part in parts.items():
        with torch.no_grad():
            scores = _scores(part, sitting, chosen)
        found[name] = MethodScores(part.kind, part.signed, _per(granularity, encoded, scores))
    tokens = encoded.words
    if granularity == "token":
        tokens = tuple(encoded.words[word] for word in encoded.word if word >= 0)
    return Explained(text, subject.labels[chosen], granularity, tokens, found)


def _target(subject: Subject, name: str | None, predicted: int) -> int:
    if name is None:
        return predicted
    if name not in subject.labels:
        raise ConfigError(f"No class is named {name!r}. Classes: {', '.join(subject.labels)}.")
    return subject.labels.index(name)


def _scores(part: Method, sitting: Sitting, target: int) -> list[float]:
    explanation = part(sitting, torch.tensor([target]))
    scores: list[float] = explanation.scores[0][explanation.mask[0]].tolist()
    return scores


def _per(granularity: str, encoded: Encoded, scores: Sequence[float]) -> tuple[float, ...]:
    """Scores as they are, or added up over the pieces of each word."""
    if granularity == "token":
        return tuple(scores)
    words = [0.0] * len(encoded.words)
    for word, score in zip((one for one in encoded.word if one >= 0), scores, strict=True):
        words[word] += score
    return tuple(words)
