"""Can a whole model learn a different attention with the same outputs? (Wiegreffe & Pinter, 4)"""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import MinLen

from heedful.checks.base import Findings
from heedful.checks.retraining_base import Paced, RetrainingContext, choose_within, to_findings
from heedful.core.records import Measurement
from heedful.core.settings import PositiveFloat, PositiveFraction, Repeats, check_on_init
from heedful.numerics.tensor.distributions import jsd, tvd
from heedful.training.variants.variants import (
    STARTS,
    AdversaryVariant,
    RetrainedVariant,
    Start,
    Variant,
)


@check_on_init
@dataclass(frozen=True)
class ModelAdversary(Paced):
    """Can a whole model learn a different attention with the same outputs?

    For each λ in `weights` a model is trained to minimise TVD(output) − λ·KL(attention ‖ audited),
    from scratch as published and from the audited model. `tvd` is ½ Σ|Δp| (the published code
    halves it again), `jsd` the distance of its attention, `score` its accuracy. Rows without a
    setting are of the adversary whose attention is farthest among those whose dev outputs are
    within `epsilon`, or as near as those of a model trained with another seed (`…_another_seed`):
    a smaller distance cannot be expected. `reverse` swaps the arguments of KL. The check has no
    vote: whether such models separate faithful from inert attention has not been measured.
    """

    weights: Annotated[tuple[PositiveFloat, ...], MinLen(1)] = (0.001, 0.0001, 0.0003, 0.01)
    starts: Annotated[tuple[Start, ...], MinLen(1)] = STARTS
    epsilon: PositiveFraction = 0.05
    reverse: bool = False
    epochs: Repeats = 80
    patience: Repeats = 10

    def variants(self, retraining: RetrainingContext) -> list[Variant]:
        """Every λ from every start, and another seed for comparison."""
        return [*self._adversaries(), self._another_seed(retraining)]

    def examine(self, retraining: RetrainingContext) -> Findings:
        """Output, attention and accuracy of every adversary."""
        base = retraining.texts.base_predictions.probabilities
        measured, found = [], {}
        for variant in self._adversaries():
            outputs = retraining.predict(variant).probabilities
            found[variant] = {
                "tvd": tvd(outputs, base).numpy(),
                "jsd": retraining.attention_distance(variant).numpy(),
                "score": retraining.correct(outputs),
            }
            setting = f"λ {variant.weight:g}, {variant.start}"
            measured += [Measurement(name, one, setting) for name, one in found[variant].items()]
        other = self._another_seed(retraining)
        columns = {
            **found[self._choose(retraining)],
            "score_base": retraining.correct(base),
            "tvd_another_seed": tvd(retraining.predict(other).probabilities, base).numpy(),
            "jsd_another_seed": retraining.attention_distance(other).numpy(),
        }
        return to_findings(measured, columns)

    def _another_seed(self, retraining: RetrainingContext) -> RetrainedVariant:
        return RetrainedVariant(retraining.seeds(1)[0], pace=self.pace.halved)

    def _adversaries(self) -> list[AdversaryVariant]:
        return [
            AdversaryVariant(weight, start, self.reverse, pace=self.pace)
            for start in self.starts
            for weight in self.weights
        ]

    def _choose(self, retraining: RetrainingContext) -> AdversaryVariant:
        """The farthest whose dev outputs are near enough; the nearest outputs where none is."""
        base, adversaries = retraining.dev.base_predictions, self._adversaries()
        changes, distances = [], []
        every: list[Variant] = [*adversaries, self._another_seed(retraining)]
        for variant in every:
            seen = retraining.dev.predict_with(retraining.trained(variant).subject)
            changes.append(float(tvd(seen.probabilities, base.probabilities).mean()))
            distances.append(float(jsd(seen.padded(), base.padded()).mean()))
        limit = max(self.epsilon, changes.pop())
        nearness = [-one for one in distances]
        return choose_within(adversaries, changes, limit=limit, losses=nearness)
