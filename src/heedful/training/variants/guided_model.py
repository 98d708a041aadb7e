"""Models without context, given the attention of another (Wiegreffe & Pinter, 2019, 3.4)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.batch import Encoded
from heedful.core.values import Example
from heedful.data.batching import batches_for
from heedful.models.protocols import Subject
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.models.recurrent.vocabulary import Vocabulary
from heedful.training.fit import init_recurrent_subject
from heedful.training.loop.predictions import Predictions
from heedful.training.loop.trainables import RecurrentTrainable
from heedful.training.loop.trainer import Task
from heedful.training.objectives import GuidedObjective, TokenWeights, pad_to_batch
from heedful.training.recipe import Recipe
from heedful.training.variants.models import TrainingContext
from heedful.training.variants.texts import EncodedTexts

GuideName = Literal["uniform", "own", "base", "adversary"]
GUIDES: tuple[GuideName, ...] = get_args(GuideName)


def new_guided_model(
    context: TrainingContext, seed: int, *, encoder: str, by: str
) -> RecurrentTrainable:
    """A new word-wise model, with attention of its own if `by` is "own", else uniform.

    It has the vocabulary of the base model, and its recipe if the base model is recurrent.
    """
    base, query = context.base, False
    if isinstance(base, RecurrentSubject):
        recipe, vocabulary, query = context.recipe, base.vocabulary, base.network.shape.query
    else:
        recipe = Recipe(max_words=getattr(base, "max_length", Recipe.max_words))  # a token each
        normal = recipe.tokenizer.normalise
        vocabulary = Vocabulary.from_texts(
            [normal(word) for word in one.seen_words] for one in context.train.encoded
        )
    attention = "additive" if by == "own" else "uniform"
    recipe = replace(recipe, encoder=encoder, attention=attention, seed=seed)
    subject, _ = init_recurrent_subject(vocabulary, base.labels, recipe, query=query)
    return RecurrentTrainable(subject, recipe)


def guided_task(trainable: RecurrentTrainable, texts: EncodedTexts, source: Subject | None) -> Task:
    """The texts as a word-wise model reads them, and the task under the weights of `source`."""
    encoded = encode_seen_words(trainable.subject, texts.encoded)
    task = trainable.task_objective(encoded)
    if source is None:
        return encoded, task
    weights = word_weights(texts.encoded, texts.predict_with(source))
    return encoded, GuidedObjective(task.gold, task.criterion, weights)


def encode_seen_words(subject: RecurrentSubject, encoded: Sequence[Encoded]) -> list[Encoded]:
    """The words that another subject reads, encoded for this one.

    Questions are copied as they are: a guided model with questions has the other's vocabulary.
    """
    read = []
    for one in encoded:
        pair = None if one.query is None else ""
        words = subject.encode(Example(one.index, "", one.label, one.seen_words, pair=pair))
        read.append(replace(words, query=one.query, question=one.question, allowed=one.allowed))
    return read


def word_weights(encoded: Sequence[Encoded], predictions: Predictions) -> TokenWeights:
    """A subject's attention word by word, with weight 0 for the start and end tokens."""
    result = []
    for one, weights in zip(encoded, predictions.attention, strict=True):
        words = torch.zeros(len(one.seen_words) + 2, dtype=weights.dtype)
        index = torch.tensor(one.word)
        words.index_add_(0, index[index >= 0] + 1, weights[index >= 0])
        result.append(words)
    return result


def predict_under_weights(
    subject: RecurrentSubject, encoded: Sequence[Encoded], weights: TokenWeights | None
) -> Float[Tensor, "n C"]:
    """Probabilities of a word-wise model under the given weights, or under its own if None."""
    outputs = torch.zeros(len(encoded), len(subject.labels), dtype=torch.float64)
    with torch.no_grad():
        for rows in batches_for(subject, encoded):
            batch = subject.batch([encoded[row] for row in rows])
            forward = subject.forward(batch)
            logits = forward.logits
            if weights is not None:
                given = pad_to_batch(weights, rows, batch).to(logits)
                logits = subject.decoder(batch, forward)(given)
            outputs[rows] = logits.double().softmax(-1)
    return outputs
