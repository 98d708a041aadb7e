"""Does learned attention beat uniform attention? (Wiegreffe & Pinter, 2019, section 3.2)"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from heedful.checks.base import Findings
from heedful.checks.interventions.simple import UniformWeights
from heedful.checks.retraining_base import Paced, RetrainingContext, SeedCount, to_findings
from heedful.core.errors import NotApplicable
from heedful.core.records import Measurement
from heedful.core.settings import OpenFraction, Repeats, check_on_init
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.numerics.tensor.distributions import tvd
from heedful.results.tables import TextValues
from heedful.training.variants.variants import RetrainedVariant

ATTENTION_BY_MEASURE: dict[str, Literal["own", "uniform"]] = {
    "score_trained": "own",
    "score_uniform": "uniform",
}


@check_on_init
@dataclass(frozen=True)
class Necessity(Paced):
    """Does learned attention beat uniform attention?

    The model is retrained by its own recipe, `seeds` times with learned attention and as often with
    attention frozen to uniform, each until the dev score has not risen for `patience` epochs.
    `gain` is the difference of the two accuracies; two one-sided tests ask whether it is below
    `margin`. `uniform_swap_tvd` answers another question: how far the output of the audited model
    changes when uniform attention is imposed on it. A model can depend on its attention although
    one trained without it does as well. `score_base` is the accuracy of the audited model:
    retrained models that do not reach it say nothing about it.
    """

    seeds: SeedCount = 5
    margin: OpenFraction = 0.01
    epochs: Repeats = 40
    patience: Repeats = 5

    def variants(self, retraining: RetrainingContext) -> list[RetrainedVariant]:
        """Learned and uniform attention, with every seed."""
        base = retraining.base
        if isinstance(base, RecurrentSubject) and base.network.shape.attention == "uniform":
            raise NotApplicable("the model's attention is uniform already")
        return [
            self._variant(measure, seed)
            for measure in ATTENTION_BY_MEASURE
            for seed in retraining.seeds(self.seeds)
        ]

    def examine(self, retraining: RetrainingContext) -> Findings:
        """Accuracy with learned and with uniform attention, and the swap."""
        found = {
            (measure, seed): retraining.score(self._variant(measure, seed))
            for measure in ATTENTION_BY_MEASURE
            for seed in retraining.seeds(self.seeds)
        }
        measured = (Measurement(name, one, seed=seed) for (name, seed), one in found.items())
        means = {
            name: np.mean([one for (other, _), one in found.items() if other == name], axis=0)
            for name in ATTENTION_BY_MEASURE
        }
        columns = {
            **means,
            "gain": means["score_trained"] - means["score_uniform"],
            "uniform_swap_tvd": uniform_swap(retraining),
            "score_base": retraining.correct(retraining.texts.base_predictions.probabilities),
        }
        return to_findings(measured, columns)

    def _variant(self, measure: str, seed: int) -> RetrainedVariant:
        return RetrainedVariant(seed, ATTENTION_BY_MEASURE[measure], self.pace)


def uniform_swap(retraining: RetrainingContext) -> TextValues:
    """Change of each output when uniform attention is imposed on the audited model."""
    found = np.zeros(len(retraining.texts.encoded))
    for rows, context in retraining.batches():
        with torch.no_grad():
            even = context.decode(UniformWeights()(context))[0].softmax(-1)
        found[rows] = tvd(even, context.forward.probabilities).double().numpy()
    return found
