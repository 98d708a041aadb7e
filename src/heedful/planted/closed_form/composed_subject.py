"""A subject composed of a table of numbers for each word and a way to read states from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.core.batch import Batch, Encoded, collate
from heedful.core.values import Decoder, Example, Forward
from heedful.numerics.tensor.distributions import masked_softmax
from heedful.planted.closed_form.base import Setting, WordNumbers
from heedful.planted.hand_built import encode_word_ids, log_odds_decoder

StateReader = Callable[[Float[Tensor, "B T K"], Bool[Tensor, "B T"]], Float[Tensor, "B T D"]]
"""From the words' numbers to states: [score, what it says, and what passes attention by if any]."""


@dataclass(frozen=True, eq=False)
class ComposedSubject:
    """Logits (0, z): z is what attention gathers from the states, and what passes it by."""

    setting: Setting
    table: Float[Tensor, "V K"]
    read: StateReader
    labels: tuple[str, ...] = ("negative", "positive")
    architecture = "recurrent"

    @property
    def family(self) -> str:
        """The kind of planted truth."""
        return f"planted-{self.setting.kind}"

    def fingerprint(self) -> str:
        """sha256 over the setting and the table."""
        return sha256(f"{self.setting}".encode() + self.table.numpy().tobytes()).hexdigest()

    def encode(self, example: Example) -> Encoded:
        """Words are called w0, w1, …; w7 has number 7."""
        return encode_word_ids(example)

    def batch(self, encoded: Sequence[Encoded]) -> Batch:
        """Pad with word 0, masked out."""
        return collate(encoded)

    def embed(self, batch: Batch) -> Float[Tensor, "B T K"]:
        """The numbers of each word."""
        return self.table[batch.ids]

    def forward(self, batch: Batch, embedded: Float[Tensor, "B T K"] | None = None) -> Forward:
        """Read the states, attend by their first number."""
        vectors = self.embed(batch) if embedded is None else embedded
        states = self.read(vectors, batch.mask)
        weights = masked_softmax(states[..., 0], batch.mask)
        return Forward(_decoder(states)(weights), weights, states)

    def decoder(self, batch: Batch, forward: Forward) -> Decoder:  # noqa: ARG002
        """Linear in the states; where something passes attention by, that is added."""
        return _decoder(forward.states)


def _decoder(states: Float[Tensor, "B T D"]) -> Decoder:
    if states.shape[-1] == 2:
        return log_odds_decoder(states)
    return BypassDecoder(states)


@dataclass(frozen=True, slots=True, eq=False)
class BypassDecoder:
    """The attended state's log-odds and those that pass attention by, equal at all positions."""

    states: Float[Tensor, "B T D"]

    def __call__(self, attention: Float[Tensor, "*K B T"]) -> Float[Tensor, "*K B C"]:
        attended: Tensor = log_odds_decoder(self.states)(attention)
        beside = self.states[:, 0, 2]
        return attended + torch.stack([torch.zeros_like(beside), beside], dim=-1)


def compose_subject(setting: Setting, read: StateReader, *columns: WordNumbers) -> ComposedSubject:
    """A subject from columns of numbers, one number for every word."""
    return ComposedSubject(setting, torch.from_numpy(np.stack(columns, axis=1)), read)


def read_per_word(
    vectors: Float[Tensor, "B T 2"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T 2"]:  # noqa: ARG001
    """A state is its own word's score and what that word says."""
    return vectors


def read_text_sum(
    vectors: Float[Tensor, "B T 2"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T 2"]:
    """Every state says the sum over the text."""
    score, adds = vectors.unbind(-1)
    return torch.stack([score, sum_over_text(adds, mask)], dim=-1)


def sum_over_text(adds: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """The sum over each text's words, at every position."""
    return (adds * mask).sum(-1, keepdim=True).expand_as(adds)


def sum_neighbours(lends: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """What the words before and after a position lend to it."""
    inside = torch.nn.functional.pad(lends * mask, (1, 1))
    return inside[:, :-2] + inside[:, 2:]
