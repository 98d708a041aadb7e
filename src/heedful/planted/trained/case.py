"""Trained cases of the planted benchmark: trained from a seed, with the truth tested by bounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from heedful.core.errors import ConfigError, UnknownName
from heedful.models.protocols import Subject
from heedful.planted.case import Truth, draw_cells
from heedful.planted.texts import PlantedSubject, draw_rows
from heedful.planted.trained.bounds import BoundResult, evaluate_bounds, measure_texts
from heedful.planted.trained.kinds import TRAINED_KINDS
from heedful.planted.trained.train import TRAINED_LENGTHS, TrainedSetting

MAX_ATTEMPTS = 8  # trainings at most, until one keeps all bounds
PROOF_TEXTS = 64  # texts on which the bounds are evaluated; `TrainedCase.texts` draws others


@dataclass(frozen=True, eq=False)
class TrainingAttempt:
    """The result of a training: the subject, the texts it was tested on, and its bounds."""

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
    """One trained subject, its truth and its texts; it is trained on first use, in a second.

    >>> TrainedCase("trained-leaky", 10, seed=3).truth["used"]
    False
    """

    kind: str
    length: int
    seed: int

    def __post_init__(self) -> None:
        if self.kind not in TRAINED_KINDS:
            raise UnknownName.among("trained kind", self.kind, TRAINED_KINDS)
        if self.length not in TRAINED_LENGTHS:
            raise ConfigError(f"Length must be one of {TRAINED_LENGTHS}; got {self.length!r}.")

    @property
    def truth(self) -> Truth:
        """Whether each claim holds, as tested; None: reported, not scored."""
        return TRAINED_KINDS[self.kind].truth

    @property
    def subject(self) -> Subject:
        """The subject, ready for `heedful.audit`."""
        return self.accepted_attempt.plant.subject

    @property
    def redrawn(self) -> int:
        """How many trainings were discarded because they broke a bound."""
        return self.accepted_attempt.redrawn

    @cached_property
    def accepted_attempt(self) -> TrainingAttempt:
        """The first training that keeps all bounds."""
        for number in range(MAX_ATTEMPTS):
            attempt = self._attempt(number)
            if not attempt.broken:
                return attempt
        raise ConfigError(
            f"None of {MAX_ATTEMPTS} trainings of {self} keeps its bounds; the last one breaks: "
            f"{'; '.join(attempt.broken)}. Choose another seed."
        )

    def texts(self, count: int) -> list[dict[str, str]]:
        """The first `count` rows of text and label (the subject's own output)."""
        return self._rows(self.accepted_attempt.plant, "text", count)

    def _attempt(self, number: int) -> TrainingAttempt:
        setting = TrainedSetting(self.kind, self.length, self.seed, number)
        plant = TRAINED_KINDS[self.kind].train(setting)
        texts = tuple(row["text"] for row in self._rows(plant, "trial", PROOF_TEXTS))
        proof = tuple(evaluate_bounds(measure_texts(plant, texts), self.truth))
        return TrainingAttempt(plant, texts, proof, number)

    def _rows(self, plant: PlantedSubject, purpose: str, count: int) -> list[dict[str, str]]:
        def stream(index: int) -> np.random.Generator:
            return TrainedSetting(self.kind, self.length, self.seed, index).draw(purpose)

        return draw_rows(plant, count, length=self.length, stream=stream)


def trained_cases(seed: int, count: int, kinds: Sequence[str] | None = None) -> list[TrainedCase]:
    """Draw `count` trained cases from a seed: kinds take turns, and so do lengths within a kind.

    The first cases do not depend on `count`. `kinds` are all of `TRAINED_KINDS` by default.

    >>> [one.kind for one in trained_cases(0, 3, ["trained-late", "trained-away"])]
    ['trained-late', 'trained-away', 'trained-late']
    """
    names = tuple(TRAINED_KINDS) if kinds is None else tuple(kinds)
    keys = ("trained lengths", "trained case")
    drawn = draw_cells(seed, count, names, TRAINED_LENGTHS, keys=keys)
    return [TrainedCase(name, length, own) for name, length, own in drawn]
