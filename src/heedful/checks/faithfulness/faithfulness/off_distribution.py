"""How far off distribution texts with items removed are for the model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from heedful.checks.base import to_measurement
from heedful.checks.faithfulness.item_removal import Removals
from heedful.checks.faithfulness.removal_metrics import RemovalMetrics
from heedful.core.errors import NotApplicable
from heedful.core.records import Measurement
from heedful.models.batch_context import BatchContext, attended_state
from heedful.models.protocols import ReferenceTexts
from heedful.numerics.tensor.erasure_metrics import bin_sizes

OFF_DISTRIBUTION = "off_distribution"
NO_REFERENCE_TEXTS = "the texts stand alone: there are no whole texts of the data to compare with"


def require_reference_texts(context: BatchContext) -> ReferenceTexts:
    """The whole texts of the data; raises NotApplicable where there are none."""
    if context.reference is None:
        raise NotApplicable(NO_REFERENCE_TEXTS)
    return context.reference


def measure_whole_texts(context: BatchContext) -> Float64[Tensor, "B"]:
    """How far off distribution the texts are as they are: ½ on average."""
    reference = require_reference_texts(context)
    states = attended_state(context.batch, context.forward)
    return reference.share_nearer(states, torch.tensor(context.batch.instances))


@dataclass(frozen=True, eq=False)
class OffDistributionMetric:
    """Texts without their first items in some orders, by one way of removing them."""

    removals: Removals
    bins: Sequence[float]

    def columns(self, place: Int[Tensor, "K B I"]) -> Float64[Tensor, "K B"]:
        """The share of whole texts with a nearer neighbour than these have, mean over the bins."""
        items = self.removals.items
        reference = require_reference_texts(items.context)
        sizes = bin_sizes(items.counts, self.bins)[..., None]
        top = (place[:, None] < sizes) & items.real
        return self._far(reference, top).mean(1)

    def _far(
        self, reference: ReferenceTexts, gone: Bool[Tensor, "K S B I"]
    ) -> Float64[Tensor, "K S B"]:
        numbers = torch.tensor(self.removals.items.context.batch.instances)
        asked = (self.removals.items.counts > 0).expand(gone.shape[:-1])
        rows = torch.arange(asked.shape[-1]).expand(asked.shape)[asked]
        found = torch.full(asked.shape, torch.nan, dtype=torch.float64)
        if len(rows):
            states = self.removals.states(rows, gone[asked])
            found[asked] = reference.share_nearer(states, numbers[rows])
        return found


def measure_off_distribution(
    metrics: Sequence[RemovalMetrics], row: int, bins: Sequence[float]
) -> Iterator[Measurement]:
    """How far off distribution texts are, whole and without the first items of one order.

    Rows with the setting "random" are without as many random items.
    """
    context = metrics[0].removals.items.context
    yield to_measurement(f"{OFF_DISTRIBUTION}_whole", measure_whole_texts(context))
    for metric in metrics:
        orders = torch.stack([metric.place[row], metric.chance[0]])
        far = OffDistributionMetric(metric.removals, bins).columns(orders)
        for one, setting in zip(far, (None, "random"), strict=True):
            yield to_measurement(f"{OFF_DISTRIBUTION}_{metric.removals.way}", one, setting)
