"""Edits that put rows of weights where they belong: under audit, or elsewhere."""

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
    """Rows that are not under audit: of every head of a layer, of one position in each text."""

    layer: int
    position: Int[Tensor, "B"]


@dataclass(frozen=True, eq=False)
class RowPlacement:
    """Where the rows of a batch belong: which calls, of them which layers, there which position.

    Without a position the rows are those of all positions, one after the other.
    """

    batch: Batch
    audited: Callable[[AttentionCall], bool]
    scope: Scope
    position: Int[Tensor, "B"] | None

    def edit(self, rows: Float[Tensor, "B R T"]) -> Edit:
        """An edit that gives each layer its share of the rows, in the order of the layers."""
        layers, given = count(), 0

        def place(call: AttentionCall) -> Tensor | None:
            nonlocal given
            if not self.audited(call) or not self.scope.holds(next(layers)):
                return None
            many = call.weights.shape[1] if self.scope.head is None else 1
            many *= call.weights.shape[2] if self.position is None else 1
            here = rows[:, given : given + many].to(call.weights)
            given += many
            return place_rows(
                call.weights, here, self.batch.present, self.position, head=self.scope.head
            )

        return place


def place_frozen(call: AttentionCall, place: Edit) -> Tensor:
    """The weights an edit places, or the model's own, as constants."""
    placed = place(call)
    return call.weights.detach() if not isinstance(placed, Tensor) else placed.detach()


def detach_as_leaf(call: AttentionCall) -> Tensor | None:
    """Weights that nothing before them can move, so that gradients can be taken there too.

    In a frozen encoder–decoder the first attention over what is written so far is such a one.
    """
    return None if call.weights.requires_grad else call.weights.detach().requires_grad_()


def is_cross_attention(module: str) -> bool:
    """Whether a module's name is that of attention from a decoder to its encoder."""
    return any(
        part in module
        for part in ("encoder_attn", "EncDecAttention", "crossattention", "cross_attn")
    )
