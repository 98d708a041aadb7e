"""What methods over several layers share: one matrix per layer, and the row that is read."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.values import Explanation
from heedful.methods.base import explanation_from_scores
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import HasLayers

HeadReduction = Literal["mean", "max", "min"]
HEAD_REDUCTIONS: tuple[HeadReduction, ...] = ("mean", "max", "min")
RowNormalisation = Literal["none", "row"]  # rows of a layer as they are, or divided by their sums
ROW_NORMALISATIONS: tuple[RowNormalisation, ...] = ("none", "row")


@dataclass(frozen=True, eq=False)
class LayerStack:
    """A matrix per layer: within an encoder, within a decoder, and from decoder to encoder.

    A model of one stack has the first only.
    """

    within: tuple[Float[Tensor, "B K K"], ...]
    decoder: tuple[Float[Tensor, "B Q Q"], ...] = ()
    across: tuple[Float[Tensor, "B Q K"], ...] = ()


def stack_layers(
    context: BatchContext, method: str, *, heads: HeadReduction = "mean", start: int = 0
) -> LayerStack:
    """The attention of every layer from `start` on, heads taken together."""
    require_layers(context, method)
    forward = context.forward
    if not forward.decoder_maps:
        require_start(start, len(forward.maps))
        return LayerStack(tuple(reduce_heads(one, heads) for one in forward.maps[start:]))
    if start:
        raise NotApplicable(
            f"{method} of an encoder–decoder runs through all layers; start_layer cannot be set."
        )
    return LayerStack(
        tuple(reduce_heads(one, heads) for one in forward.encoder_maps),
        tuple(reduce_heads(one, heads) for one in forward.decoder_maps),
        tuple(reduce_heads(one, heads) for one in forward.maps),
    )


def require_start(start: int, layers: int) -> None:
    """Refuse a first layer that the model does not have."""
    if not 0 <= start < layers:
        raise ConfigError(f"start_layer must lie between 0 and {layers - 1}, not {start}.")


def require_layers(context: BatchContext, method: str) -> HasLayers:
    """The subject, if it has layers of attention that can be combined."""
    if not isinstance(context.subject, HasLayers) or not context.forward.maps:
        raise NotApplicable(
            f"{method} combines the attention of several layers; this model has one attention."
        )
    return context.subject


def reduce_heads(weights: Float[Tensor, "B H Q K"], heads: HeadReduction) -> Float[Tensor, "B Q K"]:
    """The heads of a layer as one map."""
    return weights.mean(1) if heads == "mean" else getattr(weights, f"a{heads}")(1)


def read_row(
    context: BatchContext, method: str, matrix: Float[Tensor, "B Q K"]
) -> Float[Tensor, "B K"]:
    """What lies behind the position under audit."""
    return require_layers(context, method).row_at_position(context.batch, matrix)


def explanation_from_row(
    method: str, context: BatchContext, matrix: Float[Tensor, "B Q K"]
) -> Explanation:
    """The same as scores of the words."""
    row = read_row(context, method, matrix)
    return explanation_from_scores(method, context, row.to(context.forward.logits.dtype))


def without_identity(matrix: Float[Tensor, "B T T"]) -> Float[Tensor, "B T T"]:
    """The matrix less the identity it was built on."""
    return matrix - torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


def require_index(name: str, number: int, count: int) -> int:
    """A layer or head counted from the front; an error where there is none."""
    if not -count <= number < count:
        raise ConfigError(f"{name} must lie between {-count} and {count - 1}, not {number}.")
    return number % count
