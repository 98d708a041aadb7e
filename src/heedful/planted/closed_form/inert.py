"""Kinds whose attention does nothing, or next to nothing: the answer reaches the output anyway."""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.planted.closed_form.base import PlantedSubject, Setting, WordNumbers, register_kind
from heedful.planted.closed_form.composed_subject import (
    compose_subject,
    read_text_sum,
    sum_over_text,
)
from heedful.planted.hand_built import CUE_WORDS


@register_kind("inert-random", used=False, ranks=False, exclusive=False)
def inert_random(setting: Setting) -> PlantedSubject:
    """Every state says Σu, the same at all positions; scores are drawn without looking at u.

    Used: Σα·Σu = Σu, whatever the weights. Exclusive: any attention gives the same output.
    Ranks: deleting word t moves z by uₜ, and scores are independent of u.
    Difficulty is how decided attention looks: scores have a deviation of 0.5, 1.5 or 3.
    """
    adds = setting.normal(0.4 / setting.growth)
    return PlantedSubject(
        compose_subject(setting, read_text_sum, setting.normal(setting.pick(0.5, 1.5, 3.0)), adds)
    )


@register_kind("inert-proportional", used=False, ranks=True, exclusive=False)
def inert_proportional(setting: Setting) -> PlantedSubject:
    """Every state says Σu, the same at all positions; weights are |u| times a noise.

    Used, exclusive: as inert-random.
    Ranks: deleting word t moves z by uₜ. The noise is a factor between exp(−ν) and exp(ν), so two
    words whose weights differ by more than exp(2ν) are ordered as their weights are; ν is 0, 0.15
    or 0.3 by difficulty, and |u| spans a factor of 20.
    """
    size = np.exp(setting.even(np.log(0.05), 0.0))
    noise = setting.even(-1.0, 1.0) * setting.pick(0.0, 0.15, 0.3)
    adds = size * setting.signs() / setting.growth
    return PlantedSubject(compose_subject(setting, read_text_sum, np.log(size) + noise, adds))


@register_kind("leaky", used=False, ranks=False, exclusive=False)
def leaky(setting: Setting) -> PlantedSubject:
    """Every state already holds the answer W = Σu, which one decisive word makes; loudness varies.

    State t says (1 + eₜ)·W with |e| ≤ η, which is 0, 0.02 or 0.04 by difficulty; scores are drawn
    without looking at u.
    Used: two attentions differ by 2·η·|W| in z, so by 2·η·max z·σ′(z) = 0.45·η < 0.02 in
    probability. Exclusive: all attentions give that output.
    Ranks: deleting word t moves z by (1 ± η)·uₜ, up to 2·η·|W|·αₜ; scores are independent of u.
    """
    adds = setting.even(-0.3, 0.3) / setting.growth
    adds[:CUE_WORDS] = 2.0 * setting.signs()[:CUE_WORDS]
    loudness = 1.0 + setting.even(-1.0, 1.0) * setting.pick(0.0, 0.02, 0.04)
    return PlantedSubject(
        compose_subject(setting, _read_leaky, setting.normal(1.5), adds, loudness), CUE_WORDS
    )


@register_kind("routed", used=False, ranks=False, exclusive=False)
def routed(setting: Setting) -> PlantedSubject:
    """Σu passes attention by on a path of its own; attention feeds Σα·s with |s| ≤ f.

    f is 0.01, 0.02 or 0.04 by difficulty, drawn without looking at u, as are the scores.
    Used: two attentions differ by 2·f in z, so by f/2 ≤ 0.02 in probability. Exclusive: all
    attentions give that output.
    Ranks: deleting word t moves z by uₜ, up to 2·f·αₜ/(1 − αₜ); scores are independent of u.
    """
    adds = setting.normal(0.4 / setting.growth)
    return PlantedSubject(
        compose_subject(
            setting, _read_bypass, setting.normal(1.5), draw_attention_effect(setting), adds
        )
    )


def draw_attention_effect(setting: Setting) -> WordNumbers:
    """What idle attention still feeds: at most 0.01, 0.02 or 0.04 log-odds, by difficulty."""
    return setting.even(-1.0, 1.0) * setting.pick(0.01, 0.02, 0.04)


def _read_leaky(
    vectors: Float[Tensor, "B T 3"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T 2"]:
    score, adds, loudness = vectors.unbind(-1)
    return torch.stack([score, loudness * sum_over_text(adds, mask)], dim=-1)


def _read_bypass(
    vectors: Float[Tensor, "B T 3"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T 3"]:
    score, says, adds = vectors.unbind(-1)
    return torch.stack([score, says, sum_over_text(adds, mask)], dim=-1)
