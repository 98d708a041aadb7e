"""The attention classifier of the 2019 papers as one module: embed, encode, attend, decode."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.errors import ConfigError, ShapeError
from heedful.core.values import Forward, LinearDecoder, QueryDecoder
from heedful.models.recurrent.attention import attentions
from heedful.models.recurrent.encoders import CNN, BiLSTM, encoders
from heedful.numerics.tensor.distributions import masked_softmax


@dataclass(frozen=True)
class Shape:
    """The sizes and parts of an attention classifier; the defaults are those of the papers.

    With `query` the classifier reads a question together with each text.
    """

    vocabulary: int
    classes: int
    encoder: str = "bilstm"
    attention: str = "additive"
    embedding: int = 300
    hidden: int = 128
    query: bool = field(default=False, repr=False)  # not in repr: fingerprints predate it

    def __post_init__(self) -> None:
        if self.classes < 2:
            raise ConfigError(f"A classifier needs two classes or more, not {self.classes}.")
        if min(self.vocabulary, self.embedding) < 1 or self.hidden < 4:
            raise ConfigError(f"Sizes must be positive, and hidden at least 4; got {self}.")


class AttentionClassifier(nn.Module):
    """Word vectors, an encoder, one attention over its states, an output layer.

    With a query, text and question have encoders of their own over one table of word vectors. The
    question becomes one vector q, and attention scores each state together with q.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        new_encoder = encoders[shape.encoder]
        self.embedding = nn.Embedding(shape.vocabulary, shape.embedding, padding_idx=0)
        self.encoder = new_encoder(shape.embedding, shape.hidden)
        self.question = new_encoder(shape.embedding, shape.hidden) if shape.query else None
        width = self.encoder.width
        self.attention = attentions[shape.attention](width, query=shape.query)
        new_output = QueryOutput if shape.query else LinearOutput
        self.decoder: LinearOutput | QueryOutput = new_output(width, shape.classes)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        with torch.no_grad():
            self.embedding.weight[0].zero_()  # padding has no vector

    def embed(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T E"]:
        """The word vectors of the ids."""
        vectors: Tensor = self.embedding(ids)
        return vectors

    def forward(
        self,
        batch: Batch,
        embedded: Float[Tensor, "B T E"],
        question_embedded: Float[Tensor, "B Q E"] | None = None,
    ) -> Forward:
        """One pass over the word vectors of the texts, and of the questions where given."""
        question = self.encode_question(batch, question_embedded)
        states = self.encoder(embedded, batch.present)
        weights = masked_softmax(self.scores(states, question), batch.mask)
        if question is None:
            logits = self.decoder.prepare(states)(weights)
        else:  # attend first: one state to decode instead of T
            context = torch.einsum("bt,btd->bd", weights, states)[:, None]
            decoder = self.decoder.prepare(context, question, batch.allowed)
            logits = decoder(torch.ones_like(context[..., 0]))
        return Forward(logits, weights, states, question=question)

    def encode_question(
        self, batch: Batch, embedded: Float[Tensor, "B Q E"] | None = None
    ) -> Float[Tensor, "B D"] | None:
        """One vector for each question; None where the classifier reads texts alone."""
        if self.question is None:
            if batch.query is not None or embedded is not None:
                raise ShapeError("This network reads one text; the batch has a query for each.")
            return None
        if batch.query is None:
            raise ShapeError("This network answers questions; the batch has no query.")
        vectors = self.embed(batch.query) if embedded is None else embedded
        present = batch.query != 0
        return pool_question(self.question, self.question(vectors, present), present)

    def scores(
        self, states: Float[Tensor, "B T D"], question: Float[Tensor, "B D"] | None
    ) -> Float[Tensor, "B T"]:
        """Attention scores before the softmax."""
        projected = nn.functional.linear(states, *self.attention.projection())
        asked = self.attention.project_question(question)
        scores: Tensor = self.attention.score(projected, None if asked is None else asked[:, None])
        return scores


class LinearOutput(nn.Linear):
    """A linear output layer.

    Two classes share one output z as in the papers; their logits are (0, z), so softmax gives
    (1 − σ(z), σ(z)) and all later code is the same for any number of classes.
    """

    def __init__(self, width: int, classes: int) -> None:
        super().__init__(width, 1 if classes == 2 else classes)

    def class_weights(self) -> tuple[Float[Tensor, "C D"], Float[Tensor, "C"]]:
        """Weight and bias with a row for each class; with two classes the first row is zero."""
        if self.out_features > 1:
            return self.weight, self.bias
        zero = torch.zeros_like
        return torch.cat([zero(self.weight), self.weight]), torch.cat([zero(self.bias), self.bias])

    def state_weight(self) -> Float[Tensor, "C D"]:
        """The linear map of states whose weighted sum the logits depend on."""
        return self.class_weights()[0]

    def prepare(
        self,
        states: Float[Tensor, "B T D"],
        _question: Float[Tensor, "B D"] | None = None,
        _allowed: Bool[Tensor, "B C"] | None = None,
    ) -> LinearDecoder:
        """The contribution of each state to the logits, computed once for any attention."""
        weight, bias = self.class_weights()
        return LinearDecoder(nn.functional.linear(states, weight), bias)


class QueryOutput(nn.Module):
    """W tanh(W_p c + W_q q) of the attended state c, through half the width, a row per class.

    Classes that a text does not allow get probability 0.
    """

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.text = nn.Linear(width, width // 2)
        self.question = nn.Linear(width, width // 2)
        self.out = nn.Linear(width // 2, classes)

    def state_weight(self) -> Float[Tensor, "A D"]:
        """The linear map of states whose weighted sum the logits depend on."""
        return self.text.weight

    def prepare(
        self,
        states: Float[Tensor, "B T D"],
        question: Float[Tensor, "B D"] | None = None,
        allowed: Bool[Tensor, "B C"] | None = None,
    ) -> QueryDecoder:
        """W_p of every state and all that does not depend on attention, computed once."""
        read = nn.functional.linear(states, self.text.weight)
        shift = self.question(question) + self.text.bias
        return QueryDecoder(read, shift, self.out.weight, self.out.bias, allowed)


def pool_question(
    encoder: nn.Module, states: Float[Tensor, "B Q D"], present: Bool[Tensor, "B Q"]
) -> Float[Tensor, "B D"]:
    """One vector for all states of a question.

    For a bilstm the last state of each direction: at the last word forward, at the first backward.
    For a cnn the maximum of each dimension, for word-wise encoders the mean.
    """
    if isinstance(encoder, BiLSTM):
        half = states.shape[-1] // 2
        last = (present.sum(-1) - 1)[:, None, None].expand(-1, 1, half)
        forward = states[..., :half].gather(1, last).squeeze(1)
        return torch.cat([forward, states[:, 0, half:]], dim=-1)
    if isinstance(encoder, CNN):
        return states.masked_fill(~present[..., None], -torch.inf).amax(1)
    total = states.masked_fill(~present[..., None], 0.0).sum(1)
    return total / present.sum(-1, keepdim=True)
