"""A random attention at the same distance as another: a scale for the change of output."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.checks.draws import draw_for_words
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.distributions import jsd

BISECTION_STEPS = 50
TINY = 1e-30


@dataclass(frozen=True)
class RandomAtDistance:
    """The model's own attention moved towards a random word until it lies at the given JSD.

    Where all weight on that word is not far enough, it is moved on towards the least attended one.
    Every row is moved by the same share; a row that may not attend to the word stays.
    """

    draws: int = 10

    def __call__(self, context: BatchContext, far: Float[Tensor, "B"]) -> Float[Tensor, "K B *R T"]:
        """Attentions at the given distances, every row with the same share of its own weights."""
        own, mask = context.forward.attention, context.batch.mask
        drawn = draw_for_words(context, "random at distance", draws=self.draws).to(own)
        keys = drawn.transpose(0, 1).masked_fill(~mask, -1.0)
        first = _points(keys) * mask
        last = _points(-own.masked_fill(~mask, 2.0)) * mask
        share, added = _weights_at_distance(own, first, last, far)
        if context.rows.dim() == 2:
            return share * own + added
        on_words = context.rows.masked_fill(~context.attendable_words, 0.0)
        weights = on_words / context.word_mass.clamp(min=TINY)
        moved = share[:, :, None] * weights + added[:, :, None] * context.attendable_words
        total = moved.sum(-1, keepdim=True)
        moved = torch.where(total > TINY, moved / total.clamp(min=TINY), weights)
        return context.place_on_words(moved)


def _points(scores: Float[Tensor, "*K T"]) -> Float[Tensor, "*K T"]:
    """All weight on the token with the highest score."""
    return torch.zeros_like(scores).scatter(-1, scores.argmax(-1, keepdim=True), 1.0)


def _weights_at_distance(
    own: Float[Tensor, "B T"],
    first: Float[Tensor, "K B T"],
    last: Float[Tensor, "B T"],
    distance: Float[Tensor, "B"],
) -> tuple[Tensor, Tensor]:
    """Where the path own → first → last reaches the distance: the share of own, and the rest.

    Bisection finds it, because the path ends at the point farthest from own.
    """
    low, high = torch.zeros_like(first[..., :1]), torch.full_like(first[..., :1], 2.0)
    for _ in range(BISECTION_STEPS):
        middle = 0.5 * (low + high)
        share, added = _mix_points(middle, first, last)
        near = (jsd(share * own + added, own) < distance)[..., None]
        low, high = torch.where(near, middle, low), torch.where(near, high, middle)
    return _mix_points(low, first, last)


def _mix_points(
    step: Float[Tensor, "K B 1"], first: Float[Tensor, "K B T"], last: Float[Tensor, "B T"]
) -> tuple[Tensor, Tensor]:
    beyond = (step - 1).clamp(min=0.0)
    share = (1 - step).clamp(min=0.0)
    return share, (1 - share - beyond) * first + beyond * last
