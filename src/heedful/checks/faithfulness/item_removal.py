"""Outputs for texts with some of their items removed; every distinct text is run once."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from heedful.checks.faithfulness.items import ItemView
from heedful.models.batch_context import BatchContext, OutputFunction, VariantLogits
from heedful.models.perturbed.erased_words import run_with_masked_tokens, run_without_tokens
from heedful.numerics.tensor.erasure_metrics import grid_sizes


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

    Outputs are cached: orders that remove the same items share their passes. `target` gives the
    class where another model predicted it; `by` removes items where `way` is not built in.
    """

    items: ItemView
    way: str
    target: Int[Tensor, "B"] | None = None
    by: ItemRemover | None = None
    known: dict[bytes, int] = field(default_factory=dict)
    answers: list[RemovalOutput] = field(default_factory=list)

    def __call__(self, rows: Int[Tensor, "N"], gone: Bool[Tensor, "N I"]) -> RemovalOutput:
        """Texts rows[n] without the items gone[n]; NaN where nothing is left."""
        keys = _removal_keys(rows, gone)
        first = {key: place for place, key in reversed([*enumerate(keys)]) if key not in self.known}
        if first:
            chosen = torch.tensor([*first.values()])
            self.known.update({key: len(self.known) + n for n, key in enumerate(first)})
            self.answers.append(self._run(rows[chosen], gone[chosen]))
        place = torch.tensor([self.known[key] for key in keys])
        return RemovalOutput(self._all("p")[place], self._all("flipped")[place])

    @property
    def _passes(self) -> ItemRemover:
        return self.by or REMOVAL_WAYS[self.way]

    def _all(self, part: str) -> Tensor:
        if len(self.answers) > 1:
            whole = [
                torch.cat([getattr(one, name) for one in self.answers]) for name in OUTPUT_FIELDS
            ]
            self.answers[:] = [RemovalOutput(*whole)]
        found: Tensor = getattr(self.answers[0], part)
        return found

    def _run(self, rows: Int[Tensor, "N"], gone: Bool[Tensor, "N I"]) -> RemovalOutput:
        context, tokens = self.items.context, self.items.tokens(rows, gone)
        target = (context.predicted.cpu() if self.target is None else self.target)[rows]
        p = torch.full((len(rows),), torch.nan, dtype=torch.float64)
        flipped = torch.zeros(len(rows), dtype=torch.bool)
        with context.clock(self.way):
            for variants, which, logits in self._passes(context, rows, tokens):
                # only these two are kept: with a vocabulary as classes logits would be too large
                mine, said = target[variants], logits.cpu().double()
                p[variants] = said.softmax(-1)[which, mine]
                flipped[variants] = said.argmax(-1)[which] != mine
        return RemovalOutput(p, flipped)

    def states(self, rows: Int[Tensor, "N"], gone: Bool[Tensor, "N I"]) -> Float64[Tensor, "N D"]:
        """Attended states of texts rows[n] without the items gone[n]; NaN where nothing is left."""
        context, tokens = self.items.context, self.items.tokens(rows, gone)
        width = context.forward.states.shape[-1]
        found = torch.full((len(rows), width), torch.nan, dtype=torch.float64)
        with context.clock(self.way):
            passes = self._passes(context, rows, tokens, output=BatchContext.attended_state)
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
        for size in grid_sizes(self.items.counts, steps):
            still = asked & (found == 0) & (size > 0)
            if not bool(still.any()):
                break
            said = self.at(place < size[:, None], still)
            found = torch.where(said.flipped, size, found)
        return found


OUTPUT_FIELDS = ("p", "flipped")


def _removal_keys(rows: Int[Tensor, "N"], gone: Bool[Tensor, "N I"]) -> list[bytes]:
    """A key for each set of items of each text."""
    packed = np.packbits(gone.numpy(), axis=1)
    numbers = rows.numpy().astype(np.int64)[:, None].view(np.uint8)
    return [one.tobytes() for one in np.concatenate([numbers, packed], axis=1)]
