"""How surprising texts with words removed are to a language model, beside whole ones."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from heedful.checks.base import to_measurement
from heedful.checks.faithfulness.infilling import INFILLED, InfilledRemoval, require_texts
from heedful.checks.faithfulness.word_removal import WordView
from heedful.core.records import Measurement
from heedful.numerics.tensor.erasure_metrics import bin_sizes

LOG_PERPLEXITY = "log_perplexity"


@dataclass(frozen=True, eq=False)
class PerplexityMetric:
    """Texts without the largest share of their first words in an order, by several ways."""

    words: WordView
    infilled: InfilledRemoval
    share: float

    def whole(self) -> Float64[Tensor, "B"]:
        """Of the texts as they stand."""
        return self._of([[*one.seen_words] for one in require_texts(self.words.context)])

    def of(self, way: str, place: Int[Tensor, "B W"]) -> Float64[Tensor, "B"]:
        """Of the texts without their first words: gone, hidden, or replaced by the first sample."""
        rows = torch.arange(len(place))
        sizes = bin_sizes(self.words.counts, (self.share,))[0, :, None]
        tokens = self.words.tokens(rows, (place < sizes) & self.words.real)
        gaps = [*self.infilled.gaps(self.words.context, rows, tokens)]
        drawn: Sequence[dict[int, str]] = [{} for _ in gaps]
        if way == INFILLED:
            drawn = [one[0] for one in self.infilled.infiller.fill(gaps)]
        texts = []
        for gap, new in zip(gaps, drawn, strict=True):
            kept = (
                new.get(number) if number in gap.missing else word
                for number, word in enumerate(gap.words)
            )
            texts.append([word for word in kept if way == "masking" or word is not None])
        return self._of(texts)

    def columns(
        self, ways: Sequence[str], place: Int[Tensor, "B W"]
    ) -> Iterator[tuple[str, Float64[Tensor, "B"]]]:
        """Every measure."""
        yield f"{LOG_PERPLEXITY}_whole", self.whole()
        for way in ways:
            yield f"{LOG_PERPLEXITY}_{way}", self.of(way, place)

    def _of(self, texts: Sequence[Sequence[str | None]]) -> Float64[Tensor, "B"]:
        return torch.tensor(
            self.infilled.infiller.log_pseudo_perplexity(texts), dtype=torch.float64
        )


def measure_perplexity(
    surprise: PerplexityMetric, ways: Sequence[str], place: Int[Tensor, "B W"]
) -> Iterator[Measurement]:
    """What the language model says of the texts, and how many words it could not replace."""
    for name, column in surprise.columns(ways, place):
        yield to_measurement(name, column)
    less = surprise.infilled.not_infilled(surprise.words.context)
    yield to_measurement("not_infilled", less)
