"""Shuffled and uniform attention."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.errors import ConfigError
from heedful.core.rng import uniform_keys
from heedful.interventions.base import interventions
from heedful.models.sitting import Sitting
from heedful.tensor.simplex import permuted, uniform


@interventions.register("permute")
@dataclass(frozen=True)
class Permute:
    """The model's own weights, shuffled among the words of the text, `draws` times."""

    draws: int = 100
    purpose: str = "permutation"

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise ConfigError(f"draws must be at least 1, not {self.draws}.")

    def __call__(self, sitting: Sitting) -> Float[Tensor, "K B T"]:
        batch, weights = sitting.batch, sitting.forward.attention
        drawn = uniform_keys(
            sitting.seed,
            self.purpose,
            batch.instances,
            draws=self.draws,
            lengths=batch.lengths.tolist(),
        )
        keys = torch.from_numpy(drawn).to(weights)
        return permuted(weights, batch.mask, keys=keys)


@interventions.register("uniform")
@dataclass(frozen=True)
class Uniform:
    """The mass that the words hold, spread evenly over them."""

    def __call__(self, sitting: Sitting) -> Float[Tensor, "K B T"]:
        mask, weights = sitting.batch.mask, sitting.forward.attention
        mass = weights.masked_fill(~mask, 0.0).sum(-1, keepdim=True)
        even = mass * uniform(mask, dtype=weights.dtype)
        return torch.where(mask, even, weights)[None]
