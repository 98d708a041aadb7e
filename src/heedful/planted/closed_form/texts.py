"""Texts of a planted subject, labelled by its own output."""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from heedful.core.values import Example
from heedful.models.protocols import Subject
from heedful.planted.closed_form.base import Plant
from heedful.planted.closed_form.question_subject import TONES, renamed
from heedful.planted.hand_built import draw_text

CHUNK = 64  # texts labelled at once
Text = tuple[str, str | None]  # and its question


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
    return [_row(text, names[label]) for text, label in zip(texts, labels, strict=True)]


def example_of(row: dict[str, str], index: int, label: int = -1) -> Example:
    """A row as subjects take it."""
    return Example(index, row.get("text") or row["paragraph"], label, pair=row.get("question"))


def _row(text: Text, label: str) -> dict[str, str]:
    written, question = text
    if question is None:
        return {"text": written, "label": label}
    return {"paragraph": written, "question": question, "label": label}


def _text(plant: Plant, length: int, draw: np.random.Generator) -> Text:
    while True:  # more than one text in twenty lies within the bounds that are set
        text = _asked(plant, draw_text(draw, length, cues=plant.cues, times=plant.times), draw)
        if plant.bound == float("inf") or _lead(plant.subject, text) <= plant.bound:
            return text


def _asked(plant: Plant, written: str, draw: np.random.Generator) -> Text:
    """The text with a question, in whose words it is written, where there are questions."""
    if not plant.asks:
        return written, None
    question, tone = int(draw.integers(plant.asks)), int(draw.integers(TONES))
    return renamed(written, question), f"q{question} t{tone}"


def _lead(subject: Subject, text: Text) -> float:
    """How far the likeliest class is above the next, in logits."""
    first, second = _logits(subject, [text])[0].topk(2).values.tolist()
    return float(first - second)


def _logits(subject: Subject, texts: Sequence[Text]) -> torch.Tensor:
    encoded = [
        subject.encode(Example(index, written, -1, pair=question))
        for index, (written, question) in enumerate(texts)
    ]
    with torch.no_grad():
        return subject.forward(subject.batch(encoded)).logits
