"""Edits that write rows of weights into attention maps."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.batch import Batch
from heedful.models.attention_access.recorder import AttentionCall, Edit
from heedful.models.attention_access.scope import Scope
from heedful.numerics.tensor.attention_maps import place_rows


@dataclass(frozen=True, eq=False)
class RowLocation:
    """Rows outside the audited ones: every head of one layer, at one position of each text."""

    layer: int
    position: Int[Tensor, "B"]


@dataclass(frozen=True, eq=False)
class RowPlacement:
    """Where the rows of a batch go: which attention calls, which layers and which position.

    If `position` is None, rows are those of all positions in order.
    """

    batch: Batch
    is_audited: Callable[[AttentionCall], bool]
    scope: Scope
    position: Int[Tensor, "B"] | None

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


def place_frozen(call: AttentionCall, place: Edit) -> Tensor:
    """The weights an edit returns, or the model's own, detached."""
    placed = place(call)
    return call.weights.detach() if not isinstance(placed, Tensor) else placed.detach()


def detach_as_leaf(call: AttentionCall) -> Tensor | None:
    """Make weights that depend on no leaf a leaf, so that gradients can be taken at them.

    An example is the first self-attention of a frozen decoder over its prefix.
    """
    return None if call.weights.requires_grad else call.weights.detach().requires_grad_()


def is_cross_attention(module: str) -> bool:
    """Whether a module name is that of cross-attention from a decoder to its encoder."""
    return any(
        part in module
        for part in ("encoder_attn", "EncDecAttention", "crossattention", "cross_attn")
    )
