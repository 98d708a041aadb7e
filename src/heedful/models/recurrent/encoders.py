"""The encoders of Jain & Wallace (2019): from word vectors to one state per token.

In `bilstm` and `cnn` the state of a token depends on its context; `average` and `mlp` are
word-wise: a state depends on its own word only.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.core.registry import Registry

encoders = Registry("encoder")


@encoders.register("bilstm")
class BiLSTM(nn.Module):
    """One bidirectional LSTM layer; a state is [forward; backward], 2 × hidden wide.

    Two one-way layers on padded texts, the second on reversed texts. On a CPU, training is 2.5
    times as fast at 20 tokens as one two-way layer on packed texts, and 8 times at 180.
    """

    word_wise = False

    def __init__(self, embedding: int, hidden: int) -> None:
        super().__init__()
        self.width = 2 * hidden
        self.ahead = nn.LSTM(embedding, hidden, batch_first=True)
        self.behind = nn.LSTM(embedding, hidden, batch_first=True)

    def forward(
        self, embedded: Float[Tensor, "B T E"], present: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]:
        ahead, _ = self.ahead(embedded)
        behind, _ = self.behind(reverse_texts(embedded, present))
        return torch.cat([ahead, reverse_texts(behind, present)], dim=-1) * present[..., None]


def reverse_texts(
    rows: Float[Tensor, "B T E"], present: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T E"]:
    """The tokens of each text in reverse order; padding stays at the end."""
    position = torch.arange(rows.shape[1], device=rows.device)
    source = torch.where(present, present.sum(-1, keepdim=True) - 1 - position, position)
    return rows.gather(1, source[..., None].expand_as(rows))


@encoders.register("cnn")
class CNN(nn.Module):
    """Convolutions of width 1, 3, 5 and 7, a quarter of the hidden size each, with ReLU."""

    word_wise = False
    kernels = (1, 3, 5, 7)

    def __init__(self, embedding: int, hidden: int) -> None:
        super().__init__()
        each = hidden // len(self.kernels)
        self.width = each * len(self.kernels)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(embedding, each, kernel, padding=kernel // 2) for kernel in self.kernels
        )

    def forward(
        self, embedded: Float[Tensor, "B T E"], present: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]:
        columns = (embedded * present[..., None]).transpose(1, 2)
        states = torch.cat([layer(columns) for layer in self.convolutions], dim=1)
        return states.relu().transpose(1, 2) * present[..., None]


@encoders.register("average")
class Average(nn.Module):
    """tanh of a linear map of each word: the papers' "average", without any context."""

    word_wise = True

    def __init__(self, embedding: int, hidden: int) -> None:
        super().__init__()
        self.width = hidden
        self.project = nn.Linear(embedding, hidden)

    def forward(
        self, embedded: Float[Tensor, "B T E"], _present: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]:
        states: Tensor = self.project(embedded).tanh()
        return states


@encoders.register("mlp")
class MLP(nn.Module):
    """Two tanh layers on each word, without any context."""

    word_wise = True

    def __init__(self, embedding: int, hidden: int) -> None:
        super().__init__()
        self.width = hidden
        self.layers = nn.Sequential(
            nn.Linear(embedding, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh()
        )

    def forward(
        self, embedded: Float[Tensor, "B T E"], _present: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]:
        states: Tensor = self.layers(embedded)
        return states
