"""Which words of a text are to be hidden: from a list, from people, or from an explanation."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.core.errors import NotApplicable
from heedful.core.people import people_of
from heedful.core.values import Encoded, Example
from heedful.methods import methods
from heedful.models.base import Subject
from heedful.models.recurrent import RecurrentSubject
from heedful.models.sitting import Sitting
from heedful.training.hidden import Hidden
from heedful.training.reading import batches_for


def mark(
    hidden: Hidden, base: Subject, examples: Sequence[Example], encoded: Sequence[Encoded]
) -> list[Bool[Tensor, "_"]]:
    """For each text which of its tokens are hidden; a word is hidden whole."""
    if hidden.source == "list":
        _require_single(hidden, base)
        listed = {word.lower() for word in hidden.words}
        words = [[word.lower() in listed for word in one.words] for one in encoded]
    elif hidden.source == "rationale":
        words = [_rationale(*pair) for pair in zip(examples, encoded, strict=True)]
    else:
        words = _salient(hidden, base, encoded)
    return [
        torch.tensor([place >= 0 and marks[place] for place in one.word])
        for one, marks in zip(encoded, words, strict=True)
    ]


def _require_single(hidden: Hidden, base: Subject) -> None:
    """Refuse a listed word that the model reads as several: it would never be found."""
    if not isinstance(base, RecurrentSubject):
        return
    for word in hidden.words:
        if len(parts := base.tokenizer(word)) != 1:
            raise NotApplicable(
                f"{word!r} is read as {len(parts)} words here ({', '.join(parts)}): list words as "
                "the model reads them"
            )


def _rationale(example: Example, one: Encoded) -> list[bool]:
    if example.rationale is None:
        raise NotApplicable(f"text {example.index} has no rationale")
    people = people_of(example, one.words)
    if people.marked is None:
        raise NotApplicable(f"text {example.index}: {people.why}")
    return [*people.marked]


def _salient(hidden: Hidden, base: Subject, encoded: Sequence[Encoded]) -> list[list[bool]]:
    """The words with the highest scores by size, at least one and never all."""
    method, found = methods.build(hidden.method), [list[bool]()] * len(encoded)
    for rows in batches_for(base, encoded):
        sitting = Sitting(base, base.batch([encoded[row] for row in rows]))
        scores, here = method(sitting, sitting.predicted).scores.detach(), sitting.batch.present
        for place, row in enumerate(rows):
            found[row] = _highest(encoded[row], scores[place][here[place]], hidden.share)
    return found


def _highest(one: Encoded, scores: Float[Tensor, "T"], share: float) -> list[bool]:
    place = torch.tensor(one.word)
    words = scores.new_zeros(len(one.seen_words))
    words.index_add_(0, place[place >= 0], scores[place >= 0])
    count = min(max(1, math.ceil(share * len(words))), len(words) - 1)
    top = set(words.abs().argsort(descending=True, stable=True)[: max(count, 0)].tolist())
    return [place in top for place in range(len(words))]
