"""Attention layer by layer, head by head: what it holds, and whether it ranks as deletion does."""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.checks.base import to_measurement
from heedful.core.records import Measurement
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.ranking import dense_ranks, kendall


def measure_layers(context: BatchContext, leave: Float[Tensor, "B T"]) -> Iterator[Measurement]:
    """For every layer, and every head of it: τ with leave-one-out and the weight on words.

    Read at the position under audit; nothing where the subject has but one attention.
    """
    mask = context.batch.mask
    for layer, rows in enumerate(context.layer_rows):
        scores = (
            torch.cat([leave[:, None], rows.mean(1, keepdim=True), rows], dim=1) * mask[:, None]
        )
        tau = kendall(dense_ranks(scores, mask[:, None].expand_as(scores)), mask).tau[:, 0]
        mass = scores.sum(-1)
        for place, head in enumerate((None, *range(rows.shape[1])), start=1):
            where = {"layer": layer, "head": head}
            yield to_measurement("tau_leave_one_out", tau[:, place], **where)
            yield to_measurement("word_mass", mass[:, place], **where)
