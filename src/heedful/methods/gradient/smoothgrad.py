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
from heedful.methods.base import Join, Kind, methods, on_words, require_one_of
from heedful.methods.gradient.gradient import NORMS, Norm, size
from heedful.models.batch_context import Sitting
from heedful.models.perturbed.path_gradients import gradients_at
from heedful.numerics.tensor.target import OF, Of


@methods.register("smoothgrad")
@dataclass(frozen=True)
class SmoothGrad:
    """‖mean of ∂f/∂x_t at x + noise‖, the noise normal, of `noise` times the range of the vectors.

    Only the words' vectors are shaken. Draws belong to the seed and the text.
    """

    samples: int = 16
    noise: float = 0.1
    norm: Norm = "l2"
    of: Of = "probability"
    kind: ClassVar[Kind] = "sensitivity"
    signed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_one_of("norm", self.norm, NORMS)
        require_one_of("of", self.of, OF)
        if self.samples < 1:
            raise ConfigError(f"samples must be at least 1, not {self.samples}.")
        if not self.noise >= 0.0:
            raise ConfigError(f"noise must be 0 or more, not {self.noise}.")

    @property
    def join(self) -> Join:
        """As for the gradient."""
        return "sum" if self.norm == "l1" else "norm"

    def __call__(self, sitting: Sitting, target: Int[Tensor, "B"]) -> Explanation:
        total = torch.zeros_like(sitting.embedded)
        rows = torch.arange(len(sitting.batch))
        streams = [generator(sitting.seed, "smoothgrad", one) for one in sitting.batch.instances]
        with sitting.clock("smoothgrad"):
            for _ in range(self.samples):
                shaken = sitting.embedded.detach() + self._noise(sitting, streams)
                total += gradients_at(sitting, rows, shaken, target, self.of)[0]
        return on_words("smoothgrad", sitting, size(total / self.samples, self.norm))

    def _noise(self, sitting: Sitting, streams: list[Generator]) -> Float[Tensor, "B T E"]:
        vectors, mask = sitting.embedded.detach(), sitting.batch.mask
        noise = torch.zeros_like(vectors)
        for row, stream in enumerate(streams):
            words = vectors[row][mask[row]]
            if len(words):
                drawn = torch.from_numpy(stream.standard_normal(tuple(words.shape)))
                spread = self.noise * (words.max() - words.min())
                noise[row][mask[row]] = spread * drawn.to(words)
        return noise
