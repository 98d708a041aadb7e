"""The attended state of a text: its states, weighted by attention."""

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from heedful.core.batch import Batch
from heedful.core.values import Forward
from heedful.models.protocols import Subject


def compute_attended_state(
    subject: Subject, batch: Batch, embedded: Float[Tensor, "B T E"] | None = None
) -> Float64[Tensor, "B D"]:
    """The attended state of each text, by a forward pass."""
    return attended_state(batch, subject.forward(batch, embedded))


def attended_state(batch: Batch, forward: Forward) -> Float64[Tensor, "B D"]:
    """Σ_t α_t h_t over the words of each text."""
    weights = forward.attention.masked_fill(~batch.mask, 0.0)
    return torch.einsum("bt,btd->bd", weights, forward.states).double().cpu()
