"""The words of a batch as the methods of a check score them."""

from collections.abc import Sequence

import torch
from jaxtyping import Float64
from torch import Tensor

from heedful.checks.faithfulness.word_removal import Words
from heedful.checks.requested_methods import Asked, built, in_order, name_of, scores_of
from heedful.core.rng import uniform_keys
from heedful.methods.prerequisites import ready_methods

CONTROLS = ("uniform", "random")  # always there, so never asked for
USUAL = ("attention", "input_x_gradient", "one_hot_gradient", "leave_one_out")


def every_ranking() -> tuple[str, ...]:
    """What "all" stands for: every method that is no control."""
    return tuple(name for name in ready_methods() if name not in CONTROLS)


def with_attention(asked: Sequence[Asked]) -> tuple[Asked, ...]:
    """Attention and the methods asked for, without the controls."""
    chosen = in_order(("attention", *asked), every_ranking)
    return tuple(one for one in chosen if name_of(one) not in CONTROLS)


def scores_of_words(
    words: Words, asked: Sequence[Asked], target: Tensor
) -> tuple[list[Float64[Tensor, "B W"]], dict[str, str]]:
    """Every method's scores of the words, NaN where it refuses a text, and its reason by name."""
    rows, reasons = [], dict[str, str]()
    for one in asked:
        scores, reason = scores_of(built(one), words.sitting, target)
        rows.append(words.joined(scores.cpu(), built(one).join))
        if reason is not None:
            reasons[name_of(one)] = reason
    return rows, reasons


def drawn_scores(words: Words, purpose: str, *, draws: int) -> Float64[Tensor, "R B W"]:
    """Scores drawn at random, 0 where there is no word."""
    keys = uniform_keys(
        words.sitting.seed,
        purpose,
        words.sitting.batch.instances,
        draws=draws,
        lengths=words.counts.tolist(),
    )
    drawn = torch.from_numpy(keys).transpose(0, 1)[..., : words.real.shape[1]]
    return drawn.masked_fill(~words.real, 0.0)
