"""Kinds of the planted benchmark whose truth is known by sets of words, and cases drawn from them.

A word matters in a text if adding it to some set of the other words changes the output, and never
matters if it changes the output of none. Of two words the first has at least the influence of the
second if, whatever other words are there, adding it changes the output at least as much. Nothing
else is used to define the truth: no method of explanation, and no single deletion.

*used*: other weights on the words of a text change the output. *ranks*: attention puts the words
with more influence above those with less, and those that matter above those that never do.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Literal

import numpy as np
import torch

from heedful.core.errors import ConfigError, UnknownName
from heedful.core.rng import generator
from heedful.core.values import Example
from heedful.models.protocols import Subject

INFLUENCE_VERSION = 3  # raise it with every change of a subject, a text or a truth
LABELLING_TEXTS = 64  # texts labelled in one forward pass
MixtureClaim = Literal["used", "ranks"]
MixtureSplit = Literal["class", "length", "confidence", "leverage", "other"]


@dataclass(frozen=True, slots=True)
class KnownText:
    """A text, and which of its words matter.

    Args:
        text: The words, separated by spaces.
        tiers: Positions of the words that matter, in tiers: each word of a tier has at least the
            influence of every word of a later one, and words of one tier are not compared. Words
            in no tier never matter.
        question: The second text, where the subject reads one.
        part: Of a mixed kind, the part of the texts it belongs to; empty elsewhere.
    """

    text: str
    tiers: tuple[tuple[int, ...], ...]
    question: str | None = None
    part: str = ""

    @property
    def decisive(self) -> frozenset[int]:
        """The positions of all words that matter."""
        return frozenset(position for tier in self.tiers for position in tier)

    def example(self, index: int) -> Example:
        """The input of `Subject.encode`."""
        return Example(index, self.text, -1, pair=self.question)


@dataclass(frozen=True, slots=True)
class Mixture:
    """How a mixed kind divides its texts: a claim holds for one part of them, and not for another.

    Args:
        claim: The claim that is mixed.
        split: What divides the texts: the predicted class, their length, the confidence of the
            output, whether attention has any effect, or something else.
        holds: The part for which the claim holds.
        fails: The part for which it does not.
    """

    claim: MixtureClaim
    split: MixtureSplit
    holds: str
    fails: str


@dataclass(frozen=True, slots=True)
class InfluenceTruth:
    """The truth of a kind; None: not scored, or mixed as `mixture` says."""

    used: bool | None
    ranks: bool | None
    mixture: Mixture | None = None


@dataclass(frozen=True)
class InfluenceSetting:
    """What determines a subject of a kind."""

    kind: str
    length: int
    seed: int
    attempt: int = 0  # of trained kinds: how many trainings were discarded before

    def draw(self, purpose: str) -> np.random.Generator:
        """The random stream for one purpose; each attempt has its own."""
        again = f" attempt {self.attempt}" if self.attempt else ""
        return generator(self.seed, f"planted {INFLUENCE_VERSION} {self.kind} {purpose}{again}")


@dataclass(frozen=True, eq=False)
class PlantedModel:
    """A subject and how its texts are drawn: from a random stream and a mean number of words.

    `redrawn` counts the trainings that were discarded because they broke a bound of the truth.
    """

    subject: Subject
    draw: Callable[[np.random.Generator, int], KnownText]
    redrawn: int = 0


BuildModel = Callable[[InfluenceSetting], PlantedModel]


@dataclass(frozen=True)
class InfluenceKind:
    """A way to build subjects, and their truth.

    `lengths` are mean numbers of words that its texts may have; `short`, if not 0, is one at which
    all sets of words can be enumerated. The weights of a `trained` subject are learnt, and its
    truth is tested on every one.
    """

    name: str
    family: str
    architecture: str
    truth: InfluenceTruth
    lengths: tuple[int, ...]
    short: int
    build: BuildModel
    trained: bool = False

    @property
    def why(self) -> str:
        """Why its truth holds."""
        return (self.build.__doc__ or "").strip()


_KINDS: dict[str, InfluenceKind] = {}


def influence_kind(
    name: str,
    family: str,
    *,
    used: bool | None,
    ranks: bool | None,
    mixture: Mixture | None = None,
    architecture: str = "recurrent",
    lengths: tuple[int, ...] = (10, 20, 40),
    short: int = 7,
    trained: bool = False,
) -> Callable[[BuildModel], BuildModel]:
    """Register a way to build subjects with its truth; its docstring says why the truth holds."""

    def register(build: BuildModel) -> BuildModel:
        if name in _KINDS:
            raise ConfigError(f"Two planted kinds want the name {name!r}; choose another.")
        truth = InfluenceTruth(used, ranks, mixture)
        _KINDS[name] = InfluenceKind(
            name, family, architecture, truth, lengths, short, build, trained
        )
        return build

    return register


def influence_kinds() -> Mapping[str, InfluenceKind]:
    """Every kind by name."""
    return MappingProxyType(_KINDS)


@dataclass(frozen=True)
class InfluenceCase:
    """One subject of a kind, its truth and its texts; the subject is built on first use."""

    kind: str
    length: int
    seed: int

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise UnknownName(f"No planted kind is named {self.kind!r}. Known: {', '.join(_KINDS)}")

    @property
    def about(self) -> InfluenceKind:
        """Its kind."""
        return _KINDS[self.kind]

    @property
    def truth(self) -> InfluenceTruth:
        """Which claims hold."""
        return self.about.truth

    @cached_property
    def model(self) -> PlantedModel:
        """The subject and how its texts are drawn."""
        return self.about.build(InfluenceSetting(self.kind, self.length, self.seed))

    @property
    def subject(self) -> Subject:
        """The subject, ready for `heedful.audit`."""
        return self.model.subject

    def known(self, count: int, *, length: int | None = None) -> list[KnownText]:
        """The first `count` texts with their truth; of another mean length for proofs."""
        mean = length or self.length
        key = f"planted {INFLUENCE_VERSION} {self.kind} {mean} text"
        return [self.model.draw(generator(self.seed, key, index), mean) for index in range(count)]

    def texts(self, count: int) -> list[dict[str, str]]:
        """The first `count` rows of text and label (the subject's own output).

        Kinds with questions give rows of paragraph, question and label.
        """
        known, labels = self.known(count), self.subject.labels
        numbers = [
            number
            for start in range(0, count, LABELLING_TEXTS)
            for number in predict(self.subject, known[start : start + LABELLING_TEXTS])
        ]
        return [_row(one, labels[number]) for one, number in zip(known, numbers, strict=True)]


def predict(subject: Subject, texts: Sequence[KnownText]) -> list[int]:
    """The predicted class of each text."""
    encoded = [subject.encode(one.example(index)) for index, one in enumerate(texts)]
    with torch.no_grad():
        predicted: list[int] = subject.forward(subject.batch(encoded)).predicted.tolist()
    return predicted


def influence_cases(
    seed: int, count: int, kinds: Sequence[str] | None = None
) -> list[InfluenceCase]:
    """Draw `count` cases from a seed: kinds take turns, and so do lengths within a kind.

    The first cases do not depend on `count`. `kinds` are all by default.
    """
    return list(_draw_cases(seed, count, tuple(_KINDS) if kinds is None else tuple(kinds)))


def _draw_cases(seed: int, count: int, names: Sequence[str]) -> Iterator[InfluenceCase]:
    for index in range(count):
        name, turn = names[index % len(names)], index // len(names)
        lengths = _KINDS[name].lengths
        order = generator(seed, f"planted lengths {name}").permutation(len(lengths))
        own = int(generator(seed, f"planted case {name}", turn).integers(2**31))
        yield InfluenceCase(name, lengths[order[turn % len(lengths)]], own)


def _row(known: KnownText, label: str) -> dict[str, str]:
    if known.question is None:
        return {"text": known.text, "label": label}
    return {"paragraph": known.text, "question": known.question, "label": label}
