"""Checks that retrain the model and see all texts at once."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from annotated_types import Ge, Le
from jaxtyping import Float
from torch import Tensor

from heedful.checks.base import Findings
from heedful.core.cache import LRUCache
from heedful.core.errors import NotApplicable
from heedful.core.records import Measurement
from heedful.core.settings import MOST_MODELS, Ceiling
from heedful.core.timing import Clock
from heedful.data.batching import batches_for
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import Subject
from heedful.numerics.tensor.distributions import jsd
from heedful.results.tables import TextValues
from heedful.training.loop.epochs import EarlyStopping
from heedful.training.loop.predictions import Predictions
from heedful.training.variants.texts import EncodedTexts
from heedful.training.variants.variants import TrainedVariant, Variant

SeedCount = Annotated[int, Ge(2), Le(MOST_MODELS), Ceiling()]  # an interval takes two
PREDICTIONS = 8  # retrained models whose outputs and attention on all texts are kept
VariantT = TypeVar("VariantT", bound=Variant)


@dataclass(frozen=True, eq=False)
class RetrainingContext:
    """The base model, the audited texts, the dev texts, and every retrained model."""

    base: Subject
    texts: EncodedTexts
    dev: EncodedTexts
    trained: Callable[[Variant], TrainedVariant]
    seed: int = 0
    max_batch_tokens: int = 20_000
    clock: Clock = field(default_factory=Clock)
    base_seed: int = 0  # the seed the base model was trained with
    predictions: LRUCache[Variant, Predictions] = field(
        default_factory=lambda: LRUCache(PREDICTIONS)
    )

    def seeds(self, count: int) -> list[int]:
        """That many seeds, without the base model's own, which would give the base model again."""
        return [seed for seed in range(1, count + 2) if seed != self.base_seed][:count]

    def predict(self, variant: Variant) -> Predictions:
        """The outputs and the attention of a retrained model on the audited texts."""
        return self.predictions.get(
            variant, lambda: self.texts.predict_with(self.trained(variant).subject)
        )

    def batches(self) -> Iterator[tuple[list[int], BatchContext]]:
        """The audited texts in batches, as the base model reads them."""
        encoded, budget = self.texts.encoded, self.max_batch_tokens
        for rows in batches_for(self.base, encoded, max_batch_tokens=budget):
            batch = self.base.batch([encoded[row] for row in rows])
            yield rows, BatchContext(self.base, batch, self.seed, budget, self.clock)

    def attention_distance(self, variant: Variant) -> Float[Tensor, "n"]:
        """The distance of its attention from the base model's, in JSD."""
        return jsd(self.predict(variant).padded(), self.texts.base_predictions.padded())

    def score(self, variant: Variant) -> TextValues:
        """1 where a retrained model predicts the label of an audited text, else 0."""
        return self.correct(self.predict(variant).probabilities)

    def correct(self, outputs: Float[Tensor, "n C"]) -> TextValues:
        """1 where the most probable class is the label, else 0."""
        gold = torch.tensor([one.label for one in self.texts.encoded])
        if bool((gold < 0).any()):
            raise NotApplicable("the texts have no labels to score by")
        found: TextValues = (outputs.argmax(-1) == gold).numpy().astype(np.float64)
        return found


@runtime_checkable
class RetrainingCheck(Protocol):
    """A check that retrains the model and sees all texts at once."""

    def variants(self, retraining: RetrainingContext) -> Sequence[Variant]:
        """The models to retrain; raises NotApplicable where the model does not allow it."""

    def examine(self, retraining: RetrainingContext) -> Findings:
        """The measurements on all texts, once the models are trained."""


class Paced:
    """A check with settings for when training stops."""

    epochs: int
    patience: int

    @property
    def pace(self) -> EarlyStopping:
        """When training stops."""
        return EarlyStopping(self.epochs, self.patience)


def to_findings(measured: Iterable[Measurement], columns: Mapping[str, TextValues]) -> Findings:
    """Measurements with a setting or a seed, then the columns that have neither."""
    return Findings((*measured, *(Measurement(*one) for one in columns.items())))


def choose_within(
    variants: Sequence[VariantT], costs: Sequence[float], *, limit: float, losses: Sequence[float]
) -> VariantT:
    """The variant of least loss among those whose cost is within the limit; else of least cost."""
    within = [place for place, cost in enumerate(costs) if cost <= limit]
    if not within:
        return variants[int(np.argmin(costs))]
    return variants[min(within, key=losses.__getitem__)]
