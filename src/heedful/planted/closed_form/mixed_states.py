"""Kinds whose states hold more than their own word: attention is used, and looks elsewhere."""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.planted.closed_form.base import PlantedSubject, Setting, register_kind
from heedful.planted.closed_form.composed_subject import (
    compose_subject,
    sum_neighbours,
    sum_over_text,
)
from heedful.planted.hand_built import CUE_WORDS


@register_kind("hidden", used=True, ranks=False, exclusive=None)
def hidden(setting: Setting) -> PlantedSubject:
    """What the decisive word says, ±2, is copied to its neighbours' states and missing in its own.

    It also lends its neighbours so much score that they have at least 10/11 of the weight; its own
    is lower than any other's, by a factor of exp(3), exp(1.5) or exp(0.5) and more, by difficulty.
    Every word adds up to ±0.15/√(length/20) to all states alike, drawn without looking at scores.
    Used: off the neighbours nothing but that sum is said.
    Ranks: deleting the cue takes 1.8 or more away, and its weight is the lowest of all. Deleting a
    neighbour makes the next word one. What deleting any other word moves is mostly what it adds,
    which is independent of its score: the weight it hands on is worth 2/(10·longest) at most.
    """
    scores = setting.even(-0.5, 0.5)
    scores[:CUE_WORDS] = -0.5 - setting.pick(3.0, 1.5, 0.5)
    adds = setting.even(-0.15, 0.15) / setting.growth
    lent, told = np.zeros_like(scores), np.zeros_like(scores)
    adds[:CUE_WORDS] = 0.0
    lent[:CUE_WORDS] = 1.0 + np.log(
        10.0 * setting.longest
    )  # 1: neighbours may score −0.5, others 0.5
    told[:CUE_WORDS] = 2.0 * setting.signs()[:CUE_WORDS]
    return PlantedSubject(
        compose_subject(setting, _read_neighbours, scores, adds, lent, told), CUE_WORDS
    )


@register_kind("running", used=True, ranks=False, exclusive=None)
def running(setting: Setting) -> PlantedSubject:
    """A state holds the sum of u up to its word, as a recurrent one may; attention is on the end.

    Weights fall by a factor of exp(3), exp(1.5) or exp(0.8) from each word to the one before it.
    Texts are drawn so that |z| ≤ 1.5.
    Used: at an earlier word another sum is read, and no output is too certain to move.
    Ranks: deletion takes uₜ from all states after t, so it moves z by about uₜ wherever t is, and
    by less than that at the end, where attention is; u is drawn without looking at positions.
    """
    adds = setting.normal(0.8 / setting.growth)
    steps = np.full_like(adds, setting.pick(3.0, 1.5, 0.8))
    return PlantedSubject(compose_subject(setting, _read_running_sum, steps, adds), bound=1.5)


def _read_neighbours(
    vectors: Float[Tensor, "B T 4"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T 2"]:
    score, adds, lent, told = vectors.unbind(-1)
    says = sum_neighbours(told, mask) + sum_over_text(adds, mask)
    return torch.stack([score + sum_neighbours(lent, mask), says], dim=-1)


def _read_running_sum(
    vectors: Float[Tensor, "B T 2"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T 2"]:
    step, adds = (column * mask for column in vectors.unbind(-1))
    return torch.stack([step.cumsum(-1) - step, adds.cumsum(-1)], dim=-1)
