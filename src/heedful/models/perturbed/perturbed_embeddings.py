"""A subject whose words have other vectors, and which refuses whatever would not hear of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.batch import Batch, Encoded
from heedful.core.errors import NotApplicable
from heedful.core.values import Decoder, Example, Forward, LinearDecoder, QueryDecoder
from heedful.models.protocols import Subject

READS_TOKEN_IDS = ("without_each", "contribution_norms", "value_zeroing", "rows_and_decoder_at")
"""Short cuts that read the words themselves, not their vectors."""

IGNORES_EMBEDDINGS = (
    "it reads the words themselves, so it cannot be computed anew when their vectors move"
)


@dataclass(frozen=True, eq=False)
class PerturbedSubject:
    """The inner subject before one batch, `here`, with other vectors for its tokens.

    Passes that are given vectors run as they are; those that would look words up are refused, for
    they would answer as if nothing had moved.
    """

    inner: Subject
    here: Batch
    vectors: Float[Tensor, "B T E"]

    @property
    def family(self) -> str:
        """That of the inner subject."""
        return self.inner.family

    @property
    def labels(self) -> tuple[str, ...]:
        """Those of the inner subject."""
        return self.inner.labels

    def encode(self, example: Example) -> Encoded:
        """As the inner subject."""
        return self.inner.encode(example)

    def batch(self, encoded: Sequence[Encoded]) -> Batch:
        """As the inner subject."""
        return self.inner.batch(encoded)

    def embed(self, batch: Batch) -> Float[Tensor, "B T E"]:
        """The moved vectors of the one batch, or of some of its texts."""
        place = {number: row for row, number in enumerate(self.here.instances)}
        rows = torch.tensor([place.get(number, 0) for number in batch.instances])
        if not torch.equal(self.here.ids[rows], batch.ids):
            raise NotApplicable(IGNORES_EMBEDDINGS)
        return self.vectors[rows]

    def forward(self, batch: Batch, embedded: Float[Tensor, "B T E"] | None = None) -> Forward:
        """A pass on given vectors, or on the moved ones."""
        return self.inner.forward(batch, self.embed(batch) if embedded is None else embedded)

    def decoder(self, batch: Batch, forward: Forward) -> Decoder:
        """One that follows from states and question; another might start from the words again."""
        found = self.inner.decoder(batch, forward)
        if not isinstance(found, LinearDecoder | QueryDecoder):
            raise NotApplicable(IGNORES_EMBEDDINGS)
        return found

    def __getattr__(self, name: str) -> Any:
        """What the inner subject can do beside, as far as it hears vectors."""
        found = getattr(self.inner, name)
        if name in READS_TOKEN_IDS:
            return _refuse
        return self._outputs(found) if name == "outputs" else found

    def _outputs(self, found: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def outputs(batch: Batch, embedded: Tensor | None = None) -> Tensor:
            return found(batch, self.embed(batch) if embedded is None else embedded)

        return outputs


def unwrap_perturbed(subject: Subject) -> Subject:
    """The subject for who gives it the vectors of its words in every pass, moved or not."""
    return subject.inner if isinstance(subject, PerturbedSubject) else subject


def _refuse(*_: object, **__: object) -> Any:
    raise NotApplicable(IGNORES_EMBEDDINGS)
