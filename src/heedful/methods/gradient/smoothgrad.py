"""SmoothGrad (Smilkov et al., 2017): the gradient, averaged over noisy inputs."""

from dataclasses import dataclass
from typing import Annotated

import torch
from annotated_types import Ge
from jaxtyping import Float, Int
from numpy.random import Generator
from torch import Tensor

from heedful.core.rng import generator
from heedful.core.settings import PositiveInt
from heedful.core.values import Explanation
from heedful.methods.base import Join, explanation_from_scores, methods
from heedful.methods.gradient.gradient import Norm, vector_norm
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.path_gradients import gradients_at
from heedful.numerics.tensor.target import TargetValue


@methods.register("smoothgrad", kind="sensitivity")
@dataclass(frozen=True)
class SmoothGrad:
    """‖mean of ∂f/∂x_t at x + ε‖, ε normal with `noise` times the range of the embeddings as σ.

    Only embeddings of words get noise. It depends on the seed and the text, not on the batch.
    """

    samples: PositiveInt = 16
    noise: Annotated[float, Ge(0)] = 0.1
    norm: Norm = "l2"
    of: TargetValue = "probability"

    @property
    def join(self) -> Join:
        """As in `gradient`."""
        return "sum" if self.norm == "l1" else "norm"

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        total = torch.zeros_like(context.embedded)
        rows = torch.arange(len(context.batch))
        streams = [generator(context.seed, "smoothgrad", one) for one in context.batch.instances]
        with context.clock("smoothgrad"):
            for _ in range(self.samples):
                noisy = context.embedded.detach() + self._noise(context, streams)
                total += gradients_at(context, rows, noisy, target, self.of)[0]
        return explanation_from_scores(
            "smoothgrad", context, vector_norm(total / self.samples, self.norm)
        )

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
