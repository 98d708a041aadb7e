"""Texts of a planted subject, labelled by its own output."""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from heedful.core.values import Example
from heedful.models.base import Subject
from heedful.models.planted import draw_text
from heedful.models.planting.base import Plant

CHUNK = 64  # texts labelled at once


def drawn_rows(
    plant: Plant, count: int, *, length: int, stream: Callable[[int], np.random.Generator]
) -> list[dict[str, str]]:
    """Rows of text and label; each text is drawn from the stream of its number."""
    texts = [_text(plant, length, stream(index)) for index in range(count)]
    names = plant.subject.labels
    chunks = [texts[start : start + CHUNK] for start in range(0, count, CHUNK)]
    labels = [
        number for some in chunks for number in _logits(plant.subject, some).argmax(-1).tolist()
    ]
    return [
        {"text": text, "label": names[label]} for text, label in zip(texts, labels, strict=True)
    ]


def _text(plant: Plant, length: int, draw: np.random.Generator) -> str:
    while True:  # more than one text in twenty lies within the bounds that are set
        text = draw_text(draw, length, cues=plant.cues, times=plant.times)
        if plant.bound == float("inf") or abs(_log_odds(plant.subject, text)) <= plant.bound:
            return text


def _log_odds(subject: Subject, text: str) -> float:
    ((first, second),) = _logits(subject, [text]).tolist()
    return float(second - first)


def _logits(subject: Subject, texts: Sequence[str]) -> torch.Tensor:
    encoded = [subject.encode(Example(index, text, -1)) for index, text in enumerate(texts)]
    with torch.no_grad():
        return subject.forward(subject.batch(encoded)).logits
