"""Trained cases of the planted benchmark: taught from a seed, and their truth proved by trial."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np

from heedful.core.errors import ConfigError, UnknownName
from heedful.core.rng import generator
from heedful.models.protocols import Subject
from heedful.planted.closed_form.base import PlantedSubject, Truth
from heedful.planted.closed_form.texts import draw_rows
from heedful.planted.trained import inert, mixed_states, per_word
from heedful.planted.trained.base import TRAINED_LENGTHS, TrainedKind, TrainedSetting, make_truth
from heedful.planted.trained.bounds import BoundResult, evaluate_bounds
from heedful.planted.trained.measure import measure_texts

TRAINED_KINDS: Mapping[str, TrainedKind] = MappingProxyType(
    {
        "trained-peaked": TrainedKind(
            make_truth(used=True, ranks=True, exclusive=True), per_word.train_peaked
        ),
        "trained-graded": TrainedKind(
            make_truth(used=True, ranks=True, exclusive=None), per_word.train_graded
        ),
        "trained-beside": TrainedKind(
            make_truth(used=True, ranks=False, exclusive=None), mixed_states.train_neighbours
        ),
        "trained-away": TrainedKind(
            make_truth(used=None, ranks=False, exclusive=None), mixed_states.train_away_from_cue
        ),
        "trained-leaky": TrainedKind(
            make_truth(used=False, ranks=False, exclusive=False), inert.train_leaky
        ),
        "trained-late": TrainedKind(
            make_truth(used=False, ranks=None, exclusive=False), inert.train_late
        ),
    }
)
MAX_ATTEMPTS = 8  # trainings at most, until one keeps all bounds
PROOF_TEXTS = 64  # texts that a truth is proved on; an audit has others


@dataclass(frozen=True, eq=False)
class TrainingAttempt:
    """What came of a training: the subject, the texts it was tried on, and how its proof stands."""

    plant: PlantedSubject
    texts: tuple[str, ...]
    proof: tuple[BoundResult, ...]
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
        if self.kind not in TRAINED_KINDS:
            raise UnknownName(f"No trained kind is named {self.kind!r}. Known: {_known_kinds()}.")
        if self.length not in TRAINED_LENGTHS:
            raise ConfigError(f"Length must be one of {TRAINED_LENGTHS}; got {self.length!r}.")

    @property
    def truth(self) -> Truth:
        """Whether each claim holds, as was proved; None where it is reported, not scored."""
        return TRAINED_KINDS[self.kind].truth

    @property
    def subject(self) -> Subject:
        """The subject, as `heedful.audit` takes it."""
        return self.accepted_attempt.plant.subject

    @property
    def redrawn(self) -> int:
        """How many trainings were given up because their proof failed."""
        return self.accepted_attempt.redrawn

    @cached_property
    def accepted_attempt(self) -> TrainingAttempt:
        """The first training that keeps all bounds."""
        for attempt in range(MAX_ATTEMPTS):
            accepted_attempt = self._attempt(attempt)
            if not accepted_attempt.broken:
                return accepted_attempt
        raise ConfigError(
            f"None of {MAX_ATTEMPTS} trainings of {self} keeps its bounds; the last one breaks: "
            f"{'; '.join(accepted_attempt.broken)}. Choose another seed."
        )

    def texts(self, count: int) -> list[dict[str, str]]:
        """Rows of text and label, the subject's own output: data for `heedful.audit`."""
        return self._rows(self.accepted_attempt.plant, "text", count)

    def _attempt(self, attempt: int) -> TrainingAttempt:
        plant = TRAINED_KINDS[self.kind].taught(
            TrainedSetting(self.kind, self.length, self.seed, attempt)
        )
        texts = tuple(row["text"] for row in self._rows(plant, "trial", PROOF_TEXTS))
        return TrainingAttempt(
            plant, texts, tuple(evaluate_bounds(measure_texts(plant, texts), self.truth)), attempt
        )

    def _rows(self, plant: PlantedSubject, purpose: str, count: int) -> list[dict[str, str]]:
        def stream(index: int) -> np.random.Generator:
            return TrainedSetting(self.kind, self.length, self.seed, index).draw(purpose)

        return draw_rows(plant, count, length=self.length, stream=stream)


def trained_cases(seed: int, count: int, kinds: Sequence[str] | None = None) -> list[TrainedCase]:
    """`count` trained cases drawn from a seed: kinds take turns, and so do lengths within a kind.

    Fewer cases are the first of more.

    >>> [one.kind for one in trained_cases(0, 3, ["trained-late", "trained-away"])]
    ['trained-late', 'trained-away', 'trained-late']
    """
    names = tuple(TRAINED_KINDS) if kinds is None else tuple(kinds)
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


def _known_kinds() -> str:
    return ", ".join(TRAINED_KINDS)
