"""Trained cases of the planted benchmark: taught from a seed, and their truth proved by trial."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np

from heedful.core.errors import ConfigError, UnknownName
from heedful.core.rng import generator
from heedful.models.protocols import Subject
from heedful.planted.closed_form.base import Plant, Truth
from heedful.planted.closed_form.texts import drawn_rows
from heedful.planted.trained import inert, mixed_states, per_word
from heedful.planted.trained.base import TRAINED_LENGTHS, Kind, Setting, truth
from heedful.planted.trained.bounds import Held, proof
from heedful.planted.trained.measure import tried

TRAINED: Mapping[str, Kind] = MappingProxyType(
    {
        "trained-peaked": Kind(truth(used=True, ranks=True, exclusive=True), per_word.peaked),
        "trained-graded": Kind(truth(used=True, ranks=True, exclusive=None), per_word.graded),
        "trained-beside": Kind(truth(used=True, ranks=False, exclusive=None), mixed_states.beside),
        "trained-away": Kind(truth(used=None, ranks=False, exclusive=None), mixed_states.away),
        "trained-leaky": Kind(truth(used=False, ranks=False, exclusive=False), inert.leaky),
        "trained-late": Kind(truth(used=False, ranks=None, exclusive=False), inert.late),
    }
)
ATTEMPTS = 8  # trainings at most, until one keeps all bounds
TRIAL = 64  # texts that a truth is proved on; an audit has others


@dataclass(frozen=True, eq=False)
class Grown:
    """What came of a training: the subject, the texts it was tried on, and how its proof stands."""

    plant: Plant
    texts: tuple[str, ...]
    proof: tuple[Held, ...]
    redrawn: int

    @property
    def broken(self) -> list[str]:
        """The bounds that it does not keep."""
        return [str(one) for one in self.proof if not one.holds]


@dataclass(frozen=True)
class TrainedCase:
    """One trained subject, its truth, and its texts; it is trained when asked for, in a second.

    >>> TrainedCase("trained-leaky", 10, seed=3).truth["used"]
    False
    """

    kind: str
    length: int
    seed: int

    def __post_init__(self) -> None:
        if self.kind not in TRAINED:
            raise UnknownName(f"No trained kind is named {self.kind!r}. Known: {_named()}.")
        if self.length not in TRAINED_LENGTHS:
            raise ConfigError(f"Length must be one of {TRAINED_LENGTHS}; got {self.length!r}.")

    @property
    def truth(self) -> Truth:
        """Whether each claim holds, as was proved; None where it is reported, not scored."""
        return TRAINED[self.kind].truth

    @property
    def subject(self) -> Subject:
        """The subject, as `heedful.audit` takes it."""
        return self.grown.plant.subject

    @property
    def redrawn(self) -> int:
        """How many trainings were given up because their proof failed."""
        return self.grown.redrawn

    @cached_property
    def grown(self) -> Grown:
        """The first training that keeps all bounds."""
        for attempt in range(ATTEMPTS):
            grown = self._attempt(attempt)
            if not grown.broken:
                return grown
        raise ConfigError(
            f"None of {ATTEMPTS} trainings of {self} keeps its bounds; the last one breaks: "
            f"{'; '.join(grown.broken)}. Choose another seed."
        )

    def texts(self, count: int) -> list[dict[str, str]]:
        """Rows of text and label, the subject's own output: data for `heedful.audit`."""
        return self._rows(self.grown.plant, "text", count)

    def _attempt(self, attempt: int) -> Grown:
        plant = TRAINED[self.kind].taught(Setting(self.kind, self.length, self.seed, attempt))
        texts = tuple(row["text"] for row in self._rows(plant, "trial", TRIAL))
        return Grown(plant, texts, tuple(proof(tried(plant, texts), self.truth)), attempt)

    def _rows(self, plant: Plant, purpose: str, count: int) -> list[dict[str, str]]:
        def stream(index: int) -> np.random.Generator:
            return Setting(self.kind, self.length, self.seed, index).draw(purpose)

        return drawn_rows(plant, count, length=self.length, stream=stream)


def trained_cases(seed: int, count: int, kinds: Sequence[str] | None = None) -> list[TrainedCase]:
    """`count` trained cases drawn from a seed: kinds take turns, and so do lengths within a kind.

    Fewer cases are the first of more.

    >>> [one.kind for one in trained_cases(0, 3, ["trained-late", "trained-away"])]
    ['trained-late', 'trained-away', 'trained-late']
    """
    names = tuple(TRAINED) if kinds is None else tuple(kinds)
    if not names:
        raise ConfigError("No kinds were given; leave kinds out to have all of them.")
    made = []
    for index in range(count):
        name, turn = names[index % len(names)], index // len(names)
        order = generator(seed, f"trained lengths {name}").permutation(len(TRAINED_LENGTHS))
        length = TRAINED_LENGTHS[order[turn % len(order)]]
        own = int(generator(seed, f"trained case {name}", turn).integers(2**31))
        made.append(TrainedCase(name, length, own))
    return made


def _named() -> str:
    return ", ".join(TRAINED)
