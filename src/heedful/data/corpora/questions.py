"""A corpus of questions whose decisive word is known by construction: who is where?

Each paragraph puts two to four people in as many different places, among fillers; the question is
where one of them is. The answer follows that person's name, and occurs nowhere else.
"""

from heedful.data.corpora.synthetic import Rng, Row, register_synthetic
from heedful.data.corpora.word_lists import FILLERS, PEOPLE, PLACES


@register_synthetic("synthetic:questions")
def draw_question_row(rng: Rng, index: int) -> Row:
    """Where is one of two to four people? The rationale is the place after the name."""
    answer = PLACES[index % len(PLACES)]
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
