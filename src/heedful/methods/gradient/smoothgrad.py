"""SmoothGrad (Smilkov et al., 2017): the gradient, averaged over noise in the input."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from numpy.random import Generator
from torch import Tensor

from heedful.core.errors import ConfigError
from heedful.core.rng import generator
from heedful.core.values import Explanation
from heedful.methods.base import Join, ScoreKind, explanation_from_scores, methods, require_one_of
from heedful.methods.gradient.gradient import NORMS, Norm, vector_norm
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.path_gradients import gradients_at
from heedful.numerics.tensor.target import TARGET_VALUES, TargetValue


@methods.register("smoothgrad")
@dataclass(frozen=True)
class SmoothGrad:
    """‖mean of ∂f/∂x_t at x + noise‖, the noise normal, of `noise` times the range of the vectors.

    Only the words' vectors are shaken. Draws belong to the seed and the text.
    """

    samples: int = 16
    noise: float = 0.1
    norm: Norm = "l2"
    of: TargetValue = "probability"
    kind: ClassVar[ScoreKind] = "sensitivity"
    signed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_one_of("norm", self.norm, NORMS)
        require_one_of("of", self.of, TARGET_VALUES)
        if self.samples < 1:
            raise ConfigError(f"samples must be at least 1, not {self.samples}.")
        if not self.noise >= 0.0:
            raise ConfigError(f"noise must be 0 or more, not {self.noise}.")

    @property
    def join(self) -> Join:
        """As for the gradient."""
        return "sum" if self.norm == "l1" else "norm"

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        total = torch.zeros_like(context.embedded)
        rows = torch.arange(len(context.batch))
        streams = [generator(context.seed, "smoothgrad", one) for one in context.batch.instances]
        with context.clock("smoothgrad"):
            for _ in range(self.samples):
                shaken = context.embedded.detach() + self._noise(context, streams)
                total += gradients_at(context, rows, shaken, target, self.of)[0]
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
