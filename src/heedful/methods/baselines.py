"""Controls: explanations that know nothing about the model, as a scale for the others."""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.core.rng import uniform_keys
from heedful.core.values import Explanation
from heedful.methods.base import methods
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.distributions import positions_first, uniform_weights


@methods.register("random", kind="control")
@dataclass(frozen=True)
class RandomScores:
    """Random scores that depend on the seed and the text, not on the batch."""

    def __call__(self, context: BatchContext, _target: Int[Tensor, "B"]) -> Explanation:
        mask, texts = context.batch.mask, context.batch.content
        lengths = context.batch.lengths.tolist()
        keys = uniform_keys(context.seed, "random", texts, draws=1, lengths=lengths)
        drawn = torch.from_numpy(keys[:, 0]).to(context.forward.attention)
        home = positions_first(mask)[:, : drawn.shape[1]]
        scores = torch.zeros_like(context.forward.attention).scatter(-1, home, drawn)
        return Explanation("random", scores.masked_fill(~mask, 0.0), mask)


@methods.register("uniform", kind="control", tied=True)
@dataclass(frozen=True)
class UniformScores:
    """The same score for every token of a text."""

    def __call__(self, context: BatchContext, _target: Int[Tensor, "B"]) -> Explanation:
        mask = context.batch.mask
        scores = uniform_weights(mask, dtype=context.forward.attention.dtype)
        return Explanation("uniform", scores, mask)
