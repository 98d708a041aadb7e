"""Controls: explanations that know nothing, to give the others a scale."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.core.rng import uniform_keys
from heedful.core.values import Explanation
from heedful.methods.base import Join, Kind, methods
from heedful.models.batch_context import Sitting
from heedful.numerics.tensor.distributions import positions_first, uniform


@methods.register("random")
@dataclass(frozen=True)
class Random:
    """Scores drawn at random for each text, the same in every batch."""

    kind: ClassVar[Kind] = "control"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = False

    def __call__(
        self,
        sitting: Sitting,
        target: Int[Tensor, "B"],  # noqa: ARG002 - a control knows no target
    ) -> Explanation:
        mask, instances = sitting.batch.mask, sitting.batch.instances
        lengths = sitting.batch.lengths.tolist()
        keys = uniform_keys(sitting.seed, "random", instances, draws=1, lengths=lengths)
        drawn = torch.from_numpy(keys[:, 0]).to(sitting.forward.attention)
        home = positions_first(mask)[:, : drawn.shape[1]]
        scores = torch.zeros_like(sitting.forward.attention).scatter(-1, home, drawn)
        return Explanation("random", scores.masked_fill(~mask, 0.0), mask)


@methods.register("uniform")
@dataclass(frozen=True)
class Uniform:
    """The same score for every token of a text."""

    kind: ClassVar[Kind] = "control"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = False

    def __call__(
        self,
        sitting: Sitting,
        target: Int[Tensor, "B"],  # noqa: ARG002 - a control knows no target
    ) -> Explanation:
        mask = sitting.batch.mask
        scores = uniform(mask, dtype=sitting.forward.attention.dtype)
        return Explanation("uniform", scores, mask)
