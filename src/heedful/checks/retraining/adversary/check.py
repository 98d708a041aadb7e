"""Can a whole model learn another attention with the same outputs? (Wiegreffe & Pinter, 4)"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from heedful.checks.base import Findings, checks
from heedful.checks.interventions.base import require_epsilon
from heedful.checks.retraining_base import RetrainingContext, SeedAverages
from heedful.core.errors import ConfigError
from heedful.core.records import Claim, Measurement
from heedful.numerics.tensor.distributions import jsd, tvd
from heedful.training.variants.variants import (
    STARTS,
    AdversaryVariant,
    EarlyStopping,
    RetrainedVariant,
    Variant,
)


@checks.register("adversary")
@dataclass(frozen=True)
class ModelAdversary:
    """Can a whole model learn another attention with the same outputs?

    For each λ in `weights` a model is trained to go down TVD(output) − λ·KL(attention ‖ base's),
    from scratch as published and from the base model. `tvd` is ½ Σ|Δp| (the published code halves
    it again), `jsd` the distance of its attention, `score` its accuracy; the figures without a
    setting are those of the adversary that attends farthest among those whose dev outputs lie
    within `epsilon`, or as near as those of a model merely trained with another seed
    (`…_another_seed`): nearer than that nobody can ask. `reverse` turns KL round. It has no vote:
    whether such models tell honest attention from inert has not been measured.
    """

    weights: tuple[float, ...] = (0.001, 0.0001, 0.0003, 0.01)
    starts: tuple[str, ...] = ("scratch", "base")
    epsilon: float = 0.05
    reverse: bool = False
    epochs: int = 80
    patience: int = 10
    claim: ClassVar[Claim | None] = "exclusive"
    measures: ClassVar[tuple[str, ...]] = (
        *("tvd", "jsd", "score", "score_base"),
        *("tvd_another_seed", "jsd_another_seed"),
    )
    head_measures: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[tuple[str, ...]] = ()
    over_seeds: ClassVar[SeedAverages] = {}
    differences: ClassVar[Mapping[str, tuple[str, str]]] = {}

    def __post_init__(self) -> None:
        require_epsilon(self.epsilon)
        if not self.weights or any(not one > 0 for one in self.weights):
            raise ConfigError(f"weights are numbers above 0, at least one; got {self.weights}.")
        if not self.starts or set(self.starts) - set(STARTS):
            raise ConfigError(f"starts are {' and '.join(STARTS)}, not {self.starts}.")
        EarlyStopping(self.epochs, self.patience)  # wrong settings are said now

    def lessons(self, trial: RetrainingContext) -> list[Variant]:
        """Every λ from every start, and another seed to hold them against."""
        return [*self._adversaries(), self._another(trial)]

    def _another(self, trial: RetrainingContext) -> RetrainedVariant:
        return RetrainedVariant(
            trial.seeds(1)[0], pace=EarlyStopping(self.epochs, self.patience).halved
        )

    def _adversaries(self) -> list[AdversaryVariant]:
        pace = EarlyStopping(self.epochs, self.patience)
        return [
            AdversaryVariant(weight, start, self.reverse, pace=pace)
            for start in self.starts
            for weight in self.weights
        ]

    def examine(self, trial: RetrainingContext) -> Findings:
        """Output, attention and score of every adversary."""
        lessons, measured = self._adversaries(), []
        own = trial.texts.base_predictions.probabilities
        by_lesson = {}
        for variant in lessons:
            outputs = trial.outlook(variant).probabilities
            by_lesson[variant] = {
                "tvd": tvd(outputs, own).numpy(),
                "jsd": trial.apart(variant).numpy(),
                "score": trial.right(outputs),
            }
            measured += [
                Measurement(name, column, adversary_setting(variant))
                for name, column in by_lesson[variant].items()
            ]
        chosen = self._chosen(trial, lessons)
        other = self._another(trial)
        plain = {
            **by_lesson[chosen],
            "score_base": trial.right(own),
            "tvd_another_seed": tvd(trial.outlook(other).probabilities, own).numpy(),
            "jsd_another_seed": trial.apart(other).numpy(),
        }
        return Findings((*measured, *(Measurement(*one) for one in plain.items())))

    def _chosen(
        self, trial: RetrainingContext, lessons: list[AdversaryVariant]
    ) -> AdversaryVariant:
        """The farthest that is near enough by the dev texts; the nearest output where none is."""
        base = trial.dev.base_predictions
        moved, apart = [], []
        both: list[Variant] = [*lessons, self._another(trial)]
        for variant in both:
            seen = trial.dev.predict_with(trial.trained(variant).subject)
            moved.append(float(tvd(seen.probabilities, base.probabilities).mean()))
            apart.append(float(jsd(seen.padded(), base.padded()).mean()))
        enough = max(self.epsilon, moved.pop())
        near = [place for place, one in enumerate(moved) if one <= enough]
        if not near:
            return lessons[int(np.argmin(moved))]
        return lessons[max(near, key=lambda place: apart[place])]


def adversary_setting(variant: AdversaryVariant) -> str:
    """How the rows of one adversary are marked."""
    return f"λ {variant.weight:g}, {variant.start}"
