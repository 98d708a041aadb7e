"""Does the explanation depend on the training labels? (Adebayo et al., 2018, second test)"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from torch import Tensor

from heedful.checks.base import Findings
from heedful.checks.faithfulness.items import (
    DEFAULT_METHODS,
    ComparesMethods,
    ItemView,
    score_items,
)
from heedful.checks.requested_methods import MethodOrName
from heedful.checks.retraining_base import Paced, RetrainingContext, SeedCount
from heedful.checks.sanity.randomisation.check import RANK_CORRELATION, score_correlation
from heedful.core.records import Measurement, MissingMeasure
from heedful.core.settings import Repeats, check_on_init
from heedful.models.batch_context import BatchContext
from heedful.training.variants.variants import RetrainedVariant, ShuffledLabelsVariant, Variant

WITH_LABELS, LEARNED = "with_labels", "learned"
OwnScores = tuple[list[Tensor], Tensor]  # (B, W) each, and (B,); B differs between batches
"""Of a batch: every method's scores in the base model, and the class they are for."""


@check_on_init
@dataclass(frozen=True)
class Labels(Paced, ComparesMethods):
    """Does the explanation depend on the training labels?

    The model is retrained with `seeds` seeds on shuffled labels until it has memorised them: such a
    model has learned nothing of the task. `rank_correlation` is Spearman's ρ of the absolute
    scores of a method on the model and on those, for the class the model predicts; `with_labels`
    the same for models retrained with the same seeds on the true labels, and `learned` the second
    minus the first. The check concerns no claim.
    """

    methods: tuple[MethodOrName, ...] = DEFAULT_METHODS
    seeds: SeedCount = 3
    epochs: Repeats = 40
    patience: Repeats = 5

    def variants(self, retraining: RetrainingContext) -> list[Variant]:
        """Models trained on shuffled labels and on the true ones."""
        return [one for arm in self._arms(retraining).values() for one in arm]

    def _arms(
        self, retraining: RetrainingContext
    ) -> dict[str, list[ShuffledLabelsVariant | RetrainedVariant]]:
        pace, seeds = self.pace, retraining.seeds(self.seeds)
        return {
            RANK_CORRELATION: [ShuffledLabelsVariant(seed, pace) for seed in seeds],
            WITH_LABELS: [RetrainedVariant(seed, "own", pace) for seed in seeds],
        }

    def examine(self, retraining: RetrainingContext) -> Findings:
        """Every method on the model and on the retrained ones, text by text."""
        own, reasons = list[OwnScores](), dict[str, str]()
        for _, context in retraining.batches():
            scores, why = score_items(ItemView(context), self.methods, context.predicted)
            reasons = {**why, **reasons}
            own.append((scores, context.predicted))
        measured, means = [], {}
        for arm, variants in self._arms(retraining).items():
            found = np.array([self._correlations(retraining, one, own) for one in variants])
            for row, name in enumerate(self.names):
                for one, values in zip(variants, found[:, row], strict=True):
                    measured.append(Measurement(arm, values, method=name, seed=one.seed))
                means[arm, name] = found[:, row].mean(0)
                measured.append(Measurement(arm, means[arm, name], method=name))
        for name in self.names:
            learned = means[WITH_LABELS, name] - means[RANK_CORRELATION, name]
            measured.append(Measurement(LEARNED, learned, method=name))
        missing = (
            MissingMeasure(measure, why, name)
            for name, why in reasons.items()
            for measure in (RANK_CORRELATION, WITH_LABELS, LEARNED)
        )
        return Findings(tuple(measured), tuple(missing))

    def _correlations(
        self, retraining: RetrainingContext, variant: Variant, own: Sequence[OwnScores]
    ) -> Float64[np.ndarray, "methods n"]:
        """ρ of every method's scores in the base model and in a retrained one."""
        subject = retraining.trained(variant).subject
        found = np.full((len(self.names), len(retraining.texts.encoded)), np.nan)
        for (rows, context), (mine, target) in zip(retraining.batches(), own, strict=True):
            other = BatchContext(subject, context.batch, context.seed, context.max_batch_tokens)
            scores, _ = score_items(ItemView(other), self.methods, target)
            for row, pair in enumerate(zip(mine, scores, strict=True)):
                found[row, rows] = score_correlation(*pair, ItemView(context)).numpy()
        return found
