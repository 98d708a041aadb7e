"""The model of the 2019 papers for texts with a question: question answering and text pairs."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.errors import ShapeError
from heedful.core.values import Forward, QueryDecoder
from heedful.models.recurrent.classifier import AttentionClassifier, Shape, init_embeddings
from heedful.models.recurrent.encoders import CNN, BiLSTM, encoders
from heedful.models.recurrent.query_attention import query_attentions
from heedful.numerics.tensor.distributions import masked_softmax


class QueryClassifier(nn.Module):
    """Text and question through encoders of their own, one attention over the text, an output.

    Both read from one table of word vectors. The question becomes one vector q: a bilstm's last
    states in both directions, the largest of each of a cnn's numbers, the mean of word-wise states.
    Attention scores a state together with q; the output is W tanh(W_p c + W_q q) of the attended
    state c, with a row of W for every class. Classes that a text does not allow get no chance.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.embedding, padding_idx=0)
        self.encoder = encoders[shape.encoder](shape.embedding, shape.hidden)
        self.question = encoders[shape.encoder](shape.embedding, shape.hidden)
        self.attention = query_attentions[shape.attention](self.encoder.width)
        self.decoder = QueryOutput(self.encoder.width, shape.classes)
        init_embeddings(self.embedding)

    def embed(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T E"]:
        """The word vectors of the ids."""
        vectors: Tensor = self.embedding(ids)
        return vectors

    def read(
        self,
        batch: Batch,
        embedded: Float[Tensor, "B T E"],
        asked: Float[Tensor, "B Q E"] | None = None,
    ) -> Forward:
        """One pass over the texts' vectors, and over the questions' where these are given too."""
        question = self.ask(batch, asked)
        states = self.encoder(embedded, batch.present)
        weights = masked_softmax(self.scores(states, question), batch.mask)
        context = torch.einsum("bt,btd->bd", weights, states)
        logits = self.decoder(context, question, batch.allowed)
        return Forward(logits, weights, states, question=question)

    def ask(
        self, batch: Batch, embedded: Float[Tensor, "B Q E"] | None = None
    ) -> Float[Tensor, "B D"]:
        """The questions, a vector each."""
        if batch.query is None:
            raise ShapeError("This network answers questions; the batch has no query.")
        vectors = self.embed(batch.query) if embedded is None else embedded
        present = batch.query != 0
        return pool_question(self.question, self.question(vectors, present), present)

    def scores(
        self, states: Float[Tensor, "B T D"], question: Float[Tensor, "B D"]
    ) -> Float[Tensor, "B T"]:
        """Attention scores before the softmax."""
        asked = self.attention.asking(question)[:, None]
        scores: Tensor = self.attention.score(self.attention.read(states), asked)
        return scores

    def query_decoder(self, batch: Batch, forward: Forward) -> QueryDecoder:
        """The output under any attention, as far as it can be computed beforehand."""
        question = self.ask(batch) if forward.question is None else forward.question
        return self.decoder.prepared(forward.states, question, batch.allowed)


class QueryOutput(nn.Module):
    """W tanh(W_p c + W_q q), through half the width."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.text = nn.Linear(width, width // 2)
        self.question = nn.Linear(width, width // 2)
        self.out = nn.Linear(width // 2, classes)

    def forward(
        self,
        context: Float[Tensor, "B D"],
        question: Float[Tensor, "B D"],
        allowed: Bool[Tensor, "B C"] | None,
    ) -> Float[Tensor, "B C"]:
        return self.prepared(context[:, None], question, allowed)(torch.ones_like(context[:, :1]))

    def prepared(
        self,
        states: Float[Tensor, "B T D"],
        question: Float[Tensor, "B D"],
        allowed: Bool[Tensor, "B C"] | None,
    ) -> QueryDecoder:
        """W_p of every state, and what does not depend on attention, computed once."""
        read = nn.functional.linear(states, self.text.weight)
        shift = self.question(question) + self.text.bias
        return QueryDecoder(read, shift, self.out.weight, self.out.bias, allowed)


def pool_question(
    encoder: nn.Module, states: Float[Tensor, "B Q D"], present: Bool[Tensor, "B Q"]
) -> Float[Tensor, "B D"]:
    """One vector of all states of a question.

    Of a bilstm the state of each direction that has read everything: the last one forward, the
    first one backward.
    """
    if isinstance(encoder, BiLSTM):
        half = states.shape[-1] // 2
        last = (present.sum(-1) - 1)[:, None, None].expand(-1, 1, half)
        ahead = states[..., :half].gather(1, last).squeeze(1)
        return torch.cat([ahead, states[:, 0, half:]], dim=-1)
    if isinstance(encoder, CNN):
        return states.masked_fill(~present[..., None], -torch.inf).amax(1)
    total = states.masked_fill(~present[..., None], 0.0).sum(1)
    return total / present.sum(-1, keepdim=True)


Network = AttentionClassifier | QueryClassifier


def new_network(shape: Shape) -> Network:
    """A network of this shape with weights from torch's own stream."""
    return QueryClassifier(shape) if shape.query else AttentionClassifier(shape)
