"""The words of a batch as the methods of a check score them."""

from collections.abc import Sequence

import torch
from jaxtyping import Float64
from torch import Tensor

from heedful.checks.faithfulness.word_removal import WordView
from heedful.checks.requested_methods import (
    MethodOrName,
    build_method,
    method_name,
    registry_order,
    score_with_method,
)
from heedful.core.rng import uniform_keys
from heedful.methods.prerequisites import ready_methods

CONTROLS = ("uniform", "random")  # always there, so never asked for
DEFAULT_METHODS = ("attention", "input_x_gradient", "one_hot_gradient", "leave_one_out")


def methods_without_controls() -> tuple[str, ...]:
    """What "all" stands for: every method that is no control."""
    return tuple(name for name in ready_methods() if name not in CONTROLS)


def with_attention(asked: Sequence[MethodOrName]) -> tuple[MethodOrName, ...]:
    """Attention and the methods asked for, without the controls."""
    chosen = registry_order(("attention", *asked), methods_without_controls)
    return tuple(one for one in chosen if method_name(one) not in CONTROLS)


def score_words(
    words: WordView, asked: Sequence[MethodOrName], target: Tensor
) -> tuple[list[Float64[Tensor, "B W"]], dict[str, str]]:
    """Every method's scores of the words, NaN where it refuses a text, and its reason by name."""
    rows, reasons = [], dict[str, str]()
    for one in asked:
        scores, reason = score_with_method(build_method(one), words.context, target)
        rows.append(words.joined(scores.cpu(), build_method(one).join))
        if reason is not None:
            reasons[method_name(one)] = reason
    return rows, reasons


def random_scores(words: WordView, purpose: str, *, draws: int) -> Float64[Tensor, "R B W"]:
    """Scores drawn at random, 0 where there is no word."""
    keys = uniform_keys(
        words.context.seed,
        purpose,
        words.context.batch.instances,
        draws=draws,
        lengths=words.counts.tolist(),
    )
    drawn = torch.from_numpy(keys).transpose(0, 1)[..., : words.real.shape[1]]
    return drawn.masked_fill(~words.real, 0.0)
