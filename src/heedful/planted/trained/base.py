"""What every trained kind is made of: its setting, its truth, and the way it is taught."""

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from heedful.core.rng import generator
from heedful.planted.closed_form.base import PlantedSubject, Truth

TRAINED_VERSION = 1  # raised whenever a kind, a text or a truth comes out otherwise
TRAINED_LENGTHS = (10, 20)  # words of a text on average: what a small BiLSTM learns in a second


@dataclass(frozen=True)
class TrainedSetting:
    """Where a subject stands; its numbers follow from it and nothing else."""

    kind: str
    length: int
    seed: int
    attempt: int = 0

    def draw(self, purpose: str) -> np.random.Generator:
        """The stream that belongs to one purpose; another attempt has other streams."""
        named = f"trained {TRAINED_VERSION} {self.kind} {self.length} {purpose}"
        return generator(self.seed, named, self.attempt)


@dataclass(frozen=True)
class TrainedKind:
    """A way to teach, and the truth that has to be proved of what comes of it."""

    truth: Truth
    taught: Callable[[TrainedSetting], PlantedSubject]


def make_truth(*, used: bool | None, ranks: bool | None, exclusive: bool | None) -> Truth:
    """What is claimed of a kind; None: reported, not scored."""
    return MappingProxyType({"used": used, "ranks": ranks, "exclusive": exclusive})
