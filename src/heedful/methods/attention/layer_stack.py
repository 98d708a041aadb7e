"""What methods over several layers share: one matrix per layer, and the row under audit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float
from torch import Tensor

from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.values import Explanation
from heedful.methods.base import explanation_from_scores
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import HasLayers

HeadReduction = Literal["mean", "max", "min"]
RowNormalisation = Literal["none", "row"]  # "row": divide the rows of a layer by their sums


@dataclass(frozen=True, eq=False)
class LayerStack:
    """One matrix per layer: self-attention, the decoder's self-attention, and cross-attention.

    A model with one stack of layers has only the first.
    """

    encoder_layers: tuple[Float[Tensor, "B K K"], ...]
    decoder: tuple[Float[Tensor, "B Q Q"], ...] = ()
    across: tuple[Float[Tensor, "B Q K"], ...] = ()


def stack_layers(
    context: BatchContext, method: str, *, heads: HeadReduction = "mean", start: int = 0
) -> LayerStack:
    """The attention of every layer from `start` on, with heads reduced."""
    require_layers(context, method)
    forward = context.forward
    if not forward.decoder_maps:
        require_start(start, len(forward.maps))
        return LayerStack(tuple(reduce_heads(weights, heads) for weights in forward.maps[start:]))
    if start:
        raise NotApplicable(
            f"{method} of an encoder–decoder uses all layers; start_layer cannot be set."
        )
    stacks = forward.encoder_maps, forward.decoder_maps, forward.maps
    return LayerStack(*(tuple(reduce_heads(one, heads) for one in maps) for maps in stacks))


def require_start(start: int, layers: int) -> None:
    """Raise ConfigError for a first layer that the model does not have."""
    if not 0 <= start < layers:
        raise ConfigError(f"start_layer must lie between 0 and {layers - 1}, not {start}.")


def require_layers(context: BatchContext, method: str) -> HasLayers:
    """The subject, which must have layers of attention that can be combined."""
    if not isinstance(context.subject, HasLayers) or not context.forward.maps:
        raise NotApplicable(
            f"{method} combines the attention of several layers; this model has one attention."
        )
    return context.subject


def layer_and_head(
    maps: Sequence[Float[Tensor, "B H Q K"]], layer: int | None, head: int | None
) -> tuple[int, int | None]:
    """The index of a layer, by default the last, and of a head if one is chosen."""
    index = _require_index("layer", -1 if layer is None else layer, len(maps))
    return index, None if head is None else _require_index("head", head, maps[index].shape[1])


def _require_index(name: str, number: int, count: int) -> int:
    if not -count <= number < count:
        raise ConfigError(f"{name} must lie between {-count} and {count - 1}, not {number}.")
    return number % count


def reduce_heads(
    weights: Float[Tensor, "B H Q K"], heads: HeadReduction, *, head: int | None = None
) -> Float[Tensor, "B Q K"]:
    """Reduce the heads of a layer to one map, or take the map of one head."""
    if head is not None:
        return weights[:, head]
    return weights.mean(1) if heads == "mean" else getattr(weights, f"a{heads}")(1)


def read_row(
    context: BatchContext, method: str, matrix: Float[Tensor, "B Q K"]
) -> Float[Tensor, "B K"]:
    """The row of the position under audit."""
    return require_layers(context, method).row_at_position(context.batch, matrix)


def explanation_from_row(
    method: str, context: BatchContext, matrix: Float[Tensor, "B Q K"]
) -> Explanation:
    """The row of the position under audit as scores of words."""
    row = read_row(context, method, matrix)
    return explanation_from_scores(method, context, row.to(context.forward.logits.dtype))
