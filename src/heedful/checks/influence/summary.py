"""What the verdict says in words people care about: flips, and the method to use instead."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from heedful.checks.base import Resampling
from heedful.checks.influence.estimates import (
    Places,
    Reader,
    Statistic,
    SummedColumns,
    TextMask,
    estimate_share,
    methods_of,
)
from heedful.checks.influence.names import BEST_SET, RANDOM
from heedful.checks.requested_methods import method_kind
from heedful.core.records import BetterMethod, Estimate, Flips, MethodEstimate
from heedful.methods import methods
from heedful.numerics.stats.resampled_sums import interval_of, resample_sums
from heedful.results.tables import MeasurementColumns, TextValues

ATTENTION = "attention"
COVERED = 0.95  # of the texts: a method that ranks only some is not compared on all


def is_kin(method: str) -> bool:
    """Whether a method erases words itself, as the yardstick does, so that it must do well."""
    return method in methods and methods.trait(method, "erases") is not None


@dataclass(frozen=True, eq=False)
class InfluenceSummary:
    """The flips and the better method, from the columns of `influence`.

    A method is chosen on one half of the texts and reported on the other, so that the best of many
    is not the luckiest.
    """

    columns: MeasurementColumns
    resampling: Resampling

    @cached_property
    def reader(self) -> Reader:
        """Reads the columns, and sums them."""
        return Reader(self.columns, SummedColumns())

    @cached_property
    def judged(self) -> TextMask:
        """The texts with enough words."""
        return self.reader.values("order_weight") >= 0

    def flips(self) -> Flips:
        """In which share of the texts the prediction changes without a fifth of the words."""
        read = self.reader.values
        attention, random = read("flip_top", ATTENTION), read("flip_top", RANDOM)
        best_set = read("flip_top", None, BEST_SET)
        best, own = self._best_flipping(), self._share(attention)
        reported = own if best == ATTENTION else self._share(self._reported(best)) if best else None
        return Flips(
            own,
            self._mean(random),
            self._mean(attention - random),
            self._share(best_set),
            None if best is None or reported is None else MethodEstimate(best, reported),
        )

    def _reported(self, method: str) -> TextValues:
        return np.where(self._half(1), self.reader.values("flip_top", method), np.nan)

    def _best_flipping(self) -> str | None:
        """The method without whose top words most predictions change, on one half of the texts.

        Attention itself may be it.
        """
        others = [*self._candidates()]
        chosen = {
            name: float(np.nanmean(self.reader.values("flip_top", name)[self._half(0)]))
            for name in (*others, *([ATTENTION] if others else []))
        }
        return max(chosen, key=lambda name: chosen[name], default=None)

    def better_method(self) -> BetterMethod | None:
        """The method that ranks words better than attention, if there is one."""
        chosen = {name: self.reader.evaluate(self._order(name, 0)) for name in self._candidates()}
        best = max(chosen, key=lambda name: chosen[name], default=None)
        if best is None:
            return None
        n = int(self._half(1).sum())
        own, attention = self._order(best, 1), self._order(ATTENTION, 1)
        gain = self._estimate(lambda sums: own(sums) - attention(sums), n)
        return BetterMethod(best, self._estimate(own, n)) if gain.low > 0 else None

    def _candidates(self) -> Iterator[str]:
        """Methods that may stand in for attention: they cover the texts and erase no words."""
        halves = self._half(0), self._half(1)
        if not all(half.any() for half in halves):
            return
        for name in methods_of(self.reader.columns):
            known = ~np.isnan(self.reader.values("order_sum", name))
            covers = all(known[half].mean() >= COVERED for half in halves)
            other = name != ATTENTION and method_kind(name) != "control"
            if other and covers and not is_kin(name):
                yield name

    def _half(self, which: int) -> TextMask:
        half: TextMask = self.judged & (self.reader.values("choice") == which)
        return half

    def _order(self, method: str, half: int) -> Statistic:
        """The order of a method on one half of the texts."""
        known = ~np.isnan(self.reader.values("order_sum", method))
        return Places(self.reader, self._half(half) & known, method).order()

    def _mean(self, values: TextValues) -> Estimate:
        known = self.judged & ~np.isnan(values)
        return self._estimate(self.reader.mean(values, known), int(known.sum()))

    def _share(self, values: TextValues) -> Estimate:
        return estimate_share(np.where(self.judged, values, np.nan), self.resampling)

    def _estimate(self, statistic: Statistic, n: int) -> Estimate:
        sums = resample_sums(
            np.stack(self.reader.table.columns, axis=1),
            self.resampling.clusters,
            resamples=self.resampling.resamples,
            seed=self.resampling.seed,
        )
        return interval_of(sums, statistic, n=n, level=self.resampling.level)
