"""Records the attention of a patched model, and applies edits to it."""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.errors import AttentionUnavailable


@dataclass(frozen=True, slots=True, eq=False)
class AttentionCall:
    """One attention of a pass: its module, its order in the pass, and its own weights.

    `values` are the vectors each head mixes; None where only the softmax is visible. In that case
    `module_input` holds the input of the module.
    """

    module: str
    order: int
    weights: Float[Tensor, "B H Q K"]
    values: Float[Tensor, "B H K D"] | None
    module_input: Float[Tensor, "..."] | None = None

    @property
    def states(self) -> Float[Tensor, "..."] | None:
        """The vectors attended to, one per key: values of all heads, or the module's input."""
        values = self.values
        return self.module_input if values is None else values.transpose(1, 2).flatten(2)


@dataclass(frozen=True, slots=True, eq=False)
class HeadOutput:
    """The output of the heads itself, such as Σ weights · values of another pass."""

    output: Float[Tensor, "B H Q D"]


Edit = Callable[[AttentionCall], Tensor | HeadOutput | None]
"""Returns the weights to use instead, the heads' output itself, or None to change nothing."""


@dataclass(eq=False)
class AttentionRecorder:
    """Every attention of a pass, in order, and the edit that is applied to each.

    `module_names` maps the id of a module to its name.
    """

    module_names: Mapping[int, str]
    edit: Edit | None = None
    keep: bool = True
    count: int = 0
    calls: list[AttentionCall] = field(default_factory=list)

    def record(
        self,
        module: nn.Module,
        weights: Tensor,
        values: Tensor | None = None,
        module_input: Tensor | None = None,
    ) -> Tensor | HeadOutput | None:
        """Record a call and return what replaces its weights, or None."""
        name = self.module_names.get(id(module), type(module).__name__)
        call = AttentionCall(name, self.count, weights, values, module_input)
        self.count += 1
        new = None if self.edit is None else self.edit(call)
        if isinstance(new, Tensor) and new.shape != weights.shape:
            raise AttentionUnavailable(
                f"An edit gave weights of shape {tuple(new.shape)} to {name}, which attends with "
                f"{tuple(weights.shape)}; shapes must be equal."
            )
        if self.keep:
            shown = new if isinstance(new, Tensor) else weights
            self.calls.append(AttentionCall(name, call.order, shown, values, module_input))
        return new


active_recorder: ContextVar[AttentionRecorder | None] = ContextVar("heedful_recorder", default=None)
"""The recorder of this thread: the edits of one thread never affect another."""
