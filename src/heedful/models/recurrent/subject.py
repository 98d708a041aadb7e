"""The attention classifiers of the 2019 papers as subjects."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.core.batch import Batch, Encoded, collate
from heedful.core.errors import ConfigError, DataError, ShapeError
from heedful.core.values import Example, Forward, LinearDecoder, MaskEmbedding, QueryDecoder
from heedful.models.protocols import add_tensors
from heedful.models.recurrent.classifier import AttentionClassifier
from heedful.models.recurrent.lean_pass import run_variants
from heedful.models.recurrent.vocabulary import END, START, Vocabulary, WordTokenizer


@dataclass(frozen=True, eq=False)
class RecurrentSubject:
    """An attention classifier with its vocabulary: encoder × attention of Jain & Wallace (2019).

    A text is encoded as <SOS> words <EOS>; the two special tokens are encoded but never attended
    to, as published. A network with a query also reads the second text of a pair, or a question;
    only the first text is explained. `history` records how the model was trained and is saved in
    its folder.
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
                f"The network expects {shape.vocabulary} words and {shape.classes} classes; "
                f"got {len(self.vocabulary)} words and {len(self.labels)} labels."
            )

    @property
    def family(self) -> str:
        """Encoder and attention, such as "bilstm-additive" or "bilstm-additive-query"."""
        shape = self.network.shape
        return f"{shape.encoder}-{shape.attention}" + ("-query" if shape.query else "")

    @property
    def reads_question(self) -> bool:
        """Whether the model reads a question with each text."""
        return self.network.shape.query

    @property
    def architecture(self) -> str:
        """One attention over states; asked with a question, the output is not linear in it."""
        return "recurrent with a question" if self.reads_question else "recurrent"

    def fingerprint(self) -> str:
        """sha256 over weights and their precision, words and labels."""
        digest = sha256(repr((self.network.shape, self.tokenizer, self.max_words)).encode())
        digest.update("\0".join((*self.labels, *self.vocabulary.words)).encode("utf-8", "replace"))
        add_tensors(digest, self.network.state_dict())
        return digest.hexdigest()

    def encode(self, example: Example) -> Encoded:
        """The ids of the words of a text between <SOS> and <EOS>, and of its question."""
        self._require_fit(example)
        words = example.tokens if example.tokens is not None else self._words(example.text)
        kept = words[: self.max_words]
        question = None if example.pair is None else self._words(example.pair)
        cut = len(kept) < len(words)
        return Encoded(
            example.index,
            example.label,
            self._ids(kept),
            (-1, *range(len(kept)), -1),
            kept,
            truncated=cut or len((question or ())[: self.max_words]) < len(question or ()),
            query=None if question is None else self._ids(question[: self.max_words]),
            question=example.pair,
            allowed=example.candidates,
        )

    def _words(self, text: str) -> tuple[str, ...]:
        """The words of a text, at most one more than the model reads."""
        return self.tokenizer(text, None if self.max_words is None else self.max_words + 1)

    def _ids(self, words: Sequence[str]) -> tuple[int, ...]:
        start, end = (self.vocabulary.numbers[token] for token in (START, END))
        ids = (self.vocabulary.number(self.tokenizer.normalise(word)) for word in words)
        return (start, *ids, end)

    def _require_fit(self, example: Example) -> None:
        """Refuse a row with more or fewer texts than the network reads."""
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
                "This model cannot exclude classes; candidates need a question with each text."
            )

    def batch(self, encoded: Sequence[Encoded]) -> Batch:
        """Pad with the padding word, id 0."""
        return collate(encoded, classes=len(self.labels))

    def embed(self, batch: Batch) -> Float[Tensor, "B T E"]:
        """Word vectors."""
        return self.network.embed(batch.ids)

    def forward(self, batch: Batch, embedded: Float[Tensor, "B T E"] | None = None) -> Forward:
        """One pass of the network."""
        forward: Forward = self.network(batch, self.embed(batch) if embedded is None else embedded)
        return forward

    def run_logits(
        self, batch: Batch, embedded: Float[Tensor, "B T E"] | None = None
    ) -> Float[Tensor, "B C"]:
        """The logits of `forward`, with what the texts share computed once."""
        if embedded is None and not torch.is_grad_enabled():
            return run_variants(self.network, batch, torch.arange(len(batch)), batch.present)
        return self.forward(batch, embedded).logits

    def logits_of_variants(
        self,
        batch: Batch,
        rows: Int[Tensor, "N"],
        kept: Bool[Tensor, "N T"],
        masked: Bool[Tensor, "N T"] | None = None,
    ) -> Float[Tensor, "N C"]:
        """Logits of texts rows[n] with the tokens kept[n] only, of which masked[n] are masked."""
        with torch.no_grad():
            return run_variants(self.network, batch, rows, kept, masked)

    def mask_embedding(self) -> MaskEmbedding:
        """The vector of padding, which is zero: it says nothing of a word."""
        weight = self.network.embedding.weight
        return MaskEmbedding("zero vector", weight.new_zeros(weight.shape[1]))

    def decoder(self, batch: Batch, forward: Forward) -> LinearDecoder | QueryDecoder:
        """The output layer: linear in the attended states without a question, tanh with one."""
        question = forward.question
        if question is None:
            question = self.network.encode_question(batch)
        return self.network.decoder.prepare(forward.states, question, batch.allowed)

    def without_each(self, batch: Batch, *, max_batch_tokens: int) -> Float[Tensor, "B T C"]:
        """Logits with each token deleted; zeros elsewhere."""
        result = self.network.embedding.weight.new_zeros(*batch.mask.shape, len(self.labels))
        length, tokens = batch.ids.shape[1], batch.mask.nonzero()
        for some in torch.split(tokens, max(1, max_batch_tokens // length)) if len(tokens) else ():
            rows, deleted = some.unbind(-1)
            kept = batch.present[rows] & (torch.arange(length) != deleted[:, None])
            result[rows, deleted] = self.logits_of_variants(batch, rows, kept)
        return result
