"""Can a whole model learn a different attention with the same outputs? (Wiegreffe & Pinter, 4)"""

from dataclasses import dataclass

import numpy as np

from heedful.checks.base import Findings
from heedful.checks.interventions.base import require_epsilon
from heedful.checks.retraining_base import RetrainingContext
from heedful.core.errors import ConfigError
from heedful.core.records import Measurement
from heedful.numerics.tensor.distributions import jsd, tvd
from heedful.training.loop.epochs import EarlyStopping
from heedful.training.variants.variants import STARTS, AdversaryVariant, RetrainedVariant, Variant


@dataclass(frozen=True)
class ModelAdversary:
    """Can a whole model learn a different attention with the same outputs?

    For each λ in `weights` a model is trained to minimise TVD(output) − λ·KL(attention ‖ audited),
    from scratch as published and from the audited model. `tvd` is ½ Σ|Δp| (the published code
    halves it again), `jsd` the distance of its attention, `score` its accuracy. Rows without a
    setting are of the adversary whose attention is farthest among those whose dev outputs are
    within `epsilon`, or as near as those of a model trained with another seed (`…_another_seed`):
    a smaller distance cannot be expected. `reverse` swaps the arguments of KL. The check has no
    vote: whether such models separate faithful from inert attention has not been measured.
    """

    weights: tuple[float, ...] = (0.001, 0.0001, 0.0003, 0.01)
    starts: tuple[str, ...] = ("scratch", "base")
    epsilon: float = 0.05
    reverse: bool = False
    epochs: int = 80
    patience: int = 10

    def __post_init__(self) -> None:
        require_epsilon(self.epsilon)
        if not self.weights or any(not one > 0 for one in self.weights):
            raise ConfigError(f"weights are numbers above 0, at least one; got {self.weights}.")
        if not self.starts or set(self.starts) - set(STARTS):
            raise ConfigError(f"starts are {' and '.join(STARTS)}, not {self.starts}.")
        EarlyStopping(self.epochs, self.patience)  # raises on wrong settings before the work begins

    def variants(self, retraining: RetrainingContext) -> list[Variant]:
        """Every λ from every start, and another seed for comparison."""
        return [*self._adversaries(), self._another_seed(retraining)]

    def examine(self, retraining: RetrainingContext) -> Findings:
        """Output, attention and accuracy of every adversary."""
        adversaries, measured = self._adversaries(), []
        base = retraining.texts.base_predictions.probabilities
        found = {}
        for variant in adversaries:
            outputs = retraining.predict(variant).probabilities
            found[variant] = {
                "tvd": tvd(outputs, base).numpy(),
                "jsd": retraining.attention_distance(variant).numpy(),
                "score": retraining.correct(outputs),
            }
            measured += [
                Measurement(name, column, adversary_setting(variant))
                for name, column in found[variant].items()
            ]
        other = self._another_seed(retraining)
        columns = {
            **found[self._choose(retraining, adversaries)],
            "score_base": retraining.correct(base),
            "tvd_another_seed": tvd(retraining.predict(other).probabilities, base).numpy(),
            "jsd_another_seed": retraining.attention_distance(other).numpy(),
        }
        return Findings((*measured, *(Measurement(*one) for one in columns.items())))

    def _another_seed(self, retraining: RetrainingContext) -> RetrainedVariant:
        return RetrainedVariant(
            retraining.seeds(1)[0], pace=EarlyStopping(self.epochs, self.patience).halved
        )

    def _adversaries(self) -> list[AdversaryVariant]:
        limits = EarlyStopping(self.epochs, self.patience)
        return [
            AdversaryVariant(weight, start, self.reverse, pace=limits)
            for start in self.starts
            for weight in self.weights
        ]

    def _choose(
        self, retraining: RetrainingContext, adversaries: list[AdversaryVariant]
    ) -> AdversaryVariant:
        """The farthest whose dev outputs are near enough; the nearest outputs where none is."""
        base = retraining.dev.base_predictions
        changes, distances = [], []
        every: list[Variant] = [*adversaries, self._another_seed(retraining)]
        for variant in every:
            seen = retraining.dev.predict_with(retraining.trained(variant).subject)
            changes.append(float(tvd(seen.probabilities, base.probabilities).mean()))
            distances.append(float(jsd(seen.padded(), base.padded()).mean()))
        limit = max(self.epsilon, changes.pop())
        near = [place for place, one in enumerate(changes) if one <= limit]
        if not near:
            return adversaries[int(np.argmin(changes))]
        return adversaries[max(near, key=lambda place: distances[place])]


def adversary_setting(variant: AdversaryVariant) -> str:
    """The setting of the rows of one adversary."""
    return f"λ {variant.weight:g}, {variant.start}"
