"""Controls: explanations that know nothing, to give the others a scale."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.core.rng import uniform_keys
from heedful.core.values import Explanation
from heedful.methods.base import Join, ScoreKind, methods
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.distributions import positions_first, uniform_weights


@methods.register("random")
@dataclass(frozen=True)
class RandomScores:
    """Scores drawn at random for each text, the same in every batch."""

    kind: ClassVar[ScoreKind] = "control"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = False

    def __call__(
        self,
        context: BatchContext,
        target: Int[Tensor, "B"],  # noqa: ARG002 - a control knows no target
    ) -> Explanation:
        mask, instances = context.batch.mask, context.batch.instances
        lengths = context.batch.lengths.tolist()
        keys = uniform_keys(context.seed, "random", instances, draws=1, lengths=lengths)
        drawn = torch.from_numpy(keys[:, 0]).to(context.forward.attention)
        home = positions_first(mask)[:, : drawn.shape[1]]
        scores = torch.zeros_like(context.forward.attention).scatter(-1, home, drawn)
        return Explanation("random", scores.masked_fill(~mask, 0.0), mask)


@methods.register("uniform")
@dataclass(frozen=True)
class UniformScores:
    """The same score for every token of a text."""

    kind: ClassVar[ScoreKind] = "control"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = False

    def __call__(
        self,
        context: BatchContext,
        target: Int[Tensor, "B"],  # noqa: ARG002 - a control knows no target
    ) -> Explanation:
        mask = context.batch.mask
        scores = uniform_weights(mask, dtype=context.forward.attention.dtype)
        return Explanation("uniform", scores, mask)
