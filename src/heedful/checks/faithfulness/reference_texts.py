"""A sample of whole texts, for comparison with texts whose words were removed."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from heedful.core.batch import Encoded
from heedful.core.errors import NotApplicable
from heedful.core.values import Example
from heedful.data.batching import batches_for
from heedful.models.batch_context import attended_state
from heedful.models.protocols import Subject
from heedful.numerics.tensor.erasure_metrics import nearest_distance, share_nearer

MAX_TEXTS = 256  # the first texts of the data: enough for their distribution
MIN_TEXTS = 20  # with fewer, shares would be too coarse


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
        found = [
            *islice((one for one in texts if one.explained_tokens >= self.min_words), MAX_TEXTS)
        ]
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
