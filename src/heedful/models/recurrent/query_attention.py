"""The attentions of Jain & Wallace (2019) with a query: from a state and a question to one score.

As without a query, each is a linear `reading` of the state and a `score` of that reading; `asking`
is what the score needs of the question, computed once for a text however many states it has.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.registry import Registry

query_attentions = Registry("attention with a query")


@query_attentions.register("additive")
class AdditiveQueryAttention(nn.Module):
    """v · tanh(W_p h + W_q q), both to half the width and v without bias."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, width // 2)
        self.question = nn.Linear(width, width // 2)
        self.out = nn.Linear(width // 2, 1, bias=False)

    def reading(self) -> tuple[Float[Tensor, "A D"], Float[Tensor, "A"]]:
        """Weight and bias of what is read of a state."""
        return self.hidden.weight, self.hidden.bias

    def read(self, states: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch A"]:
        """The reading itself."""
        read: Tensor = self.hidden(states)
        return read

    def asking(self, question: Float[Tensor, "B D"]) -> Float[Tensor, "B A"]:
        """The question's part of the sum inside the tanh."""
        asked: Tensor = self.question(question)
        return asked

    def score(
        self, read: Float[Tensor, "*batch A"], asked: Float[Tensor, "*#batch A"]
    ) -> Float[Tensor, "*batch"]:
        """One score from both parts."""
        scores: Tensor = self.out((read + asked).tanh()).squeeze(-1)
        return scores


@query_attentions.register("dot")
class DotQueryAttention(nn.Module):
    """(h · q) / √D, without any weights of its own; what is read of a state is the state."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("same", torch.eye(width), persistent=False)
        self.same: Tensor

    def reading(self) -> tuple[Float[Tensor, "A D"], Float[Tensor, "A"]]:
        """The identity."""
        return self.same, self.same.new_zeros(len(self.same))

    def read(self, states: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch A"]:
        """The reading itself."""
        return states

    def asking(self, question: Float[Tensor, "B D"]) -> Float[Tensor, "B A"]:
        """The question, scaled."""
        return question / math.sqrt(question.shape[-1])

    def score(
        self, read: Float[Tensor, "*batch A"], asked: Float[Tensor, "*#batch A"]
    ) -> Float[Tensor, "*batch"]:
        """The product of both."""
        return (read * asked).sum(-1)


@query_attentions.register("uniform")
class UniformQueryAttention(nn.Module):
    """The same score everywhere, whatever is asked: attention frozen to equal weights."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("nothing", torch.zeros(0, width), persistent=False)
        self.nothing: Tensor

    def reading(self) -> tuple[Float[Tensor, "A D"], Float[Tensor, "A"]]:
        """An empty linear part."""
        return self.nothing, self.nothing.new_zeros(0)

    def read(self, states: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch A"]:
        """The reading itself."""
        return states[..., :0]

    def asking(self, question: Float[Tensor, "B D"]) -> Float[Tensor, "B A"]:
        """Nothing of the question."""
        return question[:, :0]

    def score(
        self,
        read: Float[Tensor, "*batch A"],
        asked: Float[Tensor, "*#batch A"],  # noqa: ARG002 - every attention is called alike
    ) -> Float[Tensor, "*batch"]:
        """Zero for every state."""
        return read.sum(-1)
