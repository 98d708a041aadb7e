"""The attention weights themselves."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Int
from torch import Tensor

from heedful.core.values import Explanation
from heedful.methods.base import Kind, methods
from heedful.models.sitting import Sitting


@methods.register("attention")
@dataclass(frozen=True)
class Attention:
    """The weights the model attends with; the same for every target."""

    kind: ClassVar[Kind] = "attention"
    signed: ClassVar[bool] = False

    def __call__(
        self,
        sitting: Sitting,
        target: Int[Tensor, "B"],  # noqa: ARG002 - attention knows no target
    ) -> Explanation:
        mask = sitting.batch.mask
        return Explanation("attention", sitting.forward.attention.masked_fill(~mask, 0.0), mask)
