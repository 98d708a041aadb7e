"""What every planted kind is made of: its setting, its plant, and its truth."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from heedful.core.registry import Registry
from heedful.core.rng import generator
from heedful.models.protocols import Subject
from heedful.planted.hand_built import VOCABULARY_SIZE

PLANTED_VERSION = 2  # raised whenever a subject, a text or a truth comes out otherwise
DIFFICULTIES = ("easy", "middle", "hard")
LENGTHS = (10, 20, 60, 200)  # words of a text on average; texts have half as many up to half more

PlantedClaim = Literal["used", "ranks", "exclusive"]
Truth = Mapping[PlantedClaim, bool | None]  # None: reported, not scored
WordNumbers = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """Where a subject stands in the benchmark; its numbers follow from it and nothing else."""

    kind: str
    difficulty: str
    length: int
    seed: int

    @property
    def name(self) -> str:
        """What draws are keyed by, beside the seed."""
        return f"planted {PLANTED_VERSION} {self.kind} {self.difficulty} {self.length}"

    @property
    def longest(self) -> int:
        """The most words that a text of this length has."""
        return self.length + self.length // 2

    @property
    def growth(self) -> float:
        """√(length / 20): how sums of as many random terms grow."""
        return float(np.sqrt(self.length / 20))

    @cached_property
    def draw(self) -> np.random.Generator:
        """The stream that the subject's numbers are drawn from."""
        return generator(self.seed, self.name)

    def pick(self, easy: float, middle: float, hard: float) -> float:
        """The value that belongs to the difficulty."""
        return dict(zip(DIFFICULTIES, (easy, middle, hard), strict=True))[self.difficulty]

    def even(self, low: float, high: float) -> WordNumbers:
        """A number for every word, each value between the two as likely."""
        return self.draw.uniform(low, high, VOCABULARY_SIZE)

    def normal(self, scale: float) -> WordNumbers:
        """A number for every word, normally distributed around their mean of 0.

        Were the mean off 0, the sums over long texts would nearly all be of one sign.
        """
        drawn: WordNumbers = self.draw.normal(0.0, scale, VOCABULARY_SIZE)
        return drawn - float(drawn.mean())

    def signs(self) -> WordNumbers:
        """−1 and 1 by turns: word 0 speaks for the first class, word 1 for the second, …"""
        return np.where(np.arange(VOCABULARY_SIZE) % 2, 1.0, -1.0)


@dataclass(frozen=True, eq=False)
class PlantedSubject:
    """A subject and how its texts are drawn.

    Its first `cues` words are decisive: each text holds one of them, `times` times. Log-odds of a
    text lie within ± `bound`: others are drawn anew. Of so many questions as it `asks` each text
    has one.
    """

    subject: Subject
    cues: int = 0
    times: int = 1
    bound: float = float("inf")
    questions: int = 0


@dataclass(frozen=True)
class PlantedKind:
    """A way to plant, and the truth about it; its documentation says why that is the truth."""

    truth: Truth
    plant: Callable[[Setting], PlantedSubject]


kinds = Registry("planted kind")


def register_kind(
    name: str, *, used: bool | None, ranks: bool | None, exclusive: bool | None
) -> Callable[[Callable[[Setting], PlantedSubject]], Callable[[Setting], PlantedSubject]]:
    """Name a way to plant, and commit its truth."""
    truth: Truth = MappingProxyType({"used": used, "ranks": ranks, "exclusive": exclusive})

    def remember(plant: Callable[[Setting], PlantedSubject]) -> Callable[[Setting], PlantedSubject]:
        def made() -> PlantedKind:
            return PlantedKind(truth, plant)

        made.__doc__ = plant.__doc__
        kinds.register(name)(made)
        return plant

    return remember
