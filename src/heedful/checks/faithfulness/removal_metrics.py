"""Words removed in the orders of several methods and at random: what each measure makes of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from heedful.checks.base import TextValues
from heedful.checks.faithfulness.word_removal import Removals
from heedful.numerics.stats.multiple_testing import holm_adjusted
from heedful.numerics.stats.permutation_tests import one_sided_sign_flip_p
from heedful.numerics.tensor import erasure_metrics

MetricColumns = Mapping[str, Float64[Tensor, "K B"]]


@dataclass(frozen=True, eq=False)
class RemovalMetrics:
    """All orders put to one batch by one way to remove words; the last of the scores are equal."""

    removals: Removals
    scores: Float64[Tensor, "K B W"]
    chance: Int[Tensor, "R B W"]
    bins: tuple[float, ...]
    steps: int

    def columns(self) -> MetricColumns:
        """Every measure: of the methods, of equal scores, of random orders on the average."""
        known, several = len(self.scores), self.removals.words.counts > 1
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
            "violation": erasure_metrics.sign_violations(
                self.scores, effects, self.removals.words.real
            ),
        }

    @cached_property
    def place(self) -> Int[Tensor, "K B W"]:
        """The words' places in the methods' orders."""
        real = self.removals.words.real.expand_as(self.scores)
        return erasure_metrics.removal_ranks(self.scores.nan_to_num(0.0), real)

    @cached_property
    def served(self) -> Bool[Tensor, "K B"]:
        """Which orders there are of which texts, random ones last: a method may refuse some."""
        ranked = torch.cat([self.scores, self.chance.double()]).isfinite().all(-1)
        return ranked & (self.removals.words.counts > 0)

    def _top(self, place: Int[Tensor, "K B W"]) -> Bool[Tensor, "K S B W"]:
        """The first words of every order, as many as each bin holds."""
        words = self.removals.words
        sizes = erasure_metrics.bin_sizes(words.counts, self.bins)[..., None]
        return (place[:, None] < sizes) & words.real

    def both(self) -> tuple[Float64[Tensor, "K S B"], Float64[Tensor, "K S B"]]:
        """p without the first words, and with them alone."""
        top = self._top(torch.cat([self.place, self.chance]))
        sets = torch.stack([top, ~top & self.removals.words.real])
        without, alone = self.removals.at(sets, self._asked(sets)).p
        return without, alone

    def _backwards(self) -> Float64[Tensor, "K S B"]:
        """p without the last words."""
        real = self.removals.words.real.expand_as(self.place)
        last = self._top(erasure_metrics.reverse_order(self.place, real))
        return self.removals.at(last, self._asked(last)).p

    def _asked(self, sets: Bool[Tensor, "*H K S B W"]) -> Bool[Tensor, "*H K S B"]:
        return self.served[: sets.shape[-4], None].expand(sets.shape[:-1])

    def _ends(
        self,
    ) -> tuple[Float64[Tensor, "B"], Float64[Tensor, "B"], Float64[Tensor, "B W"]]:
        """p of the whole text and of nothing of it, and what each single word's removal takes."""
        words = self.removals.words
        real = words.real
        single = torch.eye(real.shape[1], dtype=torch.bool)[:, None] & real
        ends = torch.stack([torch.zeros_like(real), real])
        asked = torch.cat([torch.ones(2, len(real), dtype=torch.bool), real.T])
        p = self.removals.at(torch.cat([ends, single]), asked).p
        return p[0], p[1], (p[0] - p[2:]).T

    def _flips(self) -> Float64[Tensor, "K B"]:
        """The share of the words gone at the first flip, by the conventions of `erasure`."""
        place = torch.cat([self.place, self.chance])
        even = torch.arange(len(place))[:, None] == len(self.place) - 1  # names no order
        counts = self.removals.first_flip(place, self.served & ~even, steps=self.steps)
        # an order that never flips a text that others flip would have to remove all of it
        share = torch.where(counts > 0, counts / self.removals.words.counts.double(), 1.0)
        return torch.where(self.served & (counts > 0).any(0), share, torch.nan)


def _with_random_mean(found: Float64[Tensor, "K B"], methods: int) -> Float64[Tensor, "M B"]:
    """Those of the methods, then the mean of the random orders."""
    return torch.cat([found[:methods], found[methods:].mean(0, keepdim=True)])


def beyond_random_p_values(
    names: Sequence[str], columns: Mapping[str, TextValues], *, resamples: int, seed: int
) -> dict[str, float]:
    """p-values of "no more than random removal does" for every method, Holm's over all."""
    p = [
        one_sided_sign_flip_p(columns[f"beyond_random_{name}"], resamples=resamples, seed=seed)
        for name in names
    ]
    adjusted = holm_adjusted(p)
    return {f"p_beyond_random_{name}": one for name, one in zip(names, adjusted, strict=True)}
