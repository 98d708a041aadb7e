"""Encoders that mix words before attention, and paths around it.

What a word adds to the logits does not depend on where attention finds it (`composed_model`), so
the order of influence is that of the amounts. Attention is right where mixing is mild, and wrong
where the states that it reads hold other words than their own.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.planted.influence.composed_model import (
    CONTRAST,
    TWO_CLASSES,
    Columns,
    ReadAround,
    ReadTextSum,
    TextPlan,
    collect_evidence,
    compose_model,
    draw_roles,
    text_drawer,
    weigh_in_order,
    weigh_neutral,
)
from heedful.planted.influence.kind import InfluenceSetting, PlantedModel, influence_kind

EMPTY_STATE = 0.02  # weight of a state that holds no word
MOST_SPREAD = 0.24  # e·M/m of mild-spread


@dataclass(frozen=True)
class ReadSpread:
    """A share of each word's weight and evidence is in the states of its neighbours, half in each.

    What has no neighbour stays.
    """

    share: float

    def __call__(
        self,
        log_weights: Float[Tensor, "B T"],
        evidence: Float[Tensor, "B T C"],
        mask: Bool[Tensor, "B T"],
    ) -> Columns:
        weights = log_weights.exp() * mask
        both = torch.cat([weights[..., None], evidence * mask[..., None]], dim=-1)
        after, before = _shift(both, 1) * mask[..., None], _shift(both, -1)
        near = _shift(mask[..., None], 1).to(both) + _shift(mask[..., None], -1).to(both)
        spread = (1.0 - 0.5 * self.share * near) * both + 0.5 * self.share * (after + before)
        return collect_evidence(spread[..., 0], spread[..., 1:], mask)


@dataclass(frozen=True)
class ReadPrevious:
    """A state holds the weight and evidence of the word before it; the last also holds its own."""

    def __call__(
        self,
        log_weights: Float[Tensor, "B T"],
        evidence: Float[Tensor, "B T C"],
        mask: Bool[Tensor, "B T"],
    ) -> Columns:
        weights = log_weights.exp() * mask
        both = torch.cat([weights[..., None], evidence * mask[..., None]], dim=-1)
        last = mask[..., None] & ~_shift(mask[..., None], -1)
        held = _shift(both, 1) * mask[..., None] + both * last
        return collect_evidence(held[..., 0] + EMPTY_STATE, held[..., 1:], mask)


@dataclass(frozen=True)
class ReadRunningSum:
    """A state holds the sum up to its word; scores rise by `step` from each word to the next."""

    step: float

    def __call__(
        self,
        log_weights: Float[Tensor, "B T"],  # noqa: ARG002
        evidence: Float[Tensor, "B T C"],
        mask: Bool[Tensor, "B T"],
    ) -> Columns:
        sums = (evidence * mask[..., None]).cumsum(1)
        scores = self.step * (mask.to(evidence).cumsum(-1) - 1.0)
        return scores, sums, torch.zeros_like(evidence)


def _shift(values: Tensor, by: int) -> Tensor:
    """Values moved by one position, later for 1 and earlier for −1."""
    padded = torch.nn.functional.pad(values, (0, 0, 1, 1))
    return padded[:, :-2] if by == 1 else padded[:, 2:]


@influence_kind("encoders-mild-spread", "encoders", used=True, ranks=True)
def mild_spread(setting: InfluenceSetting) -> PlantedModel:
    """Neighbours hold a share e of each word, at most 0.1; weights rise with the amounts.

    Ranks: logits are sums of evidence. Let m be the least weight of the words that matter, M the
    largest, and e·M/m ≤ 0.24. A state has (1 − e) of its word's weight, and at most e·M of its
    neighbours'. Weights of two tiers differ by 0.33·m or more, and 0.33·(1 − e) > 0.24. Neutral
    words have 0.5·m at most, so that their states stay below (1 − e)·m.
    Used: the last state holds neutral words only, since those that matter are in the first 60 %.
    """
    roles = draw_roles(setting, TWO_CLASSES)
    log_weights = weigh_in_order(setting, roles)
    matter = log_weights[~roles.neutral]
    ratio = float(np.exp(matter.max() - matter.min()))
    share = setting.draw("spread").uniform(0.5, 1.0) * MOST_SPREAD / ratio
    model = compose_model(setting, roles, log_weights, ReadSpread(share))
    return PlantedModel(model, text_drawer(roles, TextPlan(until=0.6)))


@influence_kind("encoders-part-around", "encoders", used=True, ranks=True)
def part_around(setting: InfluenceSetting) -> PlantedModel:
    """A share of 0.05 to 0.15 of the evidence by-passes attention, which reads the rest.

    Ranks: a word of amount d moves the logit by d, on both paths together; weights rise with the
    amounts, and words of other tiers than the last are all for one class.
    Used: without weight on words that matter z falls to nearly 0.15 of its value.
    """
    roles = draw_roles(setting, CONTRAST)
    share = setting.draw("share").uniform(0.05, 0.15)
    model = compose_model(setting, roles, weigh_in_order(setting, roles), ReadAround(share))
    return PlantedModel(model, text_drawer(roles, TextPlan(contrast=True)))


@influence_kind("encoders-previous-word", "encoders", used=True, ranks=False)
def previous_word(setting: InfluenceSetting) -> PlantedModel:
    """A state holds the word before it, so that attention is on the words after those that matter.

    Ranks: a word of amount d moves the logit by d. No two words that matter are neighbours, and
    none is the last: the state after each of them is that of a neutral word and has its weight,
    while its own has the weight of the neutral word before.
    Used: away from the states after words that matter the output is nearly even.
    """
    roles = draw_roles(setting, TWO_CLASSES)
    model = compose_model(setting, roles, weigh_in_order(setting, roles), ReadPrevious())
    return PlantedModel(model, text_drawer(roles, TextPlan(until=0.99, apart=True)))


@influence_kind("encoders-running-sum", "encoders", used=True, ranks=False)
def running_sum(setting: InfluenceSetting) -> PlantedModel:
    """States hold the sum up to their word, as in a recurrent network; attention is on the last.

    Weights fall by a factor of exp(4.5) to exp(5.5) from each word to the one before it.
    Ranks: the last state has at least 98.9 % of the weight, so a word of amount d moves the
    logit by 0.989·d to d, and what follows it by 0.011·d at most, wherever it is. Weights follow
    the position, and words that matter are in the first three quarters of a text, not first.
    Used: the first state holds a neutral word only.
    """
    roles = draw_roles(setting, TWO_CLASSES)
    step = setting.draw("step").uniform(4.5, 5.5)
    read = ReadRunningSum(step)
    model = compose_model(setting, roles, weigh_in_order(setting, roles), read)
    return PlantedModel(model, text_drawer(roles, TextPlan(since=0.01, until=0.75)))


@influence_kind("encoders-text-sum", "encoders", used=False, ranks=True)
def text_sum(setting: InfluenceSetting) -> PlantedModel:
    """Every state holds the sum over the text; weights rise with the amounts, and are inert.

    Ranks: a word of amount d moves the logit by d.
    Used: Σα·Σe = Σe for all weights α.
    """
    roles = draw_roles(setting, TWO_CLASSES)
    model = compose_model(setting, roles, weigh_in_order(setting, roles), ReadTextSum())
    return PlantedModel(model, text_drawer(roles))


@influence_kind("encoders-around", "encoders", used=False, ranks=False)
def around(setting: InfluenceSetting) -> PlantedModel:
    """All evidence by-passes attention, which is on neutral words and has no effect.

    Ranks: a word of amount d moves the logit by d; its weight is below that of most others.
    Used: nothing of the attended states reaches the output.
    """
    roles = draw_roles(setting, TWO_CLASSES)
    model = compose_model(setting, roles, weigh_neutral(setting, roles), ReadAround())
    return PlantedModel(model, text_drawer(roles))
