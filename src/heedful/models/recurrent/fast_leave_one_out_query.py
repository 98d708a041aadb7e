"""Leave each token out of a text with a question, by the short cuts of models without one.

The states of a text with a token deleted do not depend on the question; only what is read of them
does. A bilstm's readings come token by token and are mixed as they come: nothing is kept that grows
with the square of a text's length.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.values import QueryDecoder
from heedful.models.recurrent.encoders import CNN, BiLSTM
from heedful.models.recurrent.fast_leave_one_out import (
    StateProjection,
    deleted_token_mask,
    recompute_windows,
    split_deletions,
)
from heedful.models.recurrent.lstm_leave_one_out import run_variants
from heedful.models.recurrent.query_classifier import QueryClassifier
from heedful.numerics.tensor.distributions import masked_softmax


def query_logits_without_each(
    model: QueryClassifier, batch: Batch, *, max_batch_tokens: int
) -> Float[Tensor, "B T C"]:
    """Logits with token t deleted, for each t in the mask; zeros elsewhere."""
    question, embedded = model.ask(batch), model.embed(batch.ids)
    result = embedded.new_zeros(*batch.mask.shape, model.shape.classes)
    for rows, first, last in split_deletions(
        model.encoder, batch.mask, max_batch_tokens=max_batch_tokens
    ):
        some = torch.arange(len(batch))[rows]
        texts = _QuestionBatch(model, batch.chosen(some), embedded[rows], question[rows])
        mixed = texts.mixed(first, last)
        result[rows, first:last] = texts.output.output(mixed).transpose(0, 1)
    return result.masked_fill(~batch.mask[..., None], 0.0)


@dataclass(frozen=True, eq=False)
class _QuestionBatch:
    """Some texts with their questions, before the network."""

    model: QueryClassifier
    batch: Batch
    embedded: Float[Tensor, "B T E"]
    question: Float[Tensor, "B D"]

    @property
    def output(self) -> QueryDecoder:
        """What follows once the readings are mixed."""
        nothing = self.embedded.new_zeros(len(self.batch), 0, self.question.shape[-1])
        return self.model.decoder.prepared(nothing, self.question, self.batch.allowed)

    @property
    def reader(self) -> StateProjection:
        """All that is read of a state."""
        return StateProjection.of(self.model.attention.reading(), self.model.decoder.text.weight)

    @property
    def asked(self) -> Float[Tensor, "B A"]:
        """What attention needs of the questions."""
        asked: Tensor = self.model.attention.asking(self.question)
        return asked

    def mixed(self, first: int, last: int) -> Float[Tensor, "V B O"]:
        """What attention mixes of the output's readings in the variants first … last − 1."""
        if isinstance(self.model.encoder, BiLSTM):
            return self._mixed_bilstm(first, last)
        encoder, reader, batch = self.model.encoder, self.reader, self.batch
        states = encoder(self.embedded, batch.present)
        base = nn.functional.linear(states, reader.weight, reader.bias)
        read = base[:, None].expand(-1, last - first, -1, -1)
        if isinstance(encoder, CNN):
            real = self.embedded * batch.present[..., None]
            read = recompute_windows(encoder, reader, real, read, first)
        scores = self.model.attention.score(read[..., : reader.split], self.asked[:, None, None])
        gone = deleted_token_mask(first, last, batch.mask.shape[1], batch.mask.device)
        weights = masked_softmax(scores, batch.mask[:, None] & ~gone)
        return torch.einsum("bvt,bvto->vbo", weights, read[..., reader.split :])

    def _mixed_bilstm(self, first: int, last: int) -> Float[Tensor, "V B O"]:
        reader, asked, mask = self.reader, self.asked, self.batch.mask
        size = last - first, len(mask)
        running = OnlineSoftmaxSum.start(
            self.embedded.new_zeros(*size, len(reader.weight) - reader.split)
        )

        def add(token: int, variant: int, read: Float[Tensor, "V B R"]) -> None:
            scores = self.model.attention.score((read + reader.bias)[..., : reader.split], asked)
            here = slice(variant - first, variant - first + len(read))
            running.add(here, scores, read[..., reader.split :], mask[:, token])

        present = self.batch.present
        run_variants(
            self.model.encoder,
            self.embedded,
            present,
            reader.weight,
            first=first,
            last=last,
            read=add,
        )
        return running.mean()


@dataclass(frozen=True, slots=True, eq=False)
class OnlineSoftmaxSum:
    """Σ softmax(score) · value where scores and values come one token at a time.

    Sums are kept relative to the largest score so far, so that none overflows.
    """

    top: Float[Tensor, "V B"]
    total: Float[Tensor, "V B"]
    mixed: Float[Tensor, "V B O"]

    @classmethod
    def start(cls, mixed: Float[Tensor, "V B O"]) -> "OnlineSoftmaxSum":
        """From sums of zero, which it takes over."""
        lowest = torch.full_like(mixed[..., 0], torch.finfo(mixed.dtype).min)
        return cls(lowest, torch.zeros_like(lowest), mixed)

    def add(
        self,
        here: slice,
        scores: Float[Tensor, "V B"],
        values: Float[Tensor, "V B O"],
        counted: Bool[Tensor, "B"],
    ) -> None:
        """One more token of the variants `here`; of texts where it does not count, nothing."""
        before = self.top[here]
        top = torch.where(counted, torch.maximum(before, scores), before)
        shrink = (before - top).exp()
        weight = torch.where(counted, (scores - top).exp(), 0.0)
        self.top[here] = top
        self.total[here] = self.total[here] * shrink + weight
        self.mixed[here] = self.mixed[here] * shrink[..., None] + values * weight[..., None]

    def mean(self) -> Float[Tensor, "V B O"]:
        """The mixed values; zero where no token counted."""
        return self.mixed / self.total.clamp(min=torch.finfo(self.total.dtype).tiny)[..., None]
