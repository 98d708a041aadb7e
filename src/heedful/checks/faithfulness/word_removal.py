"""Texts without some of their words: what the model says of each, every distinct one run once."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from heedful.methods.base import Join
from heedful.methods.erasure.coalitions import player_index
from heedful.models.batch_context import BatchContext, OutputFunction, VariantLogits
from heedful.models.perturbed.delete_words import run_without_tokens
from heedful.models.perturbed.mask_words import run_with_masked_tokens
from heedful.numerics.tensor.erasure_metrics import grid_sizes


@runtime_checkable
class WordRemover(Protocol):
    """A way to remove tokens from texts and ask the model of each."""

    def __call__(
        self, context: BatchContext, rows: Tensor, gone: Tensor, /, *, ask: OutputFunction = ...
    ) -> Iterator[VariantLogits]: ...


REMOVAL_WAYS: dict[str, WordRemover] = {
    "deletion": run_without_tokens,
    "masking": run_with_masked_tokens,
}


@dataclass(frozen=True, eq=False)
class WordView:
    """The words of a batch: in a transformer a word's pieces go together."""

    context: BatchContext

    @cached_property
    def token_player(self) -> Int[Tensor, "B T"]:
        """The number of the word that each token belongs to; −1 for none."""
        return player_index(self.context.batch, "words")

    @cached_property
    def counts(self) -> Int[Tensor, "B"]:
        """How many words each text has."""
        return self.token_player.amax(-1) + 1

    @cached_property
    def real(self) -> Bool[Tensor, "B W"]:
        """True where a text has a word."""
        return torch.arange(max(1, int(self.counts.max()))) < self.counts[:, None]

    def tokens(self, rows: Int[Tensor, "N"], gone: Bool[Tensor, "N W"]) -> Bool[Tensor, "N T"]:
        """The tokens of some words of texts rows[n]."""
        token_player = self.token_player[rows]
        return gone.gather(1, token_player.clamp(min=0)) & (token_player >= 0)

    def joined(self, scores: Float64[Tensor, "B T"], join: Join) -> Float64[Tensor, "B W"]:
        """Scores of words from those of their pieces: the sum, or the norm."""
        parts = scores.square() if join == "norm" else scores
        added = torch.zeros(self.real.shape, dtype=torch.float64).scatter_add(
            1, self.token_player.clamp(min=0), parts.masked_fill(self.token_player < 0, 0.0)
        )
        return added.sqrt() if join == "norm" else added


@dataclass(frozen=True, eq=False)
class RemovalOutput:
    """The probability of the class that was predicted, and whether another is likelier."""

    p: Float64[Tensor, "*N"]
    flipped: Bool[Tensor, "*N"]


@dataclass(frozen=True, eq=False)
class Removals:
    """What the model says to texts without some words, by one way to remove them.

    Answers are kept: orders that agree on what to remove share their passes. The class is that of
    `target`, where another model predicted it; `by` removes where the way is none of the usual.
    """

    words: WordView
    way: str
    target: Int[Tensor, "B"] | None = None
    by: WordRemover | None = None
    known: dict[bytes, int] = field(default_factory=dict)
    answers: list[RemovalOutput] = field(default_factory=list)

    def __call__(self, rows: Int[Tensor, "N"], gone: Bool[Tensor, "N W"]) -> RemovalOutput:
        """Texts rows[n] without the words gone[n]; NaN where nothing is left to read."""
        keys = _removal_keys(rows, gone)
        first = {key: place for place, key in reversed([*enumerate(keys)]) if key not in self.known}
        if first:
            chosen = torch.tensor([*first.values()])
            self.known.update({key: len(self.known) + n for n, key in enumerate(first)})
            self.answers.append(self._run(rows[chosen], gone[chosen]))
        place = torch.tensor([self.known[key] for key in keys])
        return RemovalOutput(self._all("p")[place], self._all("flipped")[place])

    @property
    def _passes(self) -> WordRemover:
        return self.by or REMOVAL_WAYS[self.way]

    def _all(self, part: str) -> Tensor:
        if len(self.answers) > 1:
            whole = [
                torch.cat([getattr(one, name) for one in self.answers]) for name in OUTPUT_FIELDS
            ]
            self.answers[:] = [RemovalOutput(*whole)]
        found: Tensor = getattr(self.answers[0], part)
        return found

    def _run(self, rows: Int[Tensor, "N"], gone: Bool[Tensor, "N W"]) -> RemovalOutput:
        context, tokens = self.words.context, self.words.tokens(rows, gone)
        target = (context.predicted.cpu() if self.target is None else self.target)[rows]
        p = torch.full((len(rows),), torch.nan, dtype=torch.float64)
        flipped = torch.zeros(len(rows), dtype=torch.bool)
        with context.clock(self.way):
            for variants, which, logits in self._passes(context, rows, tokens):
                # of a vocabulary as classes no more is kept than these two
                mine, said = target[variants], logits.cpu().double()
                p[variants] = said.softmax(-1)[which, mine]
                flipped[variants] = said.argmax(-1)[which] != mine
        return RemovalOutput(p, flipped)

    def states(self, rows: Int[Tensor, "N"], gone: Bool[Tensor, "N W"]) -> Float64[Tensor, "N D"]:
        """What attention makes of texts rows[n] without the words gone[n]; NaN of nothing."""
        context, tokens = self.words.context, self.words.tokens(rows, gone)
        width = context.forward.states.shape[-1]
        found = torch.full((len(rows), width), torch.nan, dtype=torch.float64)
        with context.clock(self.way):
            passes = self._passes(context, rows, tokens, ask=BatchContext.attended_state)
            for variants, which, states in passes:
                found[variants] = states[which].double()
        return found

    def at(self, gone: Bool[Tensor, "*K B W"], asked: Bool[Tensor, "*K B"]) -> RemovalOutput:
        """The same for sets of words of every text, where they are asked for; NaN elsewhere."""
        rows = torch.arange(asked.shape[-1]).expand(asked.shape)[asked]
        p = torch.full(asked.shape, torch.nan, dtype=torch.float64)
        flipped = torch.zeros(asked.shape, dtype=torch.bool)
        if len(rows):
            said = self(rows, gone[asked])
            p[asked], flipped[asked] = said.p, said.flipped
        return RemovalOutput(p, flipped)

    def first_flip(
        self, place: Int[Tensor, "K B W"], asked: Bool[Tensor, "K B"], *, steps: int
    ) -> Int[Tensor, "K B"]:
        """How many words are gone, in order, when another class is likelier; 0 if it never is."""
        found = torch.zeros(asked.shape, dtype=torch.long)
        for size in grid_sizes(self.words.counts, steps):
            still = asked & (found == 0) & (size > 0)
            if not bool(still.any()):
                break
            said = self.at(place < size[:, None], still)
            found = torch.where(said.flipped, size, found)
        return found


OUTPUT_FIELDS = ("p", "flipped")


def _removal_keys(rows: Int[Tensor, "N"], gone: Bool[Tensor, "N W"]) -> list[bytes]:
    """A name for each set of words of each text."""
    packed = np.packbits(gone.numpy(), axis=1)
    numbers = rows.numpy().astype(np.int64)[:, None].view(np.uint8)
    return [one.tobytes() for one in np.concatenate([numbers, packed], axis=1)]
