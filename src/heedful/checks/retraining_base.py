"""The other kind of check: one that has models made anew and looks at all texts at once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.checks.base import Findings, TextValues
from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.records import Claim
from heedful.core.timing import Clock
from heedful.models.protocols import Subject
from heedful.numerics.tensor.distributions import jsd
from heedful.training.loop.predictions import Predictions
from heedful.training.variants.context import EncodedTexts, TrainedVariant
from heedful.training.variants.variants import Variant

SeedAverages = Mapping[str, Literal["mean", "median"]]


@dataclass(frozen=True, eq=False)
class RetrainingContext:
    """The base model, the texts under audit, the dev texts, and every subject made anew."""

    base: Subject
    texts: EncodedTexts
    dev: EncodedTexts
    trained: Callable[[Variant], TrainedVariant]
    seed: int = 0
    max_batch_tokens: int = 20_000
    clock: Clock = field(default_factory=Clock)
    base_seed: int = 0  # the one the base model was made with

    def seeds(self, count: int) -> list[int]:
        """So many seeds, none of them the base model's own: that would be the base model again."""
        return [seed for seed in range(1, count + 2) if seed != self.base_seed][:count]

    def outlook(self, variant: Variant) -> Predictions:
        """What a subject made anew says of the texts under audit, and where it looks."""
        return self.texts.predict_with(self.trained(variant).subject)

    def apart(self, variant: Variant) -> Float[Tensor, "n"]:
        """How far its attention lies from the base model's, in JSD."""
        return jsd(self.outlook(variant).padded(), self.texts.base_predictions.padded())

    def right(self, outputs: Float[Tensor, "n C"]) -> TextValues:
        """1 where the likeliest class is the label, else 0."""
        gold = torch.tensor([one.label for one in self.texts.encoded])
        if bool((gold < 0).any()):
            raise NotApplicable("the texts have no labels to score by")
        found: TextValues = (outputs.argmax(-1) == gold).numpy().astype(np.float64)
        return found


@runtime_checkable
class RetrainingCheck(Protocol):
    """A question that takes models made anew.

    Measures in `t_interval_over_seeds` have a row for each seed beside their mean (or median) over seeds, and
    intervals over seeds and texts; `differences` are between two of them, or of two measures of the
    same texts.
    """

    claim: ClassVar[Claim | None]
    head_measures: ClassVar[tuple[str, ...]]
    beside: ClassVar[tuple[str, ...]]

    @property
    def over_seeds(self) -> SeedAverages: ...

    @property
    def differences(self) -> Mapping[str, tuple[str, str]]: ...

    @property
    def measures(self) -> tuple[str, ...]: ...

    def lessons(self, trial: RetrainingContext) -> Sequence[Variant]:
        """Whom it wants to see; NotApplicable where that makes no sense for the base model."""
        ...

    def examine(self, trial: RetrainingContext) -> Findings:
        """What all texts show once the subjects are there."""
        ...


def require_seeds(seeds: int, *, least: int = 2) -> None:
    """Refuse too few seeds for an interval."""
    if seeds < least:
        raise ConfigError(f"seeds must be at least {least}, not {seeds}.")


def seed_setting(seed: int) -> str:
    """How the rows of one seed are marked."""
    return f"seed {seed}"
