"""Do deletion results hold for a copy trained on texts with masked words?"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from heedful.checks.base import Findings, to_measurement
from heedful.checks.faithfulness.check import (
    REMOVAL_MEASURES,
    Faithfulness,
    MissingReasons,
    to_missing_measures,
)
from heedful.checks.faithfulness.items import DEFAULT_METHODS, ComparesMethods, ItemView
from heedful.checks.faithfulness.removal import RemovalMetrics, Removals, beyond_random_p_values
from heedful.checks.requested_methods import MethodOrName
from heedful.checks.retraining_base import Paced, RetrainingContext
from heedful.core.records import MeasureKey, Measurement, Series
from heedful.core.settings import Repeats, check_on_init
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.distributions import tvd
from heedful.results.tables import TextValues
from heedful.training.variants.texts import RandomMasks, masking_token_id
from heedful.training.variants.variants import MaskedVariant

MASKING = "masking"


@check_on_init
@dataclass(frozen=True)
class OffManifold(Paced, ComparesMethods):
    """Do deletion results hold for a copy trained on texts with masked words?

    Texts with words removed are unlike any the model was trained on, so that a loss may be due to
    the gap rather than the words. A copy of the model is trained to reproduce the model's output on
    the whole text from texts with a random share of the words masked, from none to all. Then the
    words that methods rank highest *in the model* are masked from the copy's input. Its output for
    a masked text is the mean of the model's outputs for whole texts that match it.
    `same_prediction` shows whether the copy is still a copy. Rows with the setting "masking" are of
    the model itself, for comparison.
    """

    methods: tuple[MethodOrName, ...] = DEFAULT_METHODS
    bins: tuple[float, ...] = (0.01, 0.05, 0.1, 0.2, 0.5)
    orders: Repeats = 5
    steps: Repeats = 20
    copies: Repeats = 4
    epochs: Repeats = 20
    patience: Repeats = 5

    def __post_init__(self) -> None:
        object.__setattr__(self, "methods", self.removing.methods)

    @property
    def removing(self) -> Faithfulness:
        """The same removals as for the model itself, without those that are not about removal."""
        return Faithfulness(
            self.methods, self.bins, self.orders, self.steps, (MASKING,), draws=0, perturbations=0
        )

    def variants(self, retraining: RetrainingContext) -> list[MaskedVariant]:
        """One copy."""
        masking_token_id(retraining.base)  # raises NotApplicable for a model that has none
        return [self._copy(retraining)]

    def examine(self, retraining: RetrainingContext) -> Findings:
        """The effect of masking on the copy, and on the model."""
        gathered: dict[MeasureKey, TextValues] = {}
        missing: MissingReasons = {}
        copy = retraining.trained(self._copy(retraining)).subject
        for rows, context in retraining.batches():
            settings = context.seed, context.max_batch_tokens, context.clock
            copied = BatchContext(copy, context.batch, *settings)
            measured, refused = self._measure_batch(context, copied)
            missing = {**refused, **missing}
            for one in measured:
                column = gathered.setdefault(
                    one.key(""), np.full(len(retraining.texts.encoded), np.nan)
                )
                column[rows] = one.values
        found = (
            Measurement(one.measure, values, one.setting, one.method)
            for one, values in gathered.items()
        )
        return Findings(tuple(found), to_missing_measures(missing))

    def test(
        self, columns: Mapping[Series, TextValues], *, resamples: int, seed: int
    ) -> dict[Series, float]:
        """p-values of "removes no more than random removal", for the copy."""
        return beyond_random_p_values(self.names, columns, resamples=resamples, seed=seed)

    def _copy(self, retraining: RetrainingContext) -> MaskedVariant:
        return MaskedVariant(RandomMasks(retraining.seed, self.copies), self.pace)

    def _measure_batch(
        self, base: BatchContext, copy: BatchContext
    ) -> tuple[list[Measurement], MissingReasons]:
        check, items = self.removing, ItemView(base)
        scores, missing = check.scores(items)
        chance, target = check.chance(items), base.predicted.cpu()
        same = (base.predicted == copy.predicted).double()
        moved = tvd(copy.forward.probabilities.double(), base.forward.probabilities.double())
        found = [to_measurement("same_prediction", same), to_measurement("copy_tvd", moved)]
        for context, setting in ((copy, None), (base, MASKING)):
            removals = Removals(ItemView(context), MASKING, target)
            metrics = RemovalMetrics(removals, scores, chance, self.bins, self.steps)
            found += check.to_measurements(REMOVAL_MEASURES, metrics.columns(), setting)
        return found, missing
