"""Gradients at the word embeddings: norms, products with the embeddings, SmoothGrad."""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from annotated_types import Ge
from jaxtyping import Float, Int
from numpy.random import Generator
from torch import Tensor

from heedful.core.rng import generator
from heedful.core.settings import Repeats
from heedful.core.values import Explanation
from heedful.methods.base import Join, explanation_from_scores, methods
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.gradients import gradients_at, input_gradient
from heedful.numerics.tensor.target import TargetValue

Norm = Literal["l1", "l2"]


def _vector_norm(vectors: Float[Tensor, "*K E"], norm: Norm) -> Float[Tensor, "*K"]:
    return vectors.abs().sum(-1) if norm == "l1" else vectors.square().sum(-1).sqrt()


@methods.register("gradient", kind="sensitivity")
@dataclass(frozen=True)
class Gradient:
    """‖∂f/∂x_t‖: how fast the output changes with a word's embedding, in any direction.

    A word of several pieces gets the norm of all its pieces' gradients.
    """

    norm: Norm = "l2"
    of: TargetValue = "probability"

    @property
    def join(self) -> Join:
        """L1 norms of pieces add up; L2 norms add as squares."""
        return "sum" if self.norm == "l1" else "norm"

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        slope = input_gradient(context, target, self.of)
        return explanation_from_scores("gradient", context, _vector_norm(slope, self.norm))


@methods.register("input_x_gradient", kind="saliency", signed=True)
@dataclass(frozen=True)
class InputXGradient:
    """⟨x_t, ∂f/∂x_t⟩: what the word's embedding adds to the output, to first order."""

    of: TargetValue = "probability"

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        slope = input_gradient(context, target, self.of)
        scores = (context.embedded.detach() * slope).sum(-1)
        return explanation_from_scores("input_x_gradient", context, scores)


@methods.register("one_hot_gradient", kind="saliency")
@dataclass(frozen=True)
class OneHotGradient:
    """|⟨x, ∂p/∂x⟩| (Jain & Wallace, 2019): the derivative along the word's one-hot coordinate.

    Attention is held fixed (as published) or free to change with the input. With attention fixed,
    the gradient of a model that reads words independently contains the factor α; the check
    `agreement` measures how much of its agreement with attention is due to that.
    """

    attention: Literal["fixed", "free"] = "fixed"

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        if self.attention == "free":
            gradient = input_gradient(context, target, "probability")
        else:
            with context.clock("gradient"):
                gradient = context.gradient(target, attention=context.rows)
        scores = (context.embedded.detach() * gradient).sum(-1).abs()
        return explanation_from_scores("one_hot_gradient", context, scores)


@methods.register("smoothgrad", kind="sensitivity")
@dataclass(frozen=True)
class SmoothGrad:
    """‖mean of ∂f/∂x_t at x + ε‖ (Smilkov et al., 2017): the gradient, averaged over noisy inputs.

    ε is normal, its σ is `noise` times the range of the embeddings. Only embeddings of words get
    noise. It depends on the seed and the text, not on the batch.
    """

    samples: Repeats = 16
    noise: Annotated[float, Ge(0)] = 0.1
    norm: Norm = "l2"
    of: TargetValue = "probability"
    join = Gradient.join

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        total = torch.zeros_like(context.embedded)
        rows = torch.arange(len(context.batch))
        streams = [generator(context.seed, "smoothgrad", one) for one in context.batch.content]
        with context.clock("smoothgrad"):
            for _ in range(self.samples):
                noisy = context.embedded.detach() + self._noise(context, streams)
                total += gradients_at(context, rows, noisy, target, self.of)[0]
        scores = _vector_norm(total / self.samples, self.norm)
        return explanation_from_scores("smoothgrad", context, scores)

    def _noise(self, context: BatchContext, streams: list[Generator]) -> Float[Tensor, "B T E"]:
        vectors, mask = context.embedded.detach(), context.batch.mask
        noise = torch.zeros_like(vectors)
        for row, stream in enumerate(streams):
            words = vectors[row][mask[row]]
            if len(words):
                drawn = torch.from_numpy(stream.standard_normal(tuple(words.shape)))
                spread = self.noise * (words.max() - words.min())
                noise[row][mask[row]] = spread * drawn.to(words)
        return noise
