"""Texts of a planted subject, labelled by its own output."""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from heedful.core.values import Example
from heedful.models.protocols import Subject
from heedful.planted.closed_form.base import PlantedSubject
from heedful.planted.closed_form.question_subject import TONES, reword_for_question
from heedful.planted.hand_built import draw_text

LABELLING_BATCH = 64  # texts labelled at once
TextAndQuestion = tuple[str, str | None]  # and its question


def draw_rows(
    plant: PlantedSubject, count: int, *, length: int, stream: Callable[[int], np.random.Generator]
) -> list[dict[str, str]]:
    """Rows of text and label; each text is drawn from the stream of its number."""
    texts = [_text(plant, length, stream(index)) for index in range(count)]
    names = plant.subject.labels
    chunks = [texts[start : start + LABELLING_BATCH] for start in range(0, count, LABELLING_BATCH)]
    labels = [
        number for some in chunks for number in _logits(plant.subject, some).argmax(-1).tolist()
    ]
    return [_row(text, names[label]) for text, label in zip(texts, labels, strict=True)]


def row_to_example(row: dict[str, str], index: int, label: int = -1) -> Example:
    """A row as subjects take it."""
    return Example(index, row.get("text") or row["paragraph"], label, pair=row.get("question"))


def _row(text: TextAndQuestion, label: str) -> dict[str, str]:
    written, question = text
    if question is None:
        return {"text": written, "label": label}
    return {"paragraph": written, "question": question, "label": label}


def _text(plant: PlantedSubject, length: int, draw: np.random.Generator) -> TextAndQuestion:
    while True:  # more than one text in twenty lies within the bounds that are set
        text = _add_question(
            plant, draw_text(draw, length, cues=plant.cues, times=plant.times), draw
        )
        if plant.bound == float("inf") or _logit_margin(plant.subject, text) <= plant.bound:
            return text


def _add_question(
    plant: PlantedSubject, written: str, draw: np.random.Generator
) -> TextAndQuestion:
    """The text with a question, in whose words it is written, where there are questions."""
    if not plant.questions:
        return written, None
    question, tone = int(draw.integers(plant.questions)), int(draw.integers(TONES))
    return reword_for_question(written, question), f"q{question} t{tone}"


def _logit_margin(subject: Subject, text: TextAndQuestion) -> float:
    """How far the likeliest class is above the next, in logits."""
    first, second = _logits(subject, [text])[0].topk(2).values.tolist()
    return float(first - second)


def _logits(subject: Subject, texts: Sequence[TextAndQuestion]) -> torch.Tensor:
    encoded = [
        subject.encode(Example(index, written, -1, pair=question))
        for index, (written, question) in enumerate(texts)
    ]
    with torch.no_grad():
        return subject.forward(subject.batch(encoded)).logits
