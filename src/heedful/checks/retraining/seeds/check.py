"""How much does attention move with the seed? (Wiegreffe & Pinter, 2019, section 3.3)"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from heedful.checks.base import Findings, checks
from heedful.checks.retraining_base import (
    RetrainingContext,
    SeedAverages,
    require_seeds,
    seed_setting,
)
from heedful.core.errors import ConfigError
from heedful.core.records import Claim, Measurement
from heedful.core.rng import uniform_keys
from heedful.numerics.tensor.distributions import jsd, permute_weights, tvd, uniform_weights
from heedful.training.variants.variants import (
    AdversaryVariant,
    EarlyStopping,
    RetrainedVariant,
    Variant,
)


@checks.register("seeds")
@dataclass(frozen=True)
class Seeds:
    """How much does attention move with the seed?

    The base model's recipe is followed `seeds` times; `jsd_seeds` is each text's median distance
    between their attention and the base model's. Beside it: an adversary trained to attend
    elsewhere (`adversary`, its λ), and for scale the base model's own weights shuffled and spread
    evenly: among flat attentions every distance is small.
    """

    seeds: int = 5
    adversary: float = 0.001
    shuffles: int = 10
    epochs: int = 40
    patience: int = 5
    claim: ClassVar[Claim | None] = "robust"
    measures: ClassVar[tuple[str, ...]] = (
        "jsd_seeds",
        "jsd_adversary_beyond_seeds",
        "jsd_adversary",
        "jsd_shuffled",
        "jsd_uniform",
    )
    head_measures: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[tuple[str, ...]] = ("max_attention", "tvd_seeds")
    over_seeds: ClassVar[SeedAverages] = {"jsd_seeds": "median"}
    differences: ClassVar[Mapping[str, tuple[str, str]]] = {
        "jsd_adversary_beyond_seeds": ("jsd_adversary", "jsd_seeds")
    }

    def __post_init__(self) -> None:
        require_seeds(self.seeds)
        EarlyStopping(self.epochs, self.patience)  # wrong settings are said now
        AdversaryVariant(self.adversary)
        if self.shuffles < 1:
            raise ConfigError(f"shuffles must be at least 1, not {self.shuffles}.")

    def lessons(self, trial: RetrainingContext) -> list[Variant]:
        """The seeds and the adversary."""
        return [*self._retrained(trial), self._adversary()]

    def examine(self, trial: RetrainingContext) -> Findings:
        """Distances of every seed's attention from the base model's."""
        lessons = self._retrained(trial)
        each = [trial.apart(one).numpy() for one in lessons]
        measured = [
            Measurement("jsd_seeds", column, seed_setting(one.seed))
            for one, column in zip(lessons, each, strict=True)
        ]
        middle = np.median(each, axis=0)
        far = trial.apart(self._adversary()).numpy()
        own = trial.texts.base_predictions.probabilities
        moved = [tvd(trial.outlook(one).probabilities, own).numpy() for one in lessons]
        columns = {
            "jsd_seeds": middle,
            "jsd_adversary_beyond_seeds": far - middle,
            "jsd_adversary": far,
            **self._scale(trial),
            "max_attention": trial.texts.base_predictions.padded().amax(-1).numpy(),
            "tvd_seeds": np.mean(moved, axis=0),
        }
        return Findings((*measured, *(Measurement(*one) for one in columns.items())))

    def _retrained(self, trial: RetrainingContext) -> list[RetrainedVariant]:
        pace = EarlyStopping(self.epochs, self.patience)
        return [RetrainedVariant(seed, "own", pace) for seed in trial.seeds(self.seeds)]

    def _adversary(self) -> AdversaryVariant:
        return AdversaryVariant(
            self.adversary, pace=EarlyStopping(self.epochs, self.patience).doubled
        )

    def _scale(self, trial: RetrainingContext) -> dict[str, np.ndarray]:
        """The distances of shuffled and of uniform weights, from the weights themselves."""
        own = trial.texts.base_predictions.padded()
        mask = torch.zeros_like(own, dtype=torch.bool)
        for row, one in enumerate(trial.texts.encoded):
            mask[row, : len(one.word)] = torch.tensor(one.word) >= 0
        keys = uniform_keys(
            trial.seed,
            "seeds, shuffled",
            [one.index for one in trial.texts.encoded],
            draws=self.shuffles,
            lengths=mask.sum(-1).tolist(),
        )
        shuffled = permute_weights(own, mask, keys=torch.from_numpy(keys))
        even = uniform_weights(mask, dtype=own.dtype)
        return {
            "jsd_shuffled": jsd(shuffled, own).mean(0).numpy(),
            "jsd_uniform": jsd(even, own).numpy(),
        }
