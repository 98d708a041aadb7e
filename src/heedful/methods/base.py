"""The Method protocol: ways to explain a prediction, one score per token."""

from typing import ClassVar, Literal, Protocol, runtime_checkable

from jaxtyping import Int
from torch import Tensor

from heedful.core.registry import Registry
from heedful.core.values import Explanation
from heedful.models.sitting import Sitting

Kind = Literal["attention", "sensitivity", "saliency", "control"]
methods = Registry("method")


@runtime_checkable
class Method(Protocol):
    """Turns a sitting (a subject and a batch) into one score per token, for the target classes.

    `kind` says what the score means: where the model looks (attention), how fast the output moves
    with the input (sensitivity), what this input added to this output (saliency), or nothing
    (control). A method that cannot serve a subject raises NotApplicable with the reason.
    """

    kind: ClassVar[Kind]

    @property
    def signed(self) -> bool: ...

    def __call__(self, sitting: Sitting, target: Int[Tensor, "B"]) -> Explanation: ...
