"""Measures of removing items in the orders of several methods and at random."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from heedful.checks.faithfulness.item_removal import Removals
from heedful.core.records import Series
from heedful.numerics.stats.multiple_testing import holm_adjusted
from heedful.numerics.stats.permutation_tests import one_sided_sign_flip_p
from heedful.numerics.tensor import erasure_metrics
from heedful.results.tables import TextValues

MetricColumns = Mapping[str, Float64[Tensor, "K B"]]


@dataclass(frozen=True, eq=False)
class RemovalMetrics:
    """All orders applied to one batch by one way of removing items; the last scores are uniform."""

    removals: Removals
    scores: Float64[Tensor, "K B I"]
    chance: Int[Tensor, "R B I"]
    bins: tuple[float, ...]
    steps: int

    def columns(self) -> MetricColumns:
        """Every measure: of the methods, of uniform scores, and the mean of random orders."""
        known, several = len(self.scores), self.removals.items.counts > 1
        whole, empty, effects = self._ends()
        (without, alone), back = self.both(), self._backwards()
        lost, kept = whole - without, whole - alone
        own, random = lost.mean(1)[:known], lost.mean(1)[known:]
        drops = self._top(self.chance).flatten(0, 1), lost[known:].flatten(0, 1)
        less, more = (
            erasure_metrics.normalised_change(whole, left[:known], empty, keeps=keeps).mean(1)
            for left, keeps in ((without, False), (alone, True))
        )
        beats = erasure_metrics.diagnosticity(own, random)
        return {
            "comprehensiveness": _with_random_mean(lost.mean(1), known),
            "sufficiency": _with_random_mean(kept.mean(1), known),
            "beyond_random": torch.where(several, own - random.mean(0), torch.nan),
            "diagnosticity": torch.where(several, beats, torch.nan),
            "worst": (whole - back).mean(1),
            "flip": _with_random_mean(self._flips(), known),
            "infidelity": erasure_metrics.infidelity(self.scores, *drops),
            "infidelity_scaled": erasure_metrics.infidelity(self.scores, *drops, scaled=True),
            "normalised_comprehensiveness": less,
            "normalised_sufficiency": more,
            "violation": erasure_metrics.sign_agreement(
                self.scores, -effects, negligible=erasure_metrics.EQUAL_PROBABILITY
            ),
        }

    @cached_property
    def place(self) -> Int[Tensor, "K B I"]:
        """The items' places in the methods' orders."""
        real = self.removals.items.real.expand_as(self.scores)
        return erasure_metrics.removal_ranks(self.scores.nan_to_num(0.0), real)

    @cached_property
    def served(self) -> Bool[Tensor, "K B"]:
        """Which orders exist for which texts, random ones last: a method may refuse some texts."""
        ranked = torch.cat([self.scores, self.chance.double()]).isfinite().all(-1)
        return ranked & (self.removals.items.counts > 0)

    def _top(self, place: Int[Tensor, "K B I"]) -> Bool[Tensor, "K S B I"]:
        """The first items of every order, as many as each bin holds."""
        items = self.removals.items
        sizes = erasure_metrics.bin_sizes(items.counts, self.bins)[..., None]
        return (place[:, None] < sizes) & items.real

    def both(self) -> tuple[Float64[Tensor, "K S B"], Float64[Tensor, "K S B"]]:
        """p without the first items, and with only them."""
        top = self._top(torch.cat([self.place, self.chance]))
        sets = torch.stack([top, ~top & self.removals.items.real])
        without, alone = self.removals.at(sets, self._asked(sets)).p
        return without, alone

    def _backwards(self) -> Float64[Tensor, "K S B"]:
        """p without the last items."""
        real = self.removals.items.real.expand_as(self.place)
        last = self._top(erasure_metrics.reverse_order(self.place, real))
        return self.removals.at(last, self._asked(last)).p

    def _asked(self, sets: Bool[Tensor, "*H K S B I"]) -> Bool[Tensor, "*H K S B"]:
        return self.served[: sets.shape[-4], None].expand(sets.shape[:-1])

    def _ends(
        self,
    ) -> tuple[Float64[Tensor, "B"], Float64[Tensor, "B"], Float64[Tensor, "B I"]]:
        """p of the whole text and of an empty one, and the loss by removing each single item."""
        items = self.removals.items
        real = items.real
        single = torch.eye(real.shape[1], dtype=torch.bool)[:, None] & real
        ends = torch.stack([torch.zeros_like(real), real])
        asked = torch.cat([torch.ones(2, len(real), dtype=torch.bool), real.T])
        p = self.removals.at(torch.cat([ends, single]), asked).p
        return p[0], p[1], (p[0] - p[2:]).T

    def _flips(self) -> Float64[Tensor, "K B"]:
        """The share of the items gone at the first flip, by the conventions of `erasure`."""
        place = torch.cat([self.place, self.chance])
        even = (
            torch.arange(len(place))[:, None] == len(self.place) - 1
        )  # uniform scores give no order
        counts = self.removals.first_flip(place, self.served & ~even, steps=self.steps)
        # an order that never flips a text that others flip would have to remove all of it
        share = torch.where(counts > 0, counts / self.removals.items.counts.double(), 1.0)
        return torch.where(self.served & (counts > 0).any(0), share, torch.nan)


def _with_random_mean(found: Float64[Tensor, "K B"], methods: int) -> Float64[Tensor, "M B"]:
    """The rows of the methods, then the mean of the random orders."""
    return torch.cat([found[:methods], found[methods:].mean(0, keepdim=True)])


def beyond_random_p_values(
    names: Sequence[str], columns: Mapping[Series, TextValues], *, resamples: int, seed: int
) -> dict[Series, float]:
    """p-values of "removes no more than random removal" by method, with Holm's correction."""
    p = [
        one_sided_sign_flip_p(
            columns[Series("beyond_random", name)], resamples=resamples, seed=seed
        )
        for name in names
    ]
    adjusted = holm_adjusted(p)
    return {Series("p_beyond_random", name): one for name, one in zip(names, adjusted, strict=True)}
