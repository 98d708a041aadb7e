"""The attentions of Jain & Wallace (2019): a score for each state, with or without a question.

Each attention is a linear projection of the state and a score of the projected state. The two are
separate because the projection of [forward; backward] is a sum of two projections, which a pass of
many variants exploits. A question is projected once for a text; without one its projection is None.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.registry import Registry

attentions = Registry("attention")
LinearMap = tuple[Float[Tensor, "A D"], Float[Tensor, "A"]]
Question = Float[Tensor, "B D"] | None


@attentions.register("additive")
class AdditiveAttention(nn.Module):
    """v · tanh(W h + b), with a question v · tanh(W h + b + W_q q + b_q).

    W and W_q map to half the width; v has no bias.
    """

    def __init__(self, width: int, *, query: bool = False) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, width // 2)
        self.question = nn.Linear(width, width // 2) if query else None
        self.out = nn.Linear(width // 2, 1, bias=False)

    def projection(self) -> LinearMap:
        """Weight and bias of the linear map of a state."""
        return self.hidden.weight, self.hidden.bias

    def project_question(self, question: Question) -> Float[Tensor, "B A"] | None:
        """The term of the question inside the tanh."""
        return None if self.question is None else self.question(question)

    def score(
        self, projected: Float[Tensor, "*batch A"], question: Float[Tensor, "*#batch A"] | None
    ) -> Float[Tensor, "*batch"]:
        """One score for each projected state."""
        total = projected if question is None else projected + question
        scores: Tensor = self.out(total.tanh()).squeeze(-1)
        return scores


@attentions.register("dot")
class DotAttention(nn.Module):
    """(w · h) / √D with a learnt w, with a question (q · h) / √D without any weights."""

    def __init__(self, width: int, *, query: bool = False) -> None:
        super().__init__()
        self.query = None if query else nn.Linear(width, 1, bias=False)
        self.register_buffer("identity", torch.eye(width) if query else None, persistent=False)
        self.identity: Tensor

    def projection(self) -> LinearMap:
        """w / √D, or the identity where a question takes the place of w; the bias is zero."""
        weight = self.identity
        if self.query is not None:
            weight = self.query.weight / math.sqrt(self.query.in_features)
        return weight, weight.new_zeros(len(weight))

    def project_question(self, question: Question) -> Float[Tensor, "B A"] | None:
        """q / √D."""
        return None if question is None else question / math.sqrt(question.shape[-1])

    def score(
        self, projected: Float[Tensor, "*batch A"], question: Float[Tensor, "*#batch A"] | None
    ) -> Float[Tensor, "*batch"]:
        """The projected state itself, or its product with the question."""
        return projected.squeeze(-1) if question is None else (projected * question).sum(-1)


@attentions.register("uniform")
class UniformAttention(nn.Module):
    """The same score everywhere: attention frozen to equal weights, without parameters."""

    def __init__(self, width: int, *, query: bool = False) -> None:  # noqa: ARG002 - common signature
        super().__init__()
        self.register_buffer("empty", torch.zeros(0, width), persistent=False)
        self.empty: Tensor

    def projection(self) -> LinearMap:
        """A linear map to nothing."""
        return self.empty, self.empty.new_zeros(0)

    def project_question(self, question: Question) -> Float[Tensor, "B A"] | None:
        """An empty vector for each question."""
        return None if question is None else question[:, :0]

    def score(
        self, projected: Float[Tensor, "*batch A"], _question: Float[Tensor, "*#batch A"] | None
    ) -> Float[Tensor, "*batch"]:
        """Zero for every state."""
        return projected.sum(-1)
