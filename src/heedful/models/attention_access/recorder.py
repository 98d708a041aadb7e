"""What is heard of a model's attention while its seam is open, and what is put in its place."""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.errors import AttentionUnavailable


@dataclass(frozen=True, slots=True, eq=False)
class AttentionCall:
    """One attention computed: whose, as which of the pass, and what it is if left alone.

    `values` are the vectors each head mixes, None where only the softmax could be seen; `entered`
    is then what went into the module.
    """

    module: str
    order: int
    weights: Float[Tensor, "B H Q K"]
    values: Float[Tensor, "B H K D"] | None
    entered: Float[Tensor, "..."] | None = None

    @property
    def states(self) -> Float[Tensor, "..."] | None:
        """The vectors attended to, one per key: the values of all heads, or what entered."""
        return self.entered if self.values is None else self.values.transpose(1, 2).flatten(2)


@dataclass(frozen=True, slots=True, eq=False)
class HeadOutput:
    """What the heads give out, said outright: Σ weights · values of another pass, say."""

    output: Float[Tensor, "B H Q D"]


Edit = Callable[[AttentionCall], Tensor | HeadOutput | None]
"""Returns the weights to go on with, the heads' output itself, or None to leave all as it is."""


@dataclass(eq=False)
class AttentionRecorder:
    """Every attention of a pass, in order, and the edit that is put to each."""

    names: Mapping[int, str]
    edit: Edit | None = None
    keep: bool = True
    count: int = 0
    calls: list[AttentionCall] = field(default_factory=list)

    def record(
        self,
        module: nn.Module,
        weights: Tensor,
        values: Tensor | None = None,
        entered: Tensor | None = None,
    ) -> Tensor | HeadOutput | None:
        """Note a call; what shall take the place of its own weights, if anything."""
        name = self.names.get(id(module), type(module).__name__)
        call = AttentionCall(name, self.count, weights, values, entered)
        self.count += 1
        new = None if self.edit is None else self.edit(call)
        if isinstance(new, Tensor) and new.shape != weights.shape:
            raise AttentionUnavailable(
                f"An edit gave weights of shape {tuple(new.shape)} to {name}, which attends with "
                f"{tuple(weights.shape)}."
            )
        if self.keep:
            shown = new if isinstance(new, Tensor) else weights
            self.calls.append(AttentionCall(name, call.order, shown, values, entered))
        return new


active_recorder: ContextVar[AttentionRecorder | None] = ContextVar("heedful_hearing", default=None)
"""The hearing of this thread: an edit set by one is never heard by another."""
