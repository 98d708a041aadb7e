"""How strange texts with words removed are to the model, beside whole texts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from heedful.checks.base import to_measurement
from heedful.checks.faithfulness.removal_metrics import RemovalMetrics
from heedful.checks.faithfulness.word_removal import Removals
from heedful.core.errors import NotApplicable
from heedful.core.records import Measurement
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.attended_state import attended_state
from heedful.models.protocols import ReferenceTexts
from heedful.numerics.tensor.erasure_metrics import bin_sizes

OFF_DISTRIBUTION = "off_distribution"
NO_REFERENCE_TEXTS = (
    "the texts stand alone: there are no whole texts of the data to hold them against"
)


def require_reference_texts(context: BatchContext) -> ReferenceTexts:
    """The whole texts of the data."""
    if context.reference is None:
        raise NotApplicable(NO_REFERENCE_TEXTS)
    return context.reference


def measure_whole_texts(context: BatchContext) -> Float64[Tensor, "B"]:
    """How far off the texts are as they stand: ½ on the average, by chance."""
    reference, states = (
        require_reference_texts(context),
        attended_state(context.batch, context.forward),
    )
    return reference.share_nearer(states, torch.tensor(context.batch.instances))


@dataclass(frozen=True, eq=False)
class OffDistributionMetric:
    """Texts without their first words in some orders, by one way to remove them."""

    removals: Removals
    bins: Sequence[float]

    def columns(self, place: Int[Tensor, "K B W"]) -> Float64[Tensor, "K B"]:
        """The mean over the bins of the share of whole texts that are nearer to others."""
        words = self.removals.words
        reference = require_reference_texts(words.context)
        sizes = bin_sizes(words.counts, self.bins)[..., None]
        top = (place[:, None] < sizes) & words.real
        return self._far(reference, top).mean(1)

    def _far(
        self, reference: ReferenceTexts, gone: Bool[Tensor, "K S B W"]
    ) -> Float64[Tensor, "K S B"]:
        numbers = torch.tensor(self.removals.words.context.batch.instances)
        asked = (self.removals.words.counts > 0).expand(gone.shape[:-1])
        rows = torch.arange(asked.shape[-1]).expand(asked.shape)[asked]
        found = torch.full(asked.shape, torch.nan, dtype=torch.float64)
        if len(rows):
            states = self.removals.states(rows, gone[asked])
            found[asked] = reference.share_nearer(states, numbers[rows])
        return found


def measure_off_distribution(
    trials: Sequence[RemovalMetrics], row: int, bins: Sequence[float]
) -> Iterator[Measurement]:
    """How far off distribution texts are, whole and without the first words of one order.

    The same without as many at random has the setting "random".
    """
    yield to_measurement(
        f"{OFF_DISTRIBUTION}_whole", measure_whole_texts(trials[0].removals.words.context)
    )
    for trial in trials:
        orders = torch.stack([trial.place[row], trial.chance[0]])
        far = OffDistributionMetric(trial.removals, bins).columns(orders)
        for one, setting in zip(far, (None, "random"), strict=True):
            yield to_measurement(f"{OFF_DISTRIBUTION}_{trial.removals.way}", one, setting)
