"""Removing items of texts in the orders of methods and at random: outputs, and their measures."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from heedful.checks.faithfulness.items import ItemView
from heedful.core.records import Series
from heedful.models.batch_context import BatchContext, OutputFunction, VariantLogits
from heedful.models.perturbed.erased_words import run_with_masked_tokens, run_without_tokens
from heedful.numerics.stats.multiple_testing import holm_adjusted
from heedful.numerics.stats.permutation_tests import one_sided_sign_flip_p
from heedful.numerics.tensor import erasure_metrics
from heedful.results.tables import TextValues

MOST_MARKS = 2**21  # marks of tokens at once: sets of words times the length of their text
MetricColumns = Mapping[str, Float64[Tensor, "K B"]]


@runtime_checkable
class ItemRemover(Protocol):
    """A way to remove tokens from texts and to run the model on what is left."""

    def __call__(
        self, context: BatchContext, rows: Tensor, gone: Tensor, /, *, output: OutputFunction = ...
    ) -> Iterator[VariantLogits]: ...


REMOVAL_WAYS: dict[str, ItemRemover] = {
    "deletion": run_without_tokens,
    "masking": run_with_masked_tokens,
}


@dataclass(frozen=True, eq=False)
class RemovalOutput:
    """The probability of the predicted class, and whether another class is more probable."""

    p: Float64[Tensor, "*N"]
    flipped: Bool[Tensor, "*N"]


@dataclass(frozen=True, eq=False)
class Removals:
    """Outputs for texts with some items removed, by one way of removing them.

    Outputs are kept: orders that remove the same items share their passes. `target` gives the
    class where another model predicted it; `by` removes items where `way` is not built in.
    """

    items: ItemView
    way: str
    target: Int[Tensor, "B"] | None = None
    by: ItemRemover | None = None
    known: dict[bytes, tuple[float, bool]] = field(default_factory=dict)

    def __call__(
        self,
        rows: Int[Tensor, "N"],
        gone: Bool[Tensor, "N I"],
        *,
        remember: Bool[Tensor, "N"] | None = None,
    ) -> RemovalOutput:
        """Texts rows[n] without the items gone[n]; NaN where nothing is left.

        Where sets are too many, `remember` names those that will be asked for again.
        """
        keys = _removal_keys(rows, gone)
        first = {key: place for place, key in reversed([*enumerate(keys)]) if key not in self.known}
        new: dict[bytes, tuple[float, bool]] = {}
        if first:
            chosen = torch.tensor([*first.values()])
            said = self._run(rows[chosen], gone[chosen])
            pairs = zip(said.p.tolist(), said.flipped.tolist(), strict=True)
            new = dict(zip(first, pairs, strict=True))
        found = [self.known.get(key) or new[key] for key in keys]
        kept = keys if remember is None else compress(keys, remember.tolist())
        self.known.update((key, new[key]) for key in kept if key in new)
        return RemovalOutput(
            torch.tensor([p for p, _ in found], dtype=torch.float64),
            torch.tensor([flipped for _, flipped in found], dtype=torch.bool),
        )

    @property
    def _remover(self) -> ItemRemover:
        return self.by or REMOVAL_WAYS[self.way]

    def _run(self, rows: Int[Tensor, "N"], gone: Bool[Tensor, "N I"]) -> RemovalOutput:
        context = self.items.context
        target = (context.predicted.cpu() if self.target is None else self.target)[rows]
        p = torch.full((len(rows),), torch.nan, dtype=torch.float64)
        flipped = torch.zeros(len(rows), dtype=torch.bool)
        size = max(1, MOST_MARKS // context.batch.ids.shape[1])
        with context.clock(self.way):
            for some in torch.split(torch.arange(len(rows)), size):
                tokens = self.items.tokens(rows[some], gone[some])
                for variants, which, logits in self._remover(context, rows[some], tokens):
                    # only these two are kept: with a vocabulary as classes logits are too large
                    here, said = some[variants], logits.cpu().double()
                    p[here] = said.softmax(-1)[which, target[here]]
                    flipped[here] = said.argmax(-1)[which] != target[here]
        return RemovalOutput(p, flipped)

    def states(self, rows: Int[Tensor, "N"], gone: Bool[Tensor, "N I"]) -> Float64[Tensor, "N D"]:
        """Attended states of texts rows[n] without the items gone[n]; NaN where nothing is left."""
        context, tokens = self.items.context, self.items.tokens(rows, gone)
        width = context.forward.states.shape[-1]
        found = torch.full((len(rows), width), torch.nan, dtype=torch.float64)
        with context.clock(self.way):
            passes = self._remover(context, rows, tokens, output=BatchContext.attended_state)
            for variants, which, states in passes:
                found[variants] = states[which].double()
        return found

    def at(self, gone: Bool[Tensor, "*K B I"], asked: Bool[Tensor, "*K B"]) -> RemovalOutput:
        """The same for sets of items of every text, where `asked`; NaN elsewhere."""
        rows = torch.arange(asked.shape[-1]).expand(asked.shape)[asked]
        p = torch.full(asked.shape, torch.nan, dtype=torch.float64)
        flipped = torch.zeros(asked.shape, dtype=torch.bool)
        if len(rows):
            said = self(rows, gone[asked])
            p[asked], flipped[asked] = said.p, said.flipped
        return RemovalOutput(p, flipped)

    def first_flip(
        self, place: Int[Tensor, "K B I"], asked: Bool[Tensor, "K B"], *, steps: int
    ) -> Int[Tensor, "K B"]:
        """How many items are gone when another class becomes more probable; 0 if none does."""
        found = torch.zeros(asked.shape, dtype=torch.long)
        for size in erasure_metrics.grid_sizes(self.items.counts, steps):
            still = asked & (found == 0) & (size > 0)
            if not bool(still.any()):
                break
            said = self.at(place < size[:, None], still)
            found = torch.where(said.flipped, size, found)
        return found


def _removal_keys(rows: Int[Tensor, "N"], gone: Bool[Tensor, "N I"]) -> list[bytes]:
    """A key for each set of items of each text."""
    packed = np.packbits(gone.numpy(), axis=1)
    numbers = rows.numpy().astype(np.int64)[:, None].view(np.uint8)
    return [one.tobytes() for one in np.concatenate([numbers, packed], axis=1)]


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
        drops = self.top_items(self.chance).flatten(0, 1), lost[known:].flatten(0, 1)
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

    def top_items(self, place: Int[Tensor, "K B I"]) -> Bool[Tensor, "K S B I"]:
        """The first items of every order, as many as each bin holds."""
        items = self.removals.items
        sizes = erasure_metrics.bin_sizes(items.counts, self.bins)[..., None]
        return (place[:, None] < sizes) & items.real

    def both(self) -> tuple[Float64[Tensor, "K S B"], Float64[Tensor, "K S B"]]:
        """p without the first items, and with only them."""
        top = self.top_items(torch.cat([self.place, self.chance]))
        sets = torch.stack([top, ~top & self.removals.items.real])
        without, alone = self.removals.at(sets, self._asked(sets)).p
        return without, alone

    def _backwards(self) -> Float64[Tensor, "K S B"]:
        """p without the last items."""
        real = self.removals.items.real.expand_as(self.place)
        last = self.top_items(erasure_metrics.reverse_order(self.place, real))
        return self.removals.at(last, self._asked(last)).p

    def _asked(self, sets: Bool[Tensor, "*H K S B I"]) -> Bool[Tensor, "*H K S B"]:
        return self.served[: sets.shape[-4], None].expand(sets.shape[:-1])

    def _ends(self) -> tuple[Float64[Tensor, "B"], Float64[Tensor, "B"], Float64[Tensor, "B I"]]:
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
        # uniform scores give no order
        even = torch.arange(len(place))[:, None] == len(self.place) - 1
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
    own = (columns[Series("beyond_random", name)] for name in names)
    p = [one_sided_sign_flip_p(one, resamples=resamples, seed=seed) for one in own]
    tested = zip(names, holm_adjusted(p), strict=True)
    return {Series("p_beyond_random", name): one for name, one in tested}
