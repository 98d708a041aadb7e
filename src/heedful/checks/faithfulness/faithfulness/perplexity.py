"""How surprising texts with words removed are to a language model, beside whole ones."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from heedful.checks.base import measurement
from heedful.checks.faithfulness.infilling import WAY, Infilled, texts_of
from heedful.checks.faithfulness.word_removal import Words
from heedful.core.records import Measurement
from heedful.numerics.tensor.erasure_metrics import bin_sizes

PERPLEXITY = "log_perplexity"


@dataclass(frozen=True, eq=False)
class Surprise:
    """Texts without the largest share of their first words in an order, by several ways."""

    words: Words
    infilled: Infilled
    share: float

    def whole(self) -> Float64[Tensor, "B"]:
        """Of the texts as they stand."""
        return self._of([[*one.seen_words] for one in texts_of(self.words.sitting)])

    def of(self, way: str, place: Int[Tensor, "B W"]) -> Float64[Tensor, "B"]:
        """Of the texts without their first words: gone, hidden, or replaced by the first sample."""
        rows = torch.arange(len(place))
        sizes = bin_sizes(self.words.counts, (self.share,))[0, :, None]
        tokens = self.words.tokens(rows, (place < sizes) & self.words.real)
        gaps = [*self.infilled.gaps(self.words.sitting, rows, tokens)]
        drawn: Sequence[dict[int, str]] = [{} for _ in gaps]
        if way == WAY:
            drawn = [one[0] for one in self.infilled.infiller.fill(gaps)]
        texts = []
        for gap, new in zip(gaps, drawn, strict=True):
            kept = (
                new.get(number) if number in gap.gone else word
                for number, word in enumerate(gap.words)
            )
            texts.append([word for word in kept if way == "masking" or word is not None])
        return self._of(texts)

    def columns(
        self, ways: Sequence[str], place: Int[Tensor, "B W"]
    ) -> Iterator[tuple[str, Float64[Tensor, "B"]]]:
        """Every measure."""
        yield f"{PERPLEXITY}_whole", self.whole()
        for way in ways:
            yield f"{PERPLEXITY}_{way}", self.of(way, place)

    def _of(self, texts: Sequence[Sequence[str | None]]) -> Float64[Tensor, "B"]:
        return torch.tensor(self.infilled.infiller.surprise(texts), dtype=torch.float64)


def surprising(
    surprise: Surprise, ways: Sequence[str], place: Int[Tensor, "B W"]
) -> Iterator[Measurement]:
    """What the language model says of the texts, and how many words it could not replace."""
    for name, column in surprise.columns(ways, place):
        yield measurement(name, column)
    less = surprise.infilled.not_infilled(surprise.words.sitting)
    yield measurement("not_infilled", less)
