"""Does learned attention beat uniform? (Wiegreffe & Pinter, 2019, section 3.2)"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from heedful.checks.base import Findings, TextValues, checks
from heedful.checks.interventions.simple import UniformWeights
from heedful.checks.retraining_base import (
    RetrainingContext,
    SeedAverages,
    require_seeds,
    seed_setting,
)
from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.records import Claim, Measurement
from heedful.data.batching import batches_for
from heedful.models.batch_context import BatchContext
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.numerics.tensor.distributions import tvd
from heedful.training.variants.variants import EarlyStopping, RetrainedVariant

ATTENTION_BY_MEASURE = {"score_trained": "own", "score_uniform": "uniform"}


@checks.register("necessity")
@dataclass(frozen=True)
class Necessity:
    """Does learned attention beat uniform?

    The base model's recipe is followed again, `seeds` times with its attention and as often with
    attention frozen to uniform, each until the dev score has not risen for `patience` epochs.
    `gain` is the difference of the two accuracies; whether it is less than `margin` is asked by two
    one-sided tests. `uniform_swap_tvd` is another question: how far the output of the model as it
    is moves when uniform attention is imposed on it. A model can use its attention decisively
    though one trained without would do as well. `score_base` is the accuracy of the model itself:
    models made anew that do not reach it are not its like.
    """

    seeds: int = 5
    margin: float = 0.01
    epochs: int = 40
    patience: int = 5
    claim: ClassVar[Claim | None] = "needed"
    measures: ClassVar[tuple[str, ...]] = (
        "score_trained",
        "score_uniform",
        "gain",
        "uniform_swap_tvd",
        "score_base",
    )
    head_measures: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[tuple[str, ...]] = ()
    over_seeds: ClassVar[SeedAverages] = {"score_trained": "mean", "score_uniform": "mean"}
    differences: ClassVar[Mapping[str, tuple[str, str]]] = {
        "gain": ("score_trained", "score_uniform")
    }

    def __post_init__(self) -> None:
        require_seeds(self.seeds)
        EarlyStopping(self.epochs, self.patience)  # wrong settings are said now
        if not 0.0 < self.margin < 1.0:
            raise ConfigError(f"margin must lie between 0 and 1, not {self.margin}.")

    def lessons(self, trial: RetrainingContext) -> list[RetrainedVariant]:
        """Both arms, all seeds."""
        base = trial.base
        if isinstance(base, RecurrentSubject) and base.network.shape.attention == "uniform":
            raise NotApplicable("the model's attention is uniform already")
        return [
            self._lesson(arm, seed)
            for arm in ATTENTION_BY_MEASURE
            for seed in trial.seeds(self.seeds)
        ]

    def examine(self, trial: RetrainingContext) -> Findings:
        """Accuracy of both arms, and the swap."""
        measured, means = [], {}
        for arm in ATTENTION_BY_MEASURE:
            each = []
            for seed in trial.seeds(self.seeds):
                right = trial.right(trial.outlook(self._lesson(arm, seed)).probabilities)
                measured.append(Measurement(arm, right, seed_setting(seed)))
                each.append(right)
            means[arm] = np.mean(each, axis=0)
        measured += [Measurement(arm, column) for arm, column in means.items()]
        measured.append(Measurement("gain", means["score_trained"] - means["score_uniform"]))
        measured.append(Measurement("uniform_swap_tvd", uniform_swap(trial)))
        own = trial.right(trial.texts.base_predictions.probabilities)
        measured.append(Measurement("score_base", own))
        return Findings(tuple(measured))

    def _lesson(self, arm: str, seed: int) -> RetrainedVariant:
        pace = EarlyStopping(self.epochs, self.patience)
        return RetrainedVariant(seed, ATTENTION_BY_MEASURE[arm], pace)


def uniform_swap(trial: RetrainingContext) -> TextValues:
    """How far each output moves when uniform attention is imposed on the model as it is."""
    encoded, found = trial.texts.encoded, np.zeros(len(trial.texts.encoded))
    for rows in batches_for(trial.base, encoded, max_batch_tokens=trial.max_batch_tokens):
        batch = trial.base.batch([encoded[row] for row in rows])
        context = BatchContext(trial.base, batch, trial.seed, trial.max_batch_tokens, trial.clock)
        with torch.no_grad():
            even = context.decode(UniformWeights()(context))[0].softmax(-1)
        found[rows] = tvd(even, context.forward.probabilities).double().numpy()
    return found
