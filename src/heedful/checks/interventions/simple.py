"""Shuffled and uniform attention."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.checks.draws import draw_uniform
from heedful.checks.interventions.base import interventions
from heedful.core.settings import Repeats, check_on_init
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.distributions import permute_weights, uniform_weights


@interventions.register("permute")
@check_on_init
@dataclass(frozen=True)
class Permute:
    """The model's own weights, shuffled among the words of the text, `draws` times.

    With keys="all" they are shuffled among all tokens that a row attends to. Special tokens often
    hold most of the weight and carry little information, so moving it mainly does damage.
    """

    draws: Repeats = 100
    purpose: str = "permutation"
    keys: Literal["words", "all"] = "words"

    def __call__(self, context: BatchContext) -> Float[Tensor, "K B *R T"]:
        batch, rows = context.batch, context.rows
        movable = batch.mask if self.keys == "words" else batch.present
        lengths = movable.sum(-1).tolist()
        keys = draw_uniform(context, self.purpose, draws=self.draws, lengths=lengths).to(rows)
        if rows.dim() == 2:
            return permute_weights(rows, movable, keys=keys)
        return permute_rows(rows, movable[:, None] & (rows > 0), keys=keys)


def permute_rows(
    rows: Float[Tensor, "B R T"], movable: Bool[Tensor, "B R T"], *, keys: Float[Tensor, "B K L"]
) -> Float[Tensor, "K B R T"]:
    """Every row of a text shuffled alike, so that what they read as together is shuffled too."""
    pairs = zip(rows.unbind(1), movable.unbind(1), strict=True)
    return torch.stack([permute_weights(row, allowed, keys=keys) for row, allowed in pairs], dim=2)


@interventions.register("uniform")
@dataclass(frozen=True)
class UniformWeights:
    """The mass on words, spread evenly over them."""

    def __call__(self, context: BatchContext) -> Float[Tensor, "K B *R T"]:
        mask, rows = context.attendable_words, context.rows
        mass = rows.masked_fill(~mask, 0.0).sum(-1, keepdim=True)
        even = mass * uniform_weights(mask, dtype=rows.dtype)
        return torch.where(mask, even, rows)[None]
