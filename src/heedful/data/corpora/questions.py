"""A corpus of questions whose decisive word is known by construction: who is where?

Each paragraph puts two to four people in as many different places, among fillers; the question is
where one of them is. The answer follows that person's name, and occurs nowhere else.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from heedful.core.rng import generator
from heedful.data.corpora.synthetic import SEED, SIZES, Rng
from heedful.data.corpora.word_lists import FILLERS, PEOPLE, PLACES
from heedful.data.dataset import NumberedRow, corpora, pick_split, rows_sha256


@dataclass(frozen=True)
class QuestionsSource:
    """One split: paragraphs, questions, answers, and the decisive word."""

    split: str
    name: str = "synthetic:questions"

    def sha256(self) -> str:
        """Hex digest of the rows as canonical JSON."""
        return rows_sha256(self)

    def __iter__(self) -> Iterator[NumberedRow]:
        for index in range(SIZES[self.split]):
            rng = generator(SEED, f"{self.name}/{self.split}", index)
            yield index + 1, _row(rng, PLACES[index % len(PLACES)])


@corpora.register("synthetic:questions")
@dataclass(frozen=True)
class WhoIsWhere:
    """Where is one of two to four people? The rationale is the place after the name."""

    splits: tuple[str, ...] = field(default=tuple(SIZES), init=False)

    def __call__(self, split: str) -> QuestionsSource:
        return QuestionsSource(pick_split(split, SIZES, name="synthetic:questions"))


def _row(rng: Rng, answer: str) -> dict[str, object]:
    """Put the person of the question in the place `answer`, and the others in other places."""
    count = int(rng.integers(2, 5))
    people = rng.permutation(PEOPLE)[:count].tolist()
    others = rng.permutation([place for place in PLACES if place != answer])[: count - 1].tolist()
    asked, tokens, rationale = int(rng.integers(count)), list[str](), list[int]()
    for number, person in enumerate(people):
        few = rng.integers(2, 5)  # enough fillers that no text is repeated
        tokens += [FILLERS[i] for i in rng.integers(len(FILLERS), size=few).tolist()]
        place = answer if number == asked else others.pop()
        rationale += [len(tokens) + 1] if number == asked else []
        tokens += [person, place]
    return {
        "paragraph": " ".join(tokens),
        "question": f"where is {people[asked]}",
        "label": answer,
        "tokens": tokens,
        "rationale": rationale,
    }
