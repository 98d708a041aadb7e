"""What people said of the words of a batch, word by word as the checks see them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from heedful.checks.faithfulness.word_removal import Words
from heedful.core.rationales import People


@dataclass(frozen=True, eq=False)
class Told:
    """Marks and numbers that people gave the words of a batch."""

    words: Words

    @cached_property
    def people(self) -> list[People]:
        """Text by text; of texts nobody was told about, nothing."""
        sitting = self.words.sitting
        return [sitting.people.get(one, People()) for one in sitting.batch.instances]

    @cached_property
    def marked(self) -> Bool[Tensor, "B W"]:
        """True where people marked a word."""
        return self._spread([one.marked for one in self.people]) > 0

    @cached_property
    def scores(self) -> Float64[Tensor, "B W"]:
        """The numbers that people gave; 0 where there is none."""
        return self._spread([one.scores for one in self.people])

    @cached_property
    def scored(self) -> Bool[Tensor, "B"]:
        """Texts whose words have numbers."""
        return torch.tensor([one.scores is not None for one in self.people])

    def reason(self, nothing: str) -> str:
        """Why no text has anything: what the first says of itself, or that there is nothing."""
        return next((one.why for one in self.people if one.why), nothing)

    @cached_property
    def _number(self) -> Int[Tensor, "B W"]:
        """The number, in the text's own words, of each word that the model has tokens of."""
        seat, word = self.words.seat, self.words.sitting.batch.word
        whose = seat if word is None else torch.where(seat >= 0, word, -1)
        empty = torch.full(self.words.real.shape, -1)
        return empty.scatter_reduce(1, seat.clamp(min=0), whose, "amax")

    def _spread(self, told: Sequence[tuple[bool | float, ...] | None]) -> Float64[Tensor, "B W"]:
        found = torch.zeros(self.words.real.shape, dtype=torch.float64)
        for row, one in enumerate(told):
            if one:
                here = self.words.real[row]
                found[row, here] = torch.tensor(one, dtype=torch.float64)[self._number[row, here]]
        return found
