"""The attention classifiers of the 2019 papers as subjects."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.batch import Batch, Encoded, collate
from heedful.core.errors import ConfigError, DataError, ShapeError
from heedful.core.values import Example, Forward, LinearDecoder, QueryDecoder
from heedful.models.recurrent.fast_leave_one_out import logits_without_each
from heedful.models.recurrent.fast_leave_one_out_query import query_logits_without_each
from heedful.models.recurrent.query_classifier import Network, QueryClassifier
from heedful.models.recurrent.vocabulary import END, START, Vocabulary, WordTokenizer


@dataclass(frozen=True, eq=False)
class RecurrentSubject:
    """An attention classifier with its words: encoder × attention of Jain & Wallace (2019).

    A text is read as <SOS> words <EOS>; the two signs are encoded but never attended to, as
    published. A network with a query reads the second text of a pair, or a question, beside it, and
    explains the first. `history` says how the model came about and is kept in its folder.
    """

    network: Network
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
        """Encoder and attention, such as "bilstm-additive" or "bilstm-additive-query"."""
        shape = self.network.shape
        return f"{shape.encoder}-{shape.attention}" + ("-query" if shape.query else "")

    @property
    def reads_question(self) -> bool:
        """Whether a question stands beside each text."""
        return self.network.shape.query

    @property
    def architecture(self) -> str:
        """One attention over states; asked with a question, the output is not linear in it."""
        return "recurrent with a question" if self.reads_question else "recurrent"

    def fingerprint(self) -> str:
        """sha256 over weights, words and labels."""
        digest = sha256(repr((self.network.shape, self.tokenizer, self.max_words)).encode())
        digest.update("\0".join((*self.labels, *self.vocabulary.words)).encode("utf-8", "replace"))
        for name, weight in sorted(self.network.state_dict().items()):
            digest.update(name.encode())
            digest.update(weight.detach().float().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def encode(self, example: Example) -> Encoded:
        """Number the words of a text between <SOS> and <EOS>, and those of its question."""
        self._require_fit(example)
        words = example.tokens if example.tokens is not None else self._words(example.text)
        kept = words[: self.max_words]
        asked = None if example.pair is None else self._words(example.pair)
        cut = len(kept) < len(words)
        return Encoded(
            example.index,
            example.label,
            self._ids(kept),
            (-1, *range(len(kept)), -1),
            kept,
            truncated=cut or (asked is not None and len(asked[: self.max_words]) < len(asked)),
            query=None if asked is None else self._ids(asked[: self.max_words]),
            question=example.pair,
            allowed=example.candidates,
        )

    def _words(self, text: str) -> tuple[str, ...]:
        """The words of a text, at most one more than is read."""
        return self.tokenizer(text, None if self.max_words is None else self.max_words + 1)

    def _ids(self, words: Sequence[str]) -> tuple[int, ...]:
        start, end = (self.vocabulary.numbers[sign] for sign in (START, END))
        ids = (self.vocabulary.number(self.tokenizer.normal(word)) for word in words)
        return (start, *ids, end)

    def _require_fit(self, example: Example) -> None:
        """Refuse a row that this network would read half of."""
        if self.reads_question:
            if example.pair is None:
                raise DataError(
                    "This model reads two texts and row "
                    f"{example.index} has one: give paragraph,question or premise,hypothesis."
                )
            if example.candidates == ():
                raise DataError(f"None of the candidates of row {example.index} is a class here.")
        elif example.pair is not None:
            raise DataError("This model reads one text; rows with premise and hypothesis have two.")
        elif example.candidates is not None:
            raise DataError(
                "This model cannot leave classes out; candidates need a question to each text."
            )

    def batch(self, encoded: Sequence[Encoded]) -> Batch:
        """Pad with the padding word, number 0."""
        return collate(encoded, classes=len(self.labels))

    def embed(self, batch: Batch) -> Float[Tensor, "B T E"]:
        """Word vectors."""
        return self.network.embed(batch.ids)

    def forward(self, batch: Batch, embedded: Float[Tensor, "B T E"] | None = None) -> Forward:
        """One pass of the network."""
        return self.network.read(batch, self.embed(batch) if embedded is None else embedded)

    def decoder(self, batch: Batch, forward: Forward) -> LinearDecoder | QueryDecoder:
        """The output layer: linear in the attended states, or what a question makes of them."""
        if isinstance(self.network, QueryClassifier):
            return self.network.query_decoder(batch, forward)
        return self.network.linear_decoder(forward.states)

    def without_each(self, batch: Batch, *, max_batch_tokens: int) -> Float[Tensor, "B T C"]:
        """Logits with each token deleted, by the encoder's own short cut."""
        with torch.no_grad():
            if isinstance(self.network, QueryClassifier):
                return query_logits_without_each(
                    self.network, batch, max_batch_tokens=max_batch_tokens
                )
            return logits_without_each(
                self.network,
                self.embed(batch),
                batch.present,
                batch.mask,
                max_batch_tokens=max_batch_tokens,
            )
