"""A subject with perturbed word vectors, which refuses every path that would ignore them."""

from collections.abc import Sequence
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
"""Short cuts that read token ids, not word vectors."""

IGNORES_EMBEDDINGS = "it reads token ids, so it cannot be recomputed for perturbed word vectors"


@dataclass(frozen=True, eq=False)
class PerturbedSubject:
    """The inner subject with perturbed word vectors for the tokens of one batch.

    All else is the inner subject's. Passes on given vectors run as they are; those that would look
    up token ids are refused, because they would ignore the perturbation.
    """

    inner: Subject
    perturbed_batch: Batch
    vectors: Float[Tensor, "B T E"]

    @property
    def family(self) -> str:
        return self.inner.family

    @property
    def labels(self) -> tuple[str, ...]:
        return self.inner.labels

    def encode(self, example: Example) -> Encoded:
        return self.inner.encode(example)

    def batch(self, encoded: Sequence[Encoded]) -> Batch:
        return self.inner.batch(encoded)

    def embed(self, batch: Batch) -> Float[Tensor, "B T E"]:
        """The perturbed vectors of the batch, or of some of its texts."""
        place = {number: row for row, number in enumerate(self.perturbed_batch.instances)}
        rows = torch.tensor([place.get(number, 0) for number in batch.instances])
        if not torch.equal(self.perturbed_batch.ids[rows], batch.ids):
            raise NotApplicable(IGNORES_EMBEDDINGS)
        return self.vectors[rows]

    def forward(self, batch: Batch, embedded: Float[Tensor, "B T E"] | None = None) -> Forward:
        """A pass on given vectors, or on the perturbed ones."""
        return self.inner.forward(batch, self.embed(batch) if embedded is None else embedded)

    def decoder(self, batch: Batch, forward: Forward) -> Decoder:
        """The inner decoder, if it depends on states and question only."""
        decoder = self.inner.decoder(batch, forward)
        if not isinstance(decoder, LinearDecoder | QueryDecoder):
            raise NotApplicable(IGNORES_EMBEDDINGS)
        return decoder

    def __getattr__(self, name: str) -> Any:
        """Other capabilities of the inner subject, as far as they read word vectors."""
        capability = getattr(self.inner, name)
        if name in READS_TOKEN_IDS:
            return _refuse
        if name == "run_logits":
            return lambda batch, vectors=None: capability(
                batch, self.embed(batch) if vectors is None else vectors
            )
        return capability


def unwrap_perturbed(subject: Subject) -> Subject:
    """The inner subject, for callers that pass word vectors to every forward pass."""
    return subject.inner if isinstance(subject, PerturbedSubject) else subject


def _refuse(*_: object, **__: object) -> Any:
    raise NotApplicable(IGNORES_EMBEDDINGS)
