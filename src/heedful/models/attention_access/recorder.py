"""Record the attention of a patched model, and edit it: other weights, whole or by rows."""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import count

from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.errors import AttentionUnavailable
from heedful.models.attention_access.scope import Scope
from heedful.numerics.tensor.attention_maps import place_rows


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
            self.calls.append(replace(call, weights=new) if isinstance(new, Tensor) else call)
        return new


active_recorder: ContextVar[AttentionRecorder | None] = ContextVar("heedful_recorder", default=None)
"""The recorder of this thread: the edits of one thread never affect another."""


@dataclass(frozen=True, eq=False)
class RowPlacement:
    """Where the rows of a batch go: which attention calls, which layers and which position.

    If `position` is None, rows are those of all positions in order.
    """

    batch: Batch
    is_audited: Callable[[AttentionCall], bool]
    scope: Scope
    position: Int[Tensor, "B"] | None

    def repeat_texts(self, times: int) -> "RowPlacement":
        """The same rows of the whole batch, `times` times in a row."""
        where = None if self.position is None else self.position.repeat(times)
        return replace(self, batch=self.batch.repeat_texts(times), position=where)

    def edit(self, rows: Float[Tensor, "B R T"]) -> Edit:
        """An edit that writes the rows into the layers, in the order of the layers."""
        layers, used = count(), 0

        def place(call: AttentionCall) -> Tensor | None:
            nonlocal used
            if not self.is_audited(call) or not self.scope.includes_layer(next(layers)):
                return None
            rows_here = call.weights.shape[1] if self.scope.head is None else 1
            rows_here *= call.weights.shape[2] if self.position is None else 1
            here = rows[:, used : used + rows_here].to(call.weights)
            used += rows_here
            return place_rows(
                call.weights, here, self.batch.present, self.position, head=self.scope.head
            )

        return place


def detach_as_leaf(call: AttentionCall) -> Tensor | None:
    """An edit that makes weights that depend on no leaf a leaf, to take gradients at them.

    An example is the first self-attention of a frozen decoder over its prefix.
    """
    return None if call.weights.requires_grad else call.weights.detach().requires_grad_()


def freeze_attention(call: AttentionCall) -> Tensor:
    """An edit that makes attention constant."""
    return call.weights.detach()
