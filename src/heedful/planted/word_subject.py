"""Planted subjects read words by their numbers: what hand-built and closed-form ones share."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.batch import Batch, Encoded, collate
from heedful.core.values import Decoder, Example, Forward, LinearDecoder
from heedful.numerics.tensor.distributions import masked_softmax


class WordSubject(ABC):
    """A subject with a row of numbers for each word.

    The first number of a state is its attention score, the second the log-odds z that attention
    averages; logits are (0, z).
    """

    table: Float[Tensor, "V E"]
    architecture = "recurrent"

    def encode(self, example: Example) -> Encoded:
        """Encode words w0, w1, … by their number: w7 has id 7."""
        words = tuple(example.text.split())
        ids = tuple(int(word.removeprefix("w")) for word in words)
        return Encoded(example.index, example.label, ids, tuple(range(len(ids))), words)

    def batch(self, encoded: Sequence[Encoded]) -> Batch:
        """Pad with word 0, masked out."""
        return collate(encoded)

    def embed(self, batch: Batch) -> Float[Tensor, "B T E"]:
        """The numbers of each word."""
        return self.table[batch.ids]

    def forward(self, batch: Batch, embedded: Float[Tensor, "B T E"] | None = None) -> Forward:
        """Read the states; attention is the softmax of their first number."""
        states = self.states(batch, self.embed(batch) if embedded is None else embedded)
        weights = masked_softmax(states[..., 0], batch.mask)
        return Forward(self.state_decoder(batch, states)(weights), weights, states)

    def decoder(self, batch: Batch, forward: Forward) -> Decoder:
        """The function from attention to logits."""
        return self.state_decoder(batch, forward.states)

    @abstractmethod
    def states(self, batch: Batch, vectors: Float[Tensor, "B T E"]) -> Float[Tensor, "B T D"]:
        """The states of a text, from the numbers of its words."""

    def state_decoder(self, batch: Batch, states: Float[Tensor, "B T D"]) -> Decoder:  # noqa: ARG002
        """The decoder of these states: linear in the attended log-odds by default."""
        return log_odds_decoder(states)


def log_odds_decoder(states: Float[Tensor, "B T D"]) -> LinearDecoder:
    """Logits (0, z), where z is the second number of the attended state."""
    log_odds = states[..., 1]
    contributions = torch.stack([torch.zeros_like(log_odds), log_odds], dim=-1)
    return LinearDecoder(contributions, states.new_zeros(2))
