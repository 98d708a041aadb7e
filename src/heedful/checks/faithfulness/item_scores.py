"""The scores that methods give the items of a batch."""

from collections.abc import Sequence

import torch
from jaxtyping import Float64
from torch import Tensor

from heedful.checks.faithfulness.items import ItemView
from heedful.checks.requested_methods import (
    MethodOrName,
    build_method,
    method_name,
    registry_order,
    score_with_method,
)
from heedful.core.rng import uniform_keys
from heedful.methods.base import ready_methods

CONTROLS = ("uniform", "random")  # always measured, whether requested or not
DEFAULT_METHODS = ("attention", "input_x_gradient", "one_hot_gradient", "leave_one_out")


def methods_without_controls() -> tuple[str, ...]:
    """What "all" stands for: every method except the controls."""
    return tuple(name for name in ready_methods() if name not in CONTROLS)


def with_attention(asked: Sequence[MethodOrName]) -> tuple[MethodOrName, ...]:
    """Attention and the requested methods, without the controls."""
    chosen = registry_order(("attention", *asked), methods_without_controls)
    return tuple(one for one in chosen if method_name(one) not in CONTROLS)


def score_items(
    items: ItemView, asked: Sequence[MethodOrName], target: Tensor
) -> tuple[list[Float64[Tensor, "B I"]], dict[str, str]]:
    """Scores by every method, and by method the reason why it has none for some text (NaN)."""
    rows, reasons = [], dict[str, str]()
    for one in asked:
        scores, reason = score_with_method(build_method(one), items.context, target)
        rows.append(items.joined(scores.cpu(), build_method(one).join))
        if reason is not None:
            reasons[method_name(one)] = reason
    return rows, reasons


def random_scores(items: ItemView, purpose: str, *, draws: int) -> Float64[Tensor, "R B I"]:
    """Random scores; 0 where a text has no item."""
    keys = uniform_keys(
        items.context.seed,
        purpose,
        items.context.batch.instances,
        draws=draws,
        lengths=items.counts.tolist(),
    )
    drawn = torch.from_numpy(keys).transpose(0, 1)[..., : items.real.shape[1]]
    return drawn.masked_fill(~items.real, 0.0)
