"""How many orders of words `influence` needs on this model and these texts."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from heedful.checks.influence.names import RELIABLE
from heedful.checks.influence.orders import pair_agreement, pair_stakes, tied_ranks
from heedful.core.rng import generator
from heedful.core.values import Example
from heedful.data.batching import batches_for
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import Subject
from heedful.numerics.stats.resampled_sums import interval_of, resample_sums

if TYPE_CHECKING:
    from heedful.checks.influence.check import InfluenceCheck

PILOT_ORDERS, MOST_ORDERS = 4, 32


@dataclass(eq=False)
class PilotTexts:
    """Texts drawn by their content, the same in any order of the rows."""

    count: int
    considered: int = 0
    drawn: list[tuple[float, int, Example]] = field(default_factory=list)

    def consider(self, example: Example) -> None:
        """Keep the text if its number is among the smallest."""
        self.considered += 1
        number = generator(0, f"pilot of influence {example.text} {example.pair}").random()
        entry = (-number, -example.index, example)
        if len(self.drawn) < self.count:
            heapq.heappush(self.drawn, entry)
        else:
            heapq.heappushpop(self.drawn, entry)

    @property
    def chosen(self) -> list[Example]:
        """The texts, in a fixed order."""
        return [example for _, _, example in sorted(self.drawn, key=lambda one: one[:2])]


def orders_needed(check: "InfluenceCheck", subject: Subject, texts: Sequence[Example]) -> int:
    """The fewest orders of 4, 8, 16 and 32 that make the influence of words reliable enough.

    The lower end of the reliability must be ½; with k times as many orders a reliability r becomes
    kr / (1 + (k − 1) r).
    """
    agreed, stakes = pilot_halves(check, subject, texts)
    columns = np.stack([agreed, stakes], axis=1)
    half = interval_of(resample_sums(columns), lambda sums: sums[:, 0] / sums[:, 1], n=len(columns))
    orders = PILOT_ORDERS
    while orders < MOST_ORDERS and not _stepped_up(half.low, orders) >= RELIABLE:
        orders *= 2
    return orders


def _stepped_up(half: float, orders: int) -> float:
    """The reliability of m over some orders, from the agreement of halves of four.

    >>> _stepped_up(0.25, 4), _stepped_up(0.25, 8)
    (0.4, 0.5714285714285714)
    """
    times = 2 * orders / PILOT_ORDERS
    return times * half / (1 + (times - 1) * half)


def pilot_halves(
    check: "InfluenceCheck", subject: Subject, texts: Sequence[Example]
) -> tuple[np.ndarray, np.ndarray]:
    """By text, the agreement of one half of the orders with the other, and what is at stake."""
    encoded = [subject.encode(one) for one in texts]
    agreed, stakes = [], []
    for chosen in batches_for(subject, encoded):
        batch = subject.batch([encoded[index] for index in chosen])
        for m in check.influence_of(BatchContext(subject, batch)):
            one, other = m.halves
            agreed.append(pair_agreement(tied_ranks(one), other))
            stakes.append(pair_stakes(other))
    return np.array(agreed), np.array(stakes)
