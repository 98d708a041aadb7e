"""Change of explanations under small changes of the word vectors (Yeh et al., 2019)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float64
from torch import Tensor

from heedful.checks.base import to_measurement
from heedful.checks.draws import draw_for_elements
from heedful.checks.faithfulness.items import ItemView
from heedful.checks.requested_methods import (
    MethodOrName,
    build_method,
    method_name,
    score_with_method,
)
from heedful.core.records import Measurement, Series
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.perturbed_embeddings import PerturbedSubject

SENSITIVITY = "sensitivity"


def measure_sensitivity(
    items: ItemView,
    methods: Sequence[MethodOrName],
    scores: Float64[Tensor, "K B I"],
    *,
    radius: float,
    draws: int,
) -> tuple[list[Measurement], dict[Series, str]]:
    """max over draws of ‖φ(x + δ) − φ(x)‖ / ‖φ(x)‖ by method, and why some have no value."""
    context = items.context
    farthest = torch.zeros(scores.shape[:2], dtype=torch.float64)
    refused: dict[Series, str] = {}
    for draw in range(draws):
        moved = _perturb_vectors(context, radius, draw)
        for row, one in enumerate(methods):
            method = build_method(one)
            found, reason = score_with_method(method, moved, context.predicted)
            if reason is not None:
                refused.setdefault(Series(SENSITIVITY, method_name(one)), reason)
            joined = items.joined(found.cpu(), method.join)
            farthest[row] = torch.maximum(farthest[row], relative_change(joined, scores[row]))
    measured = [
        to_measurement(SENSITIVITY, farthest[row], method=method_name(one))
        for row, one in enumerate(methods)
    ]
    return measured, refused


def _perturb_vectors(context: BatchContext, radius: float, draw: int) -> BatchContext:
    """The batch with each element of the words' vectors moved by a random number in ± radius.

    The radius is a share of the typical element: the root mean square over the words of the text.
    Special tokens keep their vectors.
    """
    vectors, mask = context.embedded.detach(), context.batch.mask
    inside = mask[..., None].to(vectors)
    count = (inside.sum((1, 2)) * vectors.shape[-1]).clamp(min=1)
    typical = ((vectors * inside).square().sum((1, 2)) / count).sqrt()
    noise = 2 * draw_for_elements(context, f"{SENSITIVITY}, draw {draw}") - 1
    noise = noise.to(vectors) * radius * typical[:, None, None]
    moved = PerturbedSubject(context.subject, context.batch, vectors + noise * inside)
    return BatchContext(moved, context.batch, context.seed, context.max_batch_tokens, context.clock)


def relative_change(
    moved: Float64[Tensor, "B I"], before: Float64[Tensor, "B I"]
) -> Float64[Tensor, "B"]:
    """‖moved − before‖ / ‖before‖; NaN where the scores were all 0, or are missing.

    >>> relative_change(torch.tensor([[3.0, 0.0]]).double(), torch.tensor([[3.0, 4.0]]).double())
    tensor([0.8000], dtype=torch.float64)
    """
    size = before.square().sum(-1).sqrt()
    return (moved - before).square().sum(-1).sqrt() / size.masked_fill(size == 0, torch.nan)
