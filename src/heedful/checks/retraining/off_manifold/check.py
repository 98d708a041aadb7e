"""Do removals tell the same of a copy that has learnt to read texts with holes?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from heedful.checks.base import Findings, TextValues, checks, to_measurement
from heedful.checks.faithfulness.faithfulness.check import REMOVAL_MEASURES, Faithfulness
from heedful.checks.faithfulness.faithfulness.off_distribution import OFF_DISTRIBUTION
from heedful.checks.faithfulness.removal_metrics import RemovalMetrics as Removing
from heedful.checks.faithfulness.removal_metrics import beyond_random_p_values
from heedful.checks.faithfulness.word_removal import Removals, WordView
from heedful.checks.faithfulness.word_scores import DEFAULT_METHODS
from heedful.checks.requested_methods import MethodOrName
from heedful.checks.retraining_base import RetrainingContext, SeedAverages
from heedful.core.records import Claim, Measurement
from heedful.data.batching import batches_for
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import Subject
from heedful.numerics.tensor.distributions import tvd
from heedful.training.variants.masked_copy import RandomMasks, masking_token_id
from heedful.training.variants.variants import EarlyStopping, MaskedVariant

MASKING = "masking"
COPY_MEASURES = ("same_prediction", "copy_tvd")


@checks.register("off_manifold")
@dataclass(frozen=True)
class OffManifold:
    """Do removals tell the same of a copy that has learnt to read texts with holes?

    Texts with words removed are unlike any the model saw, so what it loses there may be the fault
    of the hole. A copy of the model is trained on with a random share of each text's words masked,
    from none to all, to say what the model says of the whole text. Then the words that methods
    name *in the model* are masked from what the copy reads. Its answer to a text with holes is the
    mean of what the model says of whole texts that look so. `same_prediction` says whether it is
    still a copy. Rows with the setting "masking" are of the model itself, for comparison.
    """

    methods: tuple[MethodOrName, ...] = DEFAULT_METHODS
    bins: tuple[float, ...] = (0.01, 0.05, 0.1, 0.2, 0.5)
    orders: int = 5
    steps: int = 20
    copies: int = 4
    epochs: int = 20
    patience: int = 5
    claim: ClassVar[Claim | None] = "ranks"
    head_measures: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[tuple[str, ...]] = ()
    over_seeds: ClassVar[SeedAverages] = {}
    differences: ClassVar[Mapping[str, tuple[str, str]]] = {}

    def __post_init__(self) -> None:
        object.__setattr__(self, "methods", self.removing.methods)
        RandomMasks(copies=self.copies)  # wrong settings are said now
        EarlyStopping(self.epochs, self.patience)

    @property
    def removing(self) -> Faithfulness:
        """The same removals as of the model itself."""
        return Faithfulness(
            self.methods, self.bins, self.orders, self.steps, (MASKING,), draws=0, perturbations=0
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The methods under test."""
        return self.removing.names

    @property
    def measures(self) -> tuple[str, ...]:
        """How alike the copy is, then all that removals measure.

        But not how strange texts with holes are beside whole ones: the copy knows both.
        """
        return (
            *COPY_MEASURES,
            *(one for one in self.removing.measures if not one.startswith(OFF_DISTRIBUTION)),
        )

    def lessons(self, trial: RetrainingContext) -> list[MaskedVariant]:
        """One copy."""
        masking_token_id(trial.base)  # which refuses a model that has none
        return [self._lesson(trial)]

    def examine(self, trial: RetrainingContext) -> Findings:
        """What masking does to the copy, and to the model."""
        encoded = trial.texts.encoded
        gathered: dict[tuple[str, str | None], TextValues] = {}
        missing: dict[str, str] = {}
        pair = _ModelAndCopy(trial, trial.trained(self._lesson(trial)).subject)
        for rows in batches_for(trial.base, encoded, max_batch_tokens=trial.max_batch_tokens):
            findings = self._batch(pair, rows)
            missing = {**findings.missing, **missing}
            for one in findings.measurements:
                place = one.measure, one.setting
                column = gathered.setdefault(place, np.full(len(encoded), np.nan))
                column[rows] = one.values
        measured = (Measurement(name, one, setting) for (name, setting), one in gathered.items())
        return Findings(tuple(measured), missing)

    def tested(
        self, columns: Mapping[str, TextValues], *, resamples: int, seed: int
    ) -> dict[str, float]:
        """p-values of "no more than random removal does", of the copy."""
        return beyond_random_p_values(self.names, columns, resamples=resamples, seed=seed)

    def _lesson(self, trial: RetrainingContext) -> MaskedVariant:
        return MaskedVariant(
            RandomMasks(trial.seed, self.copies), EarlyStopping(self.epochs, self.patience)
        )

    def _batch(self, pair: "_ModelAndCopy", rows: Sequence[int]) -> Findings:
        base, copy = pair.sittings(rows)
        check, words = self.removing, WordView(base)
        scores, missing = check.scores(words)
        chance, target = check.chance(words), base.predicted.cpu()
        found = [
            to_measurement(*one)
            for one in zip(COPY_MEASURES, _copy_agreement(base, copy), strict=True)
        ]
        for context, setting in ((copy, None), (base, MASKING)):
            removals = Removals(WordView(context), MASKING, target)
            removing = Removing(removals, scores, chance, self.bins, self.steps)
            found += check.measured(REMOVAL_MEASURES, removing.columns(), setting)
        return Findings(tuple(found), missing)


def _copy_agreement(base: BatchContext, copy: BatchContext) -> Iterator[torch.Tensor]:
    yield (base.predicted == copy.predicted).double()
    yield tvd(copy.forward.probabilities.double(), base.forward.probabilities.double())


@dataclass(frozen=True, eq=False)
class _ModelAndCopy:
    """The model and its copy before the same texts."""

    trial: RetrainingContext
    copy: Subject

    def sittings(self, rows: Sequence[int]) -> tuple[BatchContext, BatchContext]:
        trial = self.trial
        batch = trial.base.batch([trial.texts.encoded[row] for row in rows])
        settled = batch, trial.seed, trial.max_batch_tokens, trial.clock
        return BatchContext(trial.base, *settled), BatchContext(self.copy, *settled)
