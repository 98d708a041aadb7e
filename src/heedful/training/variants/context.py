"""Where subjects are made anew: the base model, its training texts, and what is known of them."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
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
    """Some texts as the base model reads them, and what it makes of them.

    What a subject makes of them is in `seen` as long as the subject is in memory.
    """

    base: Subject
    examples: Sequence[Example]
    min_words: int
    mark: HiddenWordMarker
    kept: dict[HiddenWords, list[Tensor]] = field(default_factory=dict)
    seen: MutableMapping[Subject, Predictions] = field(default_factory=WeakKeyDictionary)
    scored: ScoreCache = field(default_factory=dict)

    @cached_property
    def _both(self) -> list[tuple[Example, Encoded]]:
        both = ((one, self.base.encode(one)) for one in self.examples)
        return [pair for pair in both if pair[1].explained_tokens >= self.min_words]

    @cached_property
    def encoded(self) -> list[Encoded]:
        """The texts that are long enough."""
        return [encoded for _, encoded in self._both]

    @property
    def outlook(self) -> Predictions:
        """What the base model says, and where it looks."""
        return self.seen_by(self.base)

    def seen_by(self, subject: Subject) -> Predictions:
        """What a subject says, and where it looks; looked at once."""
        if subject not in self.seen:
            self.seen[subject] = predict_all(subject, self.encoded)
        return self.seen[subject]

    def hidden(self, hidden: HiddenWords) -> list[Bool[Tensor, "_"]]:
        """For each text which of its tokens are hidden."""
        if hidden not in self.kept:
            examples = [example for example, _ in self._both]
            self.kept[hidden] = self.mark(hidden, self.base, examples, self.encoded, self.scored)
        return self.kept[hidden]

    def shuffled(self, seed: int) -> "EncodedTexts":
        """The texts with each other's labels, dealt out by the seed; classes stay as frequent."""
        order = generator(seed, "shuffled labels").permutation(len(self.examples)).tolist()
        examples = [
            replace(one, label=self.examples[place].label)
            for one, place in zip(self.examples, order, strict=True)
        ]
        return EncodedTexts(self.base, examples, self.min_words, self.mark)

    def without(self, hidden: HiddenWords, blank: int) -> list[Encoded]:
        """The texts with their hidden tokens deleted."""
        pairs = zip(self.encoded, self.hidden(hidden), strict=True)
        return [delete_hidden(one, marks, blank=blank) for one, marks in pairs]


@dataclass(frozen=True, eq=False)
class TrainingContext:
    """All that a lesson may use. `taught` gives the subject of another lesson.

    `tuning` is the recipe by which a transformer came about.
    """

    base: Subject
    train: EncodedTexts
    dev: EncodedTexts
    trained: Callable[[Any], Subject]
    tuning: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def recipe(self) -> Recipe:
        """How the base model came about."""
        return read_recipe(self.base)


def read_recipe(base: Subject) -> Recipe:
    """The recipe in the history of an attention classifier, to be followed again."""
    if not isinstance(base, RecurrentSubject):
        raise NotApplicable(f"{base.family} does not say how to train another one like it")
    record: Mapping[str, Any] = base.history.get("recipe", {})
    if not record:
        raise NotApplicable("the model does not say how it was trained")
    try:
        given = {**record, "tokenizer": WordTokenizer(**record["tokenizer"])}
        return Recipe(**given)
    except (TypeError, KeyError, HeedfulError) as error:
        raise NotApplicable(f"the model's recipe cannot be followed: {error}") from error


@dataclass(frozen=True, eq=False)
class TrainedVariant:
    """What a lesson made, and how that went."""

    subject: Subject
    record: dict[str, Any]


@dataclass(frozen=True)
class CheckpointSlot:
    """Where a lesson keeps what it needs to go on, and whom it tells how far it is."""

    kept: CheckpointFolder | None = None
    progress: Progress = no_progress

    @classmethod
    def at(cls, folder: Path, key: str, progress: Progress) -> "CheckpointSlot":
        """A desk in a folder of its own."""
        return cls(CheckpointFolder(folder, {"lesson": key}), progress)


@contextmanager
def single_thread() -> Iterator[None]:
    """Inside, torch computes on one thread: sums in another order would train another model."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
