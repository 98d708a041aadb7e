"""What training a variant needs: base model, training and dev texts, checkpoint folder."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Bool
from torch import Tensor

from heedful.core.batch import Encoded
from heedful.core.errors import HeedfulError, NotApplicable
from heedful.core.rng import generator
from heedful.core.timing import Progress, no_progress
from heedful.core.values import Example
from heedful.models.protocols import Subject
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.models.recurrent.vocabulary import WordTokenizer
from heedful.training.loop.epochs import CheckpointFolder
from heedful.training.loop.predictions import Predictions, predict_all
from heedful.training.recipe import Recipe
from heedful.training.variants.hidden_words import (
    HiddenWordMarker,
    HiddenWords,
    ScoreCache,
    delete_hidden,
)


@dataclass(frozen=True, eq=False)
class EncodedTexts:
    """Texts as the base model reads them, with cached predictions and hidden words.

    Texts of fewer than `min_words` words are left out; `mark` finds the hidden words. The
    predictions of a subject are cached as long as the subject is in memory.
    """

    base: Subject
    examples: Sequence[Example]
    min_words: int
    mark: HiddenWordMarker
    hidden_cache: dict[HiddenWords, list[Tensor]] = field(default_factory=dict)
    predictions: MutableMapping[Subject, Predictions] = field(default_factory=WeakKeyDictionary)
    score_cache: ScoreCache = field(default_factory=dict)

    @cached_property
    def _pairs(self) -> list[tuple[Example, Encoded]]:
        pairs = ((one, self.base.encode(one)) for one in self.examples)
        return [pair for pair in pairs if pair[1].explained_tokens >= self.min_words]

    @cached_property
    def encoded(self) -> list[Encoded]:
        """The texts that are long enough, encoded."""
        return [encoded for _, encoded in self._pairs]

    @property
    def base_predictions(self) -> Predictions:
        """Probabilities and attention of the base model."""
        return self.predict_with(self.base)

    def predict_with(self, subject: Subject) -> Predictions:
        """Probabilities and attention of a subject, computed once."""
        if subject not in self.predictions:
            self.predictions[subject] = predict_all(subject, self.encoded)
        return self.predictions[subject]

    def hidden(self, hidden: HiddenWords) -> list[Bool[Tensor, "_"]]:
        """For each text, which of its tokens are hidden."""
        if hidden not in self.hidden_cache:
            examples = [example for example, _ in self._pairs]
            self.hidden_cache[hidden] = self.mark(
                hidden, self.base, examples, self.encoded, self.score_cache
            )
        return self.hidden_cache[hidden]

    def shuffled(self, seed: int) -> "EncodedTexts":
        """The texts with their labels permuted; class frequencies stay the same."""
        order = generator(seed, "shuffled labels").permutation(len(self.examples)).tolist()
        examples = [
            replace(one, label=self.examples[index].label)
            for one, index in zip(self.examples, order, strict=True)
        ]
        return EncodedTexts(self.base, examples, self.min_words, self.mark)

    def without(self, hidden: HiddenWords, blank: int) -> list[Encoded]:
        """The texts with their hidden tokens deleted."""
        pairs = zip(self.encoded, self.hidden(hidden), strict=True)
        return [delete_hidden(one, marks, blank=blank) for one, marks in pairs]


@dataclass(frozen=True, eq=False)
class TrainingContext:
    """Everything that the training of a variant may use.

    `trained` returns the subject of another variant; `tuning` is the fine-tuning recipe of the base
    model if it is a transformer; `checkpoint` is where an interrupted training resumes from.
    """

    base: Subject
    train: EncodedTexts
    dev: EncodedTexts
    trained: Callable[[Any], Subject]
    tuning: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: CheckpointFolder | None = None
    progress: Progress = no_progress

    @property
    def splits(self) -> tuple[EncodedTexts, EncodedTexts]:
        """Training and dev texts."""
        return self.train, self.dev

    @cached_property
    def recipe(self) -> Recipe:
        """The recipe of the base model."""
        return read_recipe(self.base)


def read_recipe(base: Subject) -> Recipe:
    """The recipe in the history of an attention classifier."""
    if not isinstance(base, RecurrentSubject):
        raise NotApplicable(f"{base.family} has no recipe to retrain it by")
    record: Mapping[str, Any] = base.history.get("recipe", {})
    if not record:
        raise NotApplicable("the model has no record of how it was trained")
    try:
        given = {**record, "tokenizer": WordTokenizer(**record["tokenizer"])}
        return Recipe(**given)
    except (TypeError, KeyError, HeedfulError) as error:
        raise NotApplicable(f"the model's recipe cannot be followed: {error}") from error


@dataclass(frozen=True, eq=False)
class TrainedVariant:
    """A trained subject and the record of its training."""

    subject: Subject
    record: dict[str, Any]


@contextmanager
def single_thread() -> Iterator[None]:
    """Run torch on one thread: another order of sums would train another model."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
