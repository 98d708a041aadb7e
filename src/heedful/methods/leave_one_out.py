"""Leave one out: how the output changes when a token is deleted."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from jaxtyping import Int
from torch import Tensor

from heedful.core.errors import ConfigError
from heedful.core.values import Explanation
from heedful.methods.base import Kind, methods
from heedful.models.sitting import Sitting
from heedful.tensor.divergence import tvd


@methods.register("leave_one_out")
@dataclass(frozen=True)
class LeaveOneOut:
    """p(x) − p(x without t) of the target, or the distance of the whole outputs (of="output").

    The token is deleted, later ones move up, the text is encoded anew. For two classes the
    absolute value of the first is the second.
    """

    of: Literal["target", "output"] = "target"
    kind: ClassVar[Kind] = "saliency"

    def __post_init__(self) -> None:
        if self.of not in ("target", "output"):
            raise ConfigError(f"of must be target or output, not {self.of!r}.")

    @property
    def signed(self) -> bool:
        """A distance of outputs has no sign."""
        return self.of == "target"

    def __call__(self, sitting: Sitting, target: Int[Tensor, "B"]) -> Explanation:
        before = sitting.forward.probabilities[:, None, :]
        after = sitting.without_each.softmax(-1)
        if self.of == "output":
            scores = tvd(after, before)
        else:
            index = target[:, None, None].expand(*after.shape[:2], 1)
            scores = (before - after).gather(-1, index).squeeze(-1)
        mask = sitting.batch.mask
        return Explanation("leave_one_out", scores.masked_fill(~mask, 0.0), mask)
