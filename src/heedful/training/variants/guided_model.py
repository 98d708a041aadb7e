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
from heedful.training.fit import init_recurrent_subject
from heedful.training.loop.batching import batches_for
from heedful.training.loop.epochs import EarlyStopping
from heedful.training.loop.predictions import Predictions
from heedful.training.recipe import Recipe
from heedful.training.variants.context import (
    CheckpointSlot,
    EncodedTexts,
    TrainedVariant,
    TrainingContext,
)
from heedful.training.variants.objectives import (
    GuidedObjective,
    Objective,
    TaskObjective,
    TokenWeights,
    pad_to_batch,
)
from heedful.training.variants.recurrent_variants import RecurrentTrainable

GUIDES = ("uniform", "own", "base", "adversary")


@dataclass(frozen=True, eq=False)
class GuidedTrainable:
    """A word-wise model of the base's words; `source` is whose weights it is given, if any's."""

    context: TrainingContext
    trainable: RecurrentTrainable
    source: Subject | None

    def task(self, stopping: EarlyStopping, slot: CheckpointSlot) -> TrainedVariant:
        """The labels, under the weights."""
        known, judged = (
            encode_seen_words(self.trainable.subject, texts.encoded)
            for texts in (self.context.train, self.context.dev)
        )
        both = (
            self._objective_for(self.context.train, known),
            self._objective_for(self.context.dev, judged),
        )
        return self.trainable.train(known, judged, both, stopping, slot)

    def _objective_for(self, texts: EncodedTexts, read: Sequence[Encoded]) -> Objective:
        task = TaskObjective.of(read, self.trainable.subject)
        if self.source is None:  # uniform attention, or its own
            return task
        weights = word_weights(texts.encoded, texts.seen_by(self.source))
        return GuidedObjective(task.gold, task.criterion, weights)


def new_guided_model(
    context: TrainingContext, seed: int, *, encoder: str, by: str, source: Subject | None = None
) -> GuidedTrainable:
    """A fresh word-wise model, to be guided by uniform weights, its own, the base's or another's.

    It knows the base's words and is trained by the base's recipe where that has one.
    """
    base, query = context.base, False
    if isinstance(base, RecurrentSubject):
        recipe, vocabulary, query = context.recipe, base.vocabulary, base.network.shape.query
    else:
        recipe = Recipe(max_words=getattr(base, "max_length", Recipe.max_words))  # a token each
        normal = recipe.tokenizer.normalise
        vocabulary = Vocabulary.from_texts(
            [normal(w) for w in one.seen_words] for one in context.train.encoded
        )
    attention = "additive" if by == "own" else "uniform"
    recipe = replace(recipe, encoder=encoder, attention=attention, seed=seed)
    subject, _ = init_recurrent_subject(vocabulary, base.labels, recipe, query=query)
    trainable = RecurrentTrainable(context, subject, recipe)
    return GuidedTrainable(context, trainable, base if by == "base" else source)


def encode_seen_words(subject: RecurrentSubject, encoded: Sequence[Encoded]) -> list[Encoded]:
    """The words that another subject sees in texts, as this one reads them.

    Questions stay as they are: a model that is guided with them knows the other's words.
    """
    return [
        replace(
            subject.encode(
                Example(one.index, "", one.label, one.seen_words, pair=_empty_question(one))
            ),
            query=one.query,
            question=one.question,
            allowed=one.allowed,
        )
        for one in encoded
    ]


def _empty_question(one: Encoded) -> str | None:
    return None if one.query is None else ""


def word_weights(encoded: Sequence[Encoded], seen: Predictions) -> TokenWeights:
    """A subject's weights word by word, between a start and an end sign without weight."""
    found = []
    for one, weights in zip(encoded, seen.attention, strict=True):
        words = torch.zeros(len(one.seen_words) + 2, dtype=weights.dtype)
        place = torch.tensor(one.word)
        words.index_add_(0, place[place >= 0] + 1, weights[place >= 0])
        found.append(words)
    return found


def predict_under_weights(
    subject: RecurrentSubject, read: Sequence[Encoded], weights: TokenWeights | None
) -> Float[Tensor, "n C"]:
    """What a word-wise model says under the given weights, or under its own without any."""
    outputs = torch.zeros(len(read), len(subject.labels), dtype=torch.float64)
    with torch.no_grad():
        for rows in batches_for(subject, read):
            batch = subject.batch([read[row] for row in rows])
            forward = subject.forward(batch)
            logits = forward.logits
            if weights is not None:
                given = pad_to_batch(weights, rows, batch).to(logits)
                logits = subject.decoder(batch, forward)(given)
            outputs[rows] = logits.double().softmax(-1)
    return outputs
