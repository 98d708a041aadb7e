"""The Intervention protocol: other attentions over the same states."""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.core.registry import Registry
from heedful.models.batch_context import BatchContext

interventions = Registry("intervention")


@runtime_checkable
class Intervention(Protocol):
    """Gives K alternatives to the attention rows of each text; states stay as they are.

    Where a subject has many rows (of heads, say), weight on special tokens stays where it is. What
    the alternatives do to the output is always found by decoding them.
    """

    def __call__(self, context: BatchContext) -> Float[Tensor, "K B *R T"]: ...


def replace_texts(
    chosen: Bool[Tensor, "B"], rows: Float[Tensor, "B *R T"], others: Float[Tensor, "B *R T"]
) -> Float[Tensor, "B *R T"]:
    """The rows for the chosen texts, the others elsewhere."""
    return torch.where(chosen.reshape(-1, *[1] * (rows.dim() - 1)), rows, others)
