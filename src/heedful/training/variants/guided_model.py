"""A model without context whose attention is another's: does it help? (Wiegreffe & Pinter, 3.4)"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.batch import Encoded
from heedful.core.values import Example
from heedful.models.protocols import Subject
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.models.recurrent.vocabulary import Vocabulary
from heedful.training.fit import untrained
from heedful.training.loop.batching import batches_for
from heedful.training.loop.epochs import Until
from heedful.training.loop.predictions import Outlook
from heedful.training.recipe import Recipe
from heedful.training.variants.context import Desk, Room, Taught, Texts
from heedful.training.variants.objectives import Guided, Objective, OwnTask, Weights, spread
from heedful.training.variants.recurrent_variants import RecurrentPupil

GUIDES = ("uniform", "own", "base", "adversary")


@dataclass(frozen=True, eq=False)
class GuidedPupil:
    """A word-wise model of the base's words; `source` is whose weights it is given, if any's."""

    room: Room
    pupil: RecurrentPupil
    source: Subject | None

    def task(self, until: Until, desk: Desk) -> Taught:
        """The labels, under the weights."""
        known, judged = (
            by_words(self.pupil.subject, texts.encoded)
            for texts in (self.room.train, self.room.dev)
        )
        both = self._strive(self.room.train, known), self._strive(self.room.dev, judged)
        return self.pupil.train(known, judged, both, until, desk)

    def _strive(self, texts: Texts, read: Sequence[Encoded]) -> Objective:
        task = OwnTask.of(read, self.pupil.subject)
        if self.source is None:  # uniform attention, or its own
            return task
        weights = word_weights(texts.encoded, texts.seen_by(self.source))
        return Guided(task.gold, task.criterion, weights)


def guided(
    room: Room, seed: int, *, encoder: str, by: str, source: Subject | None = None
) -> GuidedPupil:
    """A fresh word-wise model, to be guided by uniform weights, its own, the base's or another's.

    It knows the base's words and is trained by the base's recipe where that has one.
    """
    base, query = room.base, False
    if isinstance(base, RecurrentSubject):
        recipe, vocabulary, query = room.recipe, base.vocabulary, base.network.shape.query
    else:
        recipe = Recipe(max_words=getattr(base, "max_length", Recipe.max_words))  # a token each
        normal = recipe.tokenizer.normal
        vocabulary = Vocabulary.count(
            [normal(w) for w in one.seen_words] for one in room.train.encoded
        )
    attention = "additive" if by == "own" else "uniform"
    recipe = replace(recipe, encoder=encoder, attention=attention, seed=seed)
    subject, _ = untrained(vocabulary, base.labels, recipe, query=query)
    pupil = RecurrentPupil(room, subject, recipe)
    return GuidedPupil(room, pupil, base if by == "base" else source)


def by_words(subject: RecurrentSubject, encoded: Sequence[Encoded]) -> list[Encoded]:
    """The words that another subject sees in texts, as this one reads them.

    Questions stay as they are: a model that is guided with them knows the other's words.
    """
    return [
        replace(
            subject.encode(Example(one.index, "", one.label, one.seen_words, pair=_asked(one))),
            query=one.query,
            question=one.question,
            allowed=one.allowed,
        )
        for one in encoded
    ]


def _asked(one: Encoded) -> str | None:
    return None if one.query is None else ""


def word_weights(encoded: Sequence[Encoded], seen: Outlook) -> Weights:
    """A subject's weights word by word, between a start and an end sign without weight."""
    found = []
    for one, weights in zip(encoded, seen.attention, strict=True):
        words = torch.zeros(len(one.seen_words) + 2, dtype=weights.dtype)
        place = torch.tensor(one.word)
        words.index_add_(0, place[place >= 0] + 1, weights[place >= 0])
        found.append(words)
    return found


def outputs_under(
    subject: RecurrentSubject, read: Sequence[Encoded], weights: Weights | None
) -> Float[Tensor, "n C"]:
    """What a word-wise model says under the given weights, or under its own without any."""
    outputs = torch.zeros(len(read), len(subject.labels), dtype=torch.float64)
    with torch.no_grad():
        for rows in batches_for(subject, read):
            batch = subject.batch([read[row] for row in rows])
            forward = subject.forward(batch)
            logits = forward.logits
            if weights is not None:
                given = spread(weights, rows, batch).to(logits)
                logits = subject.decoder(batch, forward)(given)
            outputs[rows] = logits.double().softmax(-1)
    return outputs
