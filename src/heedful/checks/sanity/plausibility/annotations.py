"""What people said of the words of a batch, word by word as the checks see them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from heedful.checks.faithfulness.word_removal import WordView
from heedful.core.rationales import WordAnnotations


@dataclass(frozen=True, eq=False)
class AnnotationView:
    """Marks and numbers that people gave the words of a batch."""

    words: WordView

    @cached_property
    def people(self) -> list[WordAnnotations]:
        """Text by text; of texts nobody was told about, nothing."""
        context = self.words.context
        return [context.rationales.get(one, WordAnnotations()) for one in context.batch.instances]

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
        token_player, word = self.words.token_player, self.words.context.batch.word
        whose = token_player if word is None else torch.where(token_player >= 0, word, -1)
        empty = torch.full(self.words.real.shape, -1)
        return empty.scatter_reduce(1, token_player.clamp(min=0), whose, "amax")

    def _spread(self, told: Sequence[tuple[bool | float, ...] | None]) -> Float64[Tensor, "B W"]:
        found = torch.zeros(self.words.real.shape, dtype=torch.float64)
        for row, one in enumerate(told):
            if one:
                here = self.words.real[row]
                found[row, here] = torch.tensor(one, dtype=torch.float64)[self._number[row, here]]
        return found
