"""Perplexity of texts with words removed, and of whole texts, under a language model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from heedful.checks.base import to_measurement
from heedful.checks.faithfulness.infilling import INFILLED, InfilledRemoval, require_texts
from heedful.checks.faithfulness.items import ItemView
from heedful.core.records import Measurement
from heedful.numerics.tensor.erasure_metrics import bin_sizes

LOG_PERPLEXITY = "log_perplexity"


@dataclass(frozen=True, eq=False)
class PerplexityMetric:
    """Texts without the largest share of their first items in an order, by several ways."""

    items: ItemView
    infilled: InfilledRemoval
    share: float

    def whole(self) -> Float64[Tensor, "B"]:
        """Log-perplexity of the texts as they are."""
        return self._of([[*one.seen_words] for one in require_texts(self.items.context)])

    def of(self, way: str, place: Int[Tensor, "B I"]) -> Float64[Tensor, "B"]:
        """Log-perplexity without the first items: deleted, masked, or infilled (first sample)."""
        rows = torch.arange(len(place))
        sizes = bin_sizes(self.items.counts, (self.share,))[0, :, None]
        tokens = self.items.tokens(rows, (place < sizes) & self.items.real)
        gaps = [*self.infilled.gaps(self.items.context, rows, tokens)]
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
        self, ways: Sequence[str], place: Int[Tensor, "B I"]
    ) -> Iterator[tuple[str, Float64[Tensor, "B"]]]:
        """Every measure with its values."""
        yield f"{LOG_PERPLEXITY}_whole", self.whole()
        for way in ways:
            yield f"{LOG_PERPLEXITY}_{way}", self.of(way, place)

    def _of(self, texts: Sequence[Sequence[str | None]]) -> Float64[Tensor, "B"]:
        return torch.tensor(
            self.infilled.infiller.log_pseudo_perplexity(texts), dtype=torch.float64
        )


def measure_perplexity(
    metric: PerplexityMetric, ways: Sequence[str], place: Int[Tensor, "B I"]
) -> Iterator[Measurement]:
    """The perplexities, and the share of words that the language model could not replace."""
    for name, column in metric.columns(ways, place):
        yield to_measurement(name, column)
    yield to_measurement("not_infilled", metric.infilled.not_infilled(metric.items.context))
