"""The attentions of Jain & Wallace (2019): from a state to one score.

Each is a linear `reading` of the state and a `score` of that reading. The two halves stand apart
because the reading of [forward; backward] is a sum of two readings, which leave-one-out exploits.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.registry import Registry

attentions = Registry("attention")


@attentions.register("additive")
class AdditiveAttention(nn.Module):
    """v · tanh(W h + b), with W to half the width and v without bias."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, width // 2)
        self.out = nn.Linear(width // 2, 1, bias=False)

    def reading(self) -> tuple[Float[Tensor, "A D"], Float[Tensor, "A"]]:
        """Weight and bias of the linear part."""
        return self.hidden.weight, self.hidden.bias

    def score(self, read: Float[Tensor, "*batch A"]) -> Float[Tensor, "*batch"]:
        """One score from the linear part."""
        scores: Tensor = self.out(read.tanh()).squeeze(-1)
        return scores


@attentions.register("dot")
class DotAttention(nn.Module):
    """(w · h) / √D with a learnt w."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, 1, bias=False)

    def reading(self) -> tuple[Float[Tensor, "A D"], Float[Tensor, "A"]]:
        """Weight and (zero) bias of the linear part."""
        weight = self.query.weight / math.sqrt(self.query.in_features)
        return weight, weight.new_zeros(1)

    def score(self, read: Float[Tensor, "*batch A"]) -> Float[Tensor, "*batch"]:
        """The reading is the score."""
        return read.squeeze(-1)


@attentions.register("uniform")
class UniformAttention(nn.Module):
    """The same score everywhere: attention frozen to equal weights, no parameters."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("nothing", torch.zeros(0, width), persistent=False)
        self.nothing: Tensor

    def reading(self) -> tuple[Float[Tensor, "A D"], Float[Tensor, "A"]]:
        """An empty linear part."""
        return self.nothing, self.nothing.new_zeros(0)

    def score(self, read: Float[Tensor, "*batch A"]) -> Float[Tensor, "*batch"]:
        """Zero for every state."""
        return read.sum(-1)
