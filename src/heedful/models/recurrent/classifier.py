"""The attention classifier of the 2019 papers as one module: embed, encode, attend, decode."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.errors import ConfigError, ShapeError
from heedful.core.values import Forward, LinearDecoder
from heedful.models.recurrent.attention import attentions
from heedful.models.recurrent.encoders import encoders
from heedful.numerics.tensor.distributions import masked_softmax


@dataclass(frozen=True)
class Shape:
    """The sizes and parts of an attention classifier; defaults as published.

    With `query` it reads a question beside each text.
    """

    vocabulary: int
    classes: int
    encoder: str = "bilstm"
    attention: str = "additive"
    embedding: int = 300
    hidden: int = 128
    query: bool = field(default=False, repr=False)  # unseen: fingerprints are older than it

    def __post_init__(self) -> None:
        if self.classes < 2:
            raise ConfigError(f"A classifier needs two classes or more, not {self.classes}.")
        if min(self.vocabulary, self.embedding) < 1 or self.hidden < 4:
            raise ConfigError(f"Sizes must be positive, and hidden at least 4; got {self}.")


def init_embeddings(table: nn.Embedding) -> None:
    """Small random word vectors, and none for padding."""
    nn.init.uniform_(table.weight, -0.1, 0.1)
    with torch.no_grad():
        table.weight[0].zero_()


class AttentionClassifier(nn.Module):
    """Word vectors, an encoder, one attention over its states, a linear output.

    Two classes share one output z as in the papers; their logits are (0, z), so softmax gives
    (1 − σ(z), σ(z)) and everything downstream is written once for any number of classes.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.embedding, padding_idx=0)
        self.encoder = encoders[shape.encoder](shape.embedding, shape.hidden)
        self.attention = attentions[shape.attention](self.encoder.width)
        outputs = 1 if shape.classes == 2 else shape.classes
        self.decoder = nn.Linear(self.encoder.width, outputs)
        init_embeddings(self.embedding)

    def forward(
        self,
        embedded: Float[Tensor, "B T E"],
        present: Bool[Tensor, "B T"],
        mask: Bool[Tensor, "B T"],
    ) -> Forward:
        states = self.encoder(embedded, present)
        weights = masked_softmax(self.scores(states), mask)
        return Forward(self.linear_decoder(states)(weights), weights, states)

    def read(
        self,
        batch: Batch,
        embedded: Float[Tensor, "B T E"],
        asked: Float[Tensor, "B Q E"] | None = None,
    ) -> Forward:
        """One pass over the vectors of a batch."""
        if asked is not None or batch.query is not None:
            raise ShapeError("This network reads one text; the batch has a query beside each.")
        forward: Forward = self(embedded, batch.present, batch.mask)
        return forward

    def embed(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T E"]:
        """The word vectors of the ids."""
        vectors: Tensor = self.embedding(ids)
        return vectors

    def scores(self, states: Float[Tensor, "B T D"]) -> Float[Tensor, "B T"]:
        """Attention scores before the softmax."""
        scores: Tensor = self.attention.score(
            nn.functional.linear(states, *self.attention.reading())
        )
        return scores

    def linear_decoder(self, states: Float[Tensor, "B T D"]) -> LinearDecoder:
        """The output layer as each state's own contribution to the logits."""
        weight, bias = self.class_weights()
        return LinearDecoder(nn.functional.linear(states, weight), bias)

    def class_weights(self) -> tuple[Float[Tensor, "C D"], Float[Tensor, "C"]]:
        """The output layer with a row per class: for two classes the first row is zero."""
        weight, bias = self.decoder.weight, self.decoder.bias
        if self.shape.classes == 2:
            zero = torch.zeros_like
            return torch.cat([zero(weight), weight]), torch.cat([zero(bias), bias])
        return weight, bias
