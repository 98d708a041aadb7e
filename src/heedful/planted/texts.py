"""Words and texts of planted subjects: drawn at random, labelled with the subject's own output.

The words are w0, w1, … w399. Where a kind has cues (decisive words), they are the first words of
the vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from heedful.core.values import Example
from heedful.models.protocols import Subject

VOCABULARY_SIZE = 400
WORDS = tuple(f"w{number}" for number in range(VOCABULARY_SIZE))
CUE_WORDS = 40  # the first words of the vocabulary are cues, where the kind has any
QUESTIONS, TONES = 3, 8  # a question is "q1 t5": number and tone
QUESTION_WORD_SHIFT = 133  # word w has for question k the role of word w + 133·k for question 0
LABELLING_BATCH = 64  # texts labelled in one forward pass
TextAndQuestion = tuple[str, str | None]


@dataclass(frozen=True, eq=False)
class PlantedSubject:
    """A subject and how its texts are drawn.

    The first `cues` words are decisive: each text contains one of them, `times` times. A text is
    redrawn until its log-odds lie within ± `bound`. Each text comes with one of `questions`
    questions, if there are any.
    """

    subject: Subject
    cues: int = 0
    times: int = 1
    bound: float = float("inf")
    questions: int = 0


def draw_text(draw: np.random.Generator, mean: int, *, cues: int = 0, times: int = 1) -> str:
    """A text of mean ± mean/2 words; with `cues`, one cue word at `times` random places."""
    length = int(draw.integers(mean // 2, mean + mean // 2 + 1))
    ids = draw.integers(cues, VOCABULARY_SIZE, length)
    if cues:
        word = draw.integers(cues)
        ids[draw.integers(length) if times == 1 else draw.permutation(length)[:times]] = word
    return " ".join(f"w{number}" for number in ids)


def draw_rows(
    plant: PlantedSubject, count: int, *, length: int, stream: Callable[[int], np.random.Generator]
) -> list[dict[str, str]]:
    """Rows of text and label; text number i is drawn from `stream(i)`."""
    texts = [_draw(plant, length, stream(index)) for index in range(count)]
    chunks = [texts[start : start + LABELLING_BATCH] for start in range(0, count, LABELLING_BATCH)]
    labels = [
        plant.subject.labels[number]
        for chunk in chunks
        for number in _logits(plant.subject, chunk).argmax(-1).tolist()
    ]
    return [_row(text, label) for text, label in zip(texts, labels, strict=True)]


def row_to_example(row: dict[str, str], index: int, label: int = -1) -> Example:
    """The input of `Subject.encode` for a row of `Case.texts`."""
    return Example(index, row.get("text") or row["paragraph"], label, pair=row.get("question"))


def reword_for_question(text: str, question: int) -> str:
    """Replace the words of a text for question 0 by those with the same role for `question`."""
    ids = (int(word.removeprefix("w")) for word in text.split())
    return " ".join(
        f"w{(number - QUESTION_WORD_SHIFT * question) % VOCABULARY_SIZE}" for number in ids
    )


def _row(text: TextAndQuestion, label: str) -> dict[str, str]:
    words, question = text
    if question is None:
        return {"text": words, "label": label}
    return {"paragraph": words, "question": question, "label": label}


def _draw(plant: PlantedSubject, length: int, draw: np.random.Generator) -> TextAndQuestion:
    while True:  # for every kind, more than one text in twenty lies within its bound
        words = draw_text(draw, length, cues=plant.cues, times=plant.times)
        text = _add_question(plant, words, draw)
        if plant.bound == float("inf") or _logit_margin(plant.subject, text) <= plant.bound:
            return text


def _add_question(plant: PlantedSubject, words: str, draw: np.random.Generator) -> TextAndQuestion:
    if not plant.questions:
        return words, None
    question, tone = int(draw.integers(plant.questions)), int(draw.integers(TONES))
    return reword_for_question(words, question), f"q{question} t{tone}"


def _logit_margin(subject: Subject, text: TextAndQuestion) -> float:
    """The difference between the largest and the second largest logit."""
    first, second = _logits(subject, [text])[0].topk(2).values.tolist()
    return float(first - second)


def _logits(subject: Subject, texts: Sequence[TextAndQuestion]) -> torch.Tensor:
    encoded = [
        subject.encode(Example(index, words, -1, pair=question))
        for index, (words, question) in enumerate(texts)
    ]
    with torch.no_grad():
        return subject.forward(subject.batch(encoded)).logits
