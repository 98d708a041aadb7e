"""Gradients at other word vectors than those of the texts, and along straight paths to them."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, autograd

from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.target import TargetValue, target_value


def gradients_at(
    context: BatchContext,
    rows: Int[Tensor, "N"],
    vectors: Float[Tensor, "N T E"],
    target: Int[Tensor, "B"],
    of: TargetValue,
) -> tuple[Float[Tensor, "N T E"], Float[Tensor, "N"]]:
    """∂f/∂x of texts rows[n] at vectors[n], and f there."""
    found = [
        _gradients_in_one_pass(context, some, here, target[some], of)
        for some, here in context.split_by_budget(rows, vectors)
    ]
    slopes, values = zip(*found, strict=True)
    return torch.cat(slopes), torch.cat(values)


@dataclass(frozen=True, eq=False)
class StraightPath:
    """The straight path from start vectors to the word vectors of the texts."""

    context: BatchContext
    start_vectors: Float[Tensor, "B T E"]
    target: Int[Tensor, "B"]
    of: TargetValue

    def grid(
        self, texts: Int[Tensor, "M"], nodes: Float[Tensor, "N"]
    ) -> tuple[Float[Tensor, "N M T"], Float[Tensor, "N M"]]:
        """As `at`, for every node in every text."""
        parts, values = self.at(texts.repeat(len(nodes)), nodes.repeat_interleave(len(texts)))
        shape = (len(nodes), len(texts))
        return parts.reshape(*shape, -1), values.reshape(shape)

    def at(
        self, rows: Int[Tensor, "K"], steps: Float[Tensor, "K"]
    ) -> tuple[Float[Tensor, "K T"], Float[Tensor, "K"]]:
        """⟨path, ∂f/∂x⟩ of each token of texts rows[k] at steps[k] of the path, and f there."""
        found = [self._some(some, step) for some, step in self.context.split_by_budget(rows, steps)]
        parts, values = zip(*found, strict=True)
        return torch.cat(parts), torch.cat(values)

    def _some(
        self, rows: Int[Tensor, "K"], steps: Float[Tensor, "K"]
    ) -> tuple[Float[Tensor, "K T"], Float[Tensor, "K"]]:
        start = self.start_vectors[rows]
        path = self.context.embedded.detach()[rows] - start
        here = start + steps[:, None, None] * path
        slope, value = _gradients_in_one_pass(self.context, rows, here, self.target[rows], self.of)
        return (path * slope).sum(-1), value


def _gradients_in_one_pass(
    context: BatchContext,
    rows: Int[Tensor, "N"],
    vectors: Float[Tensor, "N T E"],
    target: Int[Tensor, "N"],
    of: TargetValue,
) -> tuple[Float[Tensor, "N T E"], Float[Tensor, "N"]]:
    with torch.enable_grad():
        leaf = vectors.detach().requires_grad_()
        logits = context.run_logits(context.batch.select(rows), leaf)
        value = target_value(logits, target.to(logits.device), of)
        (slope,) = autograd.grad(value.sum(), leaf)
    return slope, value.detach()
