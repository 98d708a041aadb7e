"""Human annotations of the words of a batch, aligned with the words that checks rank."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from heedful.checks.faithfulness.items import ItemView
from heedful.core.rationales import WordAnnotations


@dataclass(frozen=True, eq=False)
class AnnotationView:
    """Rationale marks and word scores that people gave."""

    words: ItemView

    @cached_property
    def people(self) -> list[WordAnnotations]:
        """The annotations of each text; empty ones for texts without any."""
        context = self.words.context
        return [context.rationales.get(one, WordAnnotations()) for one in context.batch.instances]

    @cached_property
    def marked(self) -> Bool[Tensor, "B W"]:
        """True where a word is in the rationale."""
        return self._spread([one.marked for one in self.people]) > 0

    @cached_property
    def scores(self) -> Float64[Tensor, "B W"]:
        """The scores that people gave; 0 where there are none."""
        return self._spread([one.scores for one in self.people])

    @cached_property
    def scored(self) -> Bool[Tensor, "B"]:
        """Texts whose words have scores."""
        return torch.tensor([one.scores is not None for one in self.people])

    def reason(self, nothing: str) -> str:
        """Why no text is annotated: the reason of the first text that has one, or `nothing`."""
        return next((one.why for one in self.people if one.why), nothing)

    @cached_property
    def _number(self) -> Int[Tensor, "B W"]:
        """The number, in the text's own words, of each word that the model has tokens of."""
        item_index, word = self.words.item_index, self.words.context.batch.word
        whose = item_index if word is None else torch.where(item_index >= 0, word, -1)
        empty = torch.full(self.words.real.shape, -1)
        return empty.scatter_reduce(1, item_index.clamp(min=0), whose, "amax")

    def _spread(self, values: Sequence[tuple[bool | float, ...] | None]) -> Float64[Tensor, "B W"]:
        found = torch.zeros(self.words.real.shape, dtype=torch.float64)
        for row, one in enumerate(values):
            if one:
                here = self.words.real[row]
                found[row, here] = torch.tensor(one, dtype=torch.float64)[self._number[row, here]]
        return found
