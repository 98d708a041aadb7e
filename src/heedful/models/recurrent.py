"""The attention classifiers of the 2019 papers as subjects."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.errors import ConfigError, DataError, ShapeError
from heedful.core.values import Batch, Encoded, Example, Forward, LinearDecoder, collate
from heedful.models.deletion import logits_without_each
from heedful.models.network import AttentionClassifier
from heedful.models.words import END, START, Vocabulary, WordTokenizer


@dataclass(frozen=True, eq=False)
class RecurrentSubject:
    """An attention classifier with its words: encoder × attention of Jain & Wallace (2019).

    A text is read as <SOS> words <EOS>; the two signs are encoded but never attended to, as
    published. `history` says how the model came about and is kept in its folder.
    """

    network: AttentionClassifier
    vocabulary: Vocabulary
    tokenizer: WordTokenizer
    labels: tuple[str, ...]
    max_words: int | None = None
    history: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = self.network.shape
        if self.max_words is not None and self.max_words < 1:
            raise ConfigError(f"max_words must be at least 1, not {self.max_words}.")
        if (len(self.vocabulary), len(self.labels)) != (shape.vocabulary, shape.classes):
            raise ShapeError(
                f"The network is made for {shape.vocabulary} words and {shape.classes} classes; "
                f"got {len(self.vocabulary)} words and {len(self.labels)} labels."
            )

    @property
    def family(self) -> str:
        """Encoder and attention, such as "bilstm-additive"."""
        return f"{self.network.shape.encoder}-{self.network.shape.attention}"

    def fingerprint(self) -> str:
        """sha256 over weights, words and labels."""
        digest = sha256(repr((self.network.shape, self.tokenizer, self.max_words)).encode())
        digest.update("\0".join((*self.labels, *self.vocabulary.words)).encode("utf-8", "replace"))
        for name, weight in sorted(self.network.state_dict().items()):
            digest.update(name.encode())
            digest.update(weight.detach().float().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def encode(self, example: Example) -> Encoded:
        """Number the words of a text between <SOS> and <EOS>."""
        if example.pair is not None:
            raise DataError("This model reads one text; rows with premise and hypothesis have two.")
        most = None if self.max_words is None else self.max_words + 1
        words = example.tokens if example.tokens is not None else self.tokenizer(example.text, most)
        kept = words[: self.max_words]
        ids = [self.vocabulary.number(self.tokenizer.normal(word)) for word in kept]
        start, end = (self.vocabulary.numbers[sign] for sign in (START, END))
        return Encoded(
            example.index,
            example.label,
            (start, *ids, end),
            (-1, *range(len(kept)), -1),
            kept,
            truncated=len(kept) < len(words),
        )

    def batch(self, encoded: Sequence[Encoded]) -> Batch:
        """Pad with the padding word, number 0."""
        return collate(encoded)

    def embed(self, batch: Batch) -> Float[Tensor, "B T E"]:
        """Word vectors."""
        return self.network.embed(batch.ids)

    def forward(self, batch: Batch, embedded: Float[Tensor, "B T E"] | None = None) -> Forward:
        """One pass of the network."""
        vectors = self.embed(batch) if embedded is None else embedded
        forward: Forward = self.network(vectors, batch.present, batch.mask)
        return forward

    def decoder(self, batch: Batch, forward: Forward) -> LinearDecoder:  # noqa: ARG002
        """The output layer, linear in the attended states."""
        return self.network.linear_decoder(forward.states)

    def without_each(self, batch: Batch, *, max_batch_tokens: int) -> Float[Tensor, "B T C"]:
        """Logits with each token deleted, by the encoder's own short cut."""
        with torch.no_grad():
            return logits_without_each(
                self.network,
                self.embed(batch),
                batch.present,
                batch.mask,
                max_batch_tokens=max_batch_tokens,
            )
