"""Does the explanation depend on the training labels? (Adebayo et al., 2018, second test)"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int
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
from heedful.core.settings import PositiveInt, check_on_init
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import Subject
from heedful.training.variants.variants import RetrainedVariant, ShuffledLabelsVariant, Variant

WITH_LABELS, LEARNED = "with_labels", "learned"
OwnScores = tuple[list[Float64[Tensor, "B W"]], Int[Tensor, "B"]]
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
    epochs: PositiveInt = 40
    patience: PositiveInt = 5

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
        arms = self._arms(retraining)
        keys = [(arm, variant.seed) for arm, many in arms.items() for variant in many]
        variants = [variant for many in arms.values() for variant in many]
        shape = len(keys), len(self.names), len(retraining.texts.encoded)
        found, reasons, own = np.full(shape, np.nan), dict[str, str](), list[OwnScores]()
        for _, context in retraining.batches():
            scores, why = score_items(ItemView(context), self.methods, context.predicted)
            reasons = {**why, **reasons}
            own.append((scores, context.predicted))
        for place, variant in enumerate(variants):  # one after the other: models may be large
            subject = retraining.trained(variant).subject
            for (rows, context), mine in zip(retraining.batches(), own, strict=True):
                found[place][:, rows] = self._correlated(context, mine, subject)
        missing = tuple(
            MissingMeasure(measure, why, name)
            for name, why in reasons.items()
            for measure in (RANK_CORRELATION, WITH_LABELS, LEARNED)
        )
        return Findings(tuple(self._measured(keys, found)), missing)

    def _correlated(
        self, context: BatchContext, own: OwnScores, subject: Subject
    ) -> Float64[np.ndarray, "methods B"]:
        words, (mine, target) = ItemView(context), own
        other = BatchContext(subject, context.batch, context.seed, context.max_batch_tokens)
        scores, _ = score_items(ItemView(other), self.methods, target)
        columns = [score_correlation(*pair, words) for pair in zip(mine, scores, strict=True)]
        return np.stack([one.numpy() for one in columns])

    def _measured(
        self, keys: Sequence[tuple[str, int]], found: Float64[np.ndarray, "models methods n"]
    ) -> Iterator[Measurement]:
        means = {}
        for arm in (RANK_CORRELATION, WITH_LABELS):
            mine = [place for place, (one, _) in enumerate(keys) if one == arm]
            for row, name in enumerate(self.names):
                for place in mine:
                    seed = keys[place][1]
                    yield Measurement(arm, found[place, row], method=name, seed=seed)
                means[arm, name] = found[mine, row].mean(0)
                yield Measurement(arm, means[arm, name], method=name)
        for name in self.names:
            learned = means[WITH_LABELS, name] - means[RANK_CORRELATION, name]
            yield Measurement(LEARNED, learned, method=name)
