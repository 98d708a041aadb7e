"""How far off distribution texts with items removed are for the model."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from heedful.checks.base import to_measurement
from heedful.checks.faithfulness.removal import RemovalMetrics
from heedful.core.batch import Encoded
from heedful.core.errors import NotApplicable
from heedful.core.records import Measurement
from heedful.core.values import Example
from heedful.data.batching import batches_for
from heedful.models.batch_context import attended_state
from heedful.models.protocols import ReferenceTexts, Subject
from heedful.numerics.tensor.erasure_metrics import nearest_distance, share_nearer

OFF_DISTRIBUTION = "off_distribution"
NO_REFERENCE_TEXTS = "the texts stand alone: there are no whole texts of the data to compare with"
MAX_TEXTS = 256  # the first texts of the data: enough for their distribution
MIN_TEXTS = 20  # with fewer, shares would be too coarse


def measure_off_distribution(metrics: Sequence[RemovalMetrics], row: int) -> Iterator[Measurement]:
    """How far off distribution texts are, whole (½ on average) and without one order's first items.

    Rows with the setting "random" are without as many random items. Raises NotApplicable where
    there are no whole texts to compare with.
    """
    context = metrics[0].removals.items.context
    if (reference := context.reference) is None:
        raise NotApplicable(NO_REFERENCE_TEXTS)
    states = attended_state(context.batch, context.forward)
    whole = reference.share_nearer(states, torch.tensor(context.batch.instances))
    yield to_measurement(f"{OFF_DISTRIBUTION}_whole", whole)
    for metric in metrics:
        orders = torch.stack([metric.place[row], metric.chance[0]])
        nearer = _share_nearer_than_removed(metric, orders, reference)
        for one, setting in zip(nearer, (None, "random"), strict=True):
            yield to_measurement(f"{OFF_DISTRIBUTION}_{metric.removals.way}", one, setting)


def _share_nearer_than_removed(
    metric: RemovalMetrics, place: Int[Tensor, "K B I"], reference: ReferenceTexts
) -> Float64[Tensor, "K B"]:
    """The share of whole texts with a nearer neighbour than texts without their first items.

    It is the mean over the bins; NaN for texts without items.
    """
    items, gone = metric.removals.items, metric.top_items(place)
    asked = (items.counts > 0).expand(gone.shape[:-1])
    rows = torch.arange(asked.shape[-1]).expand(asked.shape)[asked]
    found = torch.full(asked.shape, torch.nan, dtype=torch.float64)
    if len(rows):
        states = metric.removals.states(rows, gone[asked])
        instances = torch.tensor(items.context.batch.instances)[rows]
        found[asked] = reference.share_nearer(states, instances)
    return found.mean(1)


@dataclass(frozen=True, eq=False)
class ReferenceSample:
    """The first whole texts, encoded on first use, and their distances from each other.

    A text's state is its attended state Σ_t α_t h_t. Its distance is that to its nearest neighbour
    among the whole texts, itself excluded.
    """

    subject: Subject
    examples: Callable[[], Iterable[Example]]
    min_words: int = 1

    def share_nearer(
        self, states: Float64[Tensor, "M D"], instances: Int[Tensor, "M"]
    ) -> Float64[Tensor, "M"]:
        """The share of whole texts with a nearer neighbour than these have; ½ for whole texts."""
        defined = states.isfinite().all(-1)
        found = torch.full((len(states),), torch.nan, dtype=torch.float64)
        others = self.instances != instances[defined, None]
        far = nearest_distance(states[defined], self.states, others)
        found[defined] = share_nearer(far, self.usual)
        return found

    @cached_property
    def encoded(self) -> Sequence[Encoded]:
        """The texts; raises NotApplicable where they are too few."""
        texts = (self.subject.encode(one) for one in self.examples())
        long = (one for one in texts if one.explained_tokens >= self.min_words)
        found = [*islice(long, MAX_TEXTS)]
        if len(found) < MIN_TEXTS:
            raise NotApplicable(
                f"the data has {len(found)} texts; measuring how far others are from whole texts "
                f"takes at least {MIN_TEXTS}"
            )
        return found

    @cached_property
    def instances(self) -> Int[Tensor, "N"]:
        """Their instance numbers."""
        return torch.tensor([one.index for one in self.encoded])

    @cached_property
    def states(self) -> Float64[Tensor, "N D"]:
        """The attended state of each."""
        found: dict[int, Tensor] = {}
        with torch.no_grad():
            for rows in batches_for(self.subject, self.encoded):
                batch = self.subject.batch([self.encoded[row] for row in rows])
                states = attended_state(batch, self.subject.forward(batch))
                found |= dict(zip(rows, states, strict=True))
        return torch.stack([found[row] for row in range(len(found))])

    @cached_property
    def usual(self) -> Float64[Tensor, "N"]:
        """The distance of each from the nearest of the others."""
        return nearest_distance(self.states, self.states, self.instances != self.instances[:, None])
