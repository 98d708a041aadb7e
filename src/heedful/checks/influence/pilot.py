"""How many orders of words `influence` needs on this model and these texts."""

import heapq
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heedful.checks.influence.estimates import estimate_influence
from heedful.checks.influence.names import NAME
from heedful.checks.influence.rules import has_yardstick
from heedful.checks.spec import Evidence
from heedful.core.batch import Encoded
from heedful.core.records import CheckResult, Estimate, EstimateRow, MeasureKey
from heedful.core.rng import generator
from heedful.core.values import Example
from heedful.data.batching import batches_for
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import Subject
from heedful.results.tables import MeasurementColumns

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


def orders_needed(
    check: "InfluenceCheck", subject: Subject, texts: Sequence[Example], *, audited: int
) -> int:
    """The fewest orders of 4, 8, 16 and 32 with which there is a yardstick.

    Two halves of the orders must agree, and the ranking by one half must be found to rank words on
    the other half, as the rules ask of every run. What intervals of the pilot leave open counts as
    far as it would with the number of texts that are to be `audited`.
    """
    encoded = [subject.encode(one) for one in texts]
    orders = PILOT_ORDERS
    while orders < MOST_ORDERS:
        own = replace(check, orders=orders, methods=("attention",), costly_share=0.0)
        if has_yardstick(_measure(own, subject, encoded, audited)):
            break
        orders *= 2
    return orders


def _measure(
    check: "InfluenceCheck", subject: Subject, encoded: Sequence[Encoded], audited: int
) -> Evidence:
    """The estimates of the pilot, with intervals as narrow as more texts would make them."""
    found: dict[MeasureKey, list[NDArray[np.float64]]] = defaultdict(list)
    predicted: list[int] = []
    for chosen in batches_for(subject, encoded):
        context = BatchContext(subject, subject.batch([encoded[index] for index in chosen]))
        predicted += context.predicted.tolist()
        for one in check(context).measurements:
            found[one.key(NAME)].append(one.values)
    names = np.array([subject.labels[one] for one in predicted], dtype=object)
    values = {key: np.concatenate(parts) for key, parts in found.items()}
    columns = MeasurementColumns(np.arange(len(names)), names, names, values)
    rows = estimate_influence(columns, _PilotResampling(), [], epsilon=np.nan)
    scale = min(1.0, (len(names) / max(1, audited)) ** 0.5)
    rows = tuple(replace(row, estimate=_narrow(row.estimate, scale)) for row in rows)
    plain = {row.measure: row.estimate for row in rows if row.measure in PLAIN and _is_plain(row)}
    by = tuple(row for row in rows if not _is_plain(row))
    return Evidence({NAME: CheckResult("undecided", "", plain, by)})


@dataclass(frozen=True)
class _PilotResampling:
    """Fewer resamples than an audit has."""

    resamples: int = 300
    seed: int = 0
    level: float = 0.95
    clusters: NDArray[Any] | None = None
    copies: NDArray[Any] | None = None


PLAIN = ("reliability", "top_set_gap")


def _is_plain(row: EstimateRow) -> bool:
    return all(one is None for one in (row.method, row.setting, row.predicted, row.slice))


def _narrow(one: Estimate, scale: float) -> Estimate:
    return replace(
        one,
        low=one.value - scale * (one.value - one.low),
        high=one.value + scale * (one.high - one.value),
    )
