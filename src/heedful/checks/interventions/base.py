"""The Intervention protocol: other attentions to put before the same states."""

from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from heedful.core.errors import ConfigError
from heedful.core.registry import Registry
from heedful.models.batch_context import BatchContext

interventions = Registry("intervention")


def require_epsilon(epsilon: float) -> None:
    """ε is a change of output in TVD: a share."""
    if not 0.0 < epsilon <= 1.0:
        raise ConfigError(f"epsilon must be above 0 and at most 1, not {epsilon}.")


@runtime_checkable
class Intervention(Protocol):
    """Gives K alternatives to a sitting's rows for each text; states stay as they are.

    Where a subject has many rows (of heads, say), weight on special tokens stays where it is.
    Nothing is claimed of them here: what they do to the output is always found by decoding them.
    """

    def __call__(self, context: BatchContext) -> Float[Tensor, "K B *R T"]: ...
