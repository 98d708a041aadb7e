"""Transformers with several heads; attention is the mean of their rows at [CLS].

All are BERT models of one or two layers with hand-set weights (`wired_transformer`). Heads whose
values are all zero or cancel have no effect on the output, but count in the mean.
"""

import numpy as np

from heedful.planted.influence.composed_model import (
    TWO_CLASSES,
    TextPlan,
    WordNumbers,
    WordRoles,
    draw_roles,
    text_drawer,
)
from heedful.planted.influence.kind import InfluenceSetting, PlantedModel, influence_kind
from heedful.planted.influence.wired_transformer import (
    WiredHead,
    draw_sink_weights,
    signed_values,
    values_for_amounts,
    wire_transformer,
)
from heedful.planted.texts import VOCABULARY_SIZE

HEADS = 4
INERT_VALUE = 0.002


def _plant(setting: InfluenceSetting, roles: WordRoles, *layers: list[WiredHead]) -> PlantedModel:
    plan = TextPlan(matter=(2, 5))
    return PlantedModel(wire_transformer(setting, layers), text_drawer(roles, plan))


def _draw_decoy_weights(
    setting: InfluenceSetting, roles: WordRoles, *, purpose: str
) -> WordNumbers:
    """High for neutral words, from 0.3 to 1; low for words that matter, from 0.001 to 0.01."""
    draw = setting.draw(purpose)
    high = draw.uniform(0.3, 1.0, VOCABULARY_SIZE)
    return np.where(roles.neutral, high, draw.uniform(0.001, 0.01, VOCABULARY_SIZE))


@influence_kind("heads-agree", "heads", used=True, ranks=True, architecture="transformer")
def agree(setting: InfluenceSetting) -> PlantedModel:
    """Four heads, each with weights in the order of the tiers, and values of the same sign.

    Scales of the weights are between 0.15 and 1, so that special tokens hold from half to nearly
    all weight of a head, and words with a value have the same in all texts of a class.
    Ranks: in each head adding a word moves z by ω·(v − z)/(D + ω), which grows with ω. So does
    the sum over heads; and the mean of weights that are each in order is in order.
    Used: without weight on words that matter z is 0.
    """
    roles = draw_roles(setting, TWO_CLASSES)
    scales = setting.draw("scales").uniform(0.15, 1.0, HEADS)
    heads = []
    for scale in scales.tolist():
        drawn = draw_sink_weights(setting, roles, scale=scale)
        heads.append(WiredHead(drawn.weights, signed_values(roles, drawn.value / HEADS)))
    return _plant(setting, roles, heads)


@influence_kind("heads-one-informative", "heads", used=True, ranks=True, architecture="transformer")
def one_informative(setting: InfluenceSetting) -> PlantedModel:
    """One head has weights in the order of the tiers; three have little and random weight on words.

    Ranks: only the first head has values: ω·(v − z)/(D + ω) grows with ω. Its weights of two
    tiers differ by 0.055/D, and those of the third tier exceed those of neutral words by 0.1/D,
    where D ≤ 1 + 5·0.36 + 60·0.02 = 4; each of the others gives a word 0.004 at most.
    Used: without weight on words that matter z is 0.
    """
    roles = draw_roles(setting, TWO_CLASSES)
    drawn = draw_sink_weights(setting, roles)
    heads = [WiredHead(drawn.weights, signed_values(roles, drawn.value))]
    for number in range(1, HEADS):
        noise = setting.draw(f"noise of head {number}").uniform(0.0005, 0.004, VOCABULARY_SIZE)
        heads.append(WiredHead(noise, np.zeros(VOCABULARY_SIZE)))
    return _plant(setting, roles, heads)


@influence_kind("heads-drowned", "heads", used=True, ranks=False, architecture="transformer")
def drowned(setting: InfluenceSetting) -> PlantedModel:
    """One head is right, with nearly all weight on special tokens; three are on neutral words.

    Ranks: only the first head has values, ω·(v − z)/(D + ω) grows with ω, and its weights ω are
    0.36/L at most, where L is the largest number of words. In the others neutral words have at
    least 0.3 and words that matter at most 0.01, of Ω + Σω ≤ 1 + L. So all neutral words are
    above all that matter.
    Used: the first head alone moves z; without weight on words that matter z is 0.
    """
    roles = draw_roles(setting, TWO_CLASSES)
    longest = setting.length + setting.length // 2
    drawn = draw_sink_weights(setting, roles, scale=1.0 / longest)
    heads = [WiredHead(drawn.weights, signed_values(roles, drawn.value))]
    for number in range(1, HEADS):
        weights = _draw_decoy_weights(setting, roles, purpose=f"head {number}")
        heads.append(WiredHead(weights, np.zeros(VOCABULARY_SIZE)))
    return _plant(setting, roles, heads)


@influence_kind("heads-cancel", "heads", used=True, ranks=False, architecture="transformer")
def cancel(setting: InfluenceSetting) -> PlantedModel:
    """Two heads have the same weights on neutral words, and values that cancel.

    A third is right, with nearly all weight on special tokens, as in heads-drowned.
    Ranks: the first two add Σω·v/D − Σω·v/D = 0 for every set of words; the third orders words by
    ω·(v − z)/(D + ω). Neutral words are above all that matter, as in heads-drowned.
    Used: other weights of the third head move z.
    """
    roles = draw_roles(setting, TWO_CLASSES)
    longest = setting.length + setting.length // 2
    drawn = draw_sink_weights(setting, roles, scale=1.0 / longest)
    weights = _draw_decoy_weights(setting, roles, purpose="heads that cancel")
    values = setting.draw("values that cancel").normal(0.0, 2.0, VOCABULARY_SIZE)
    heads = [WiredHead(weights, values), WiredHead(weights, -values)]
    return _plant(
        setting, roles, [*heads, WiredHead(drawn.weights, signed_values(roles, drawn.value))]
    )


@influence_kind("heads-inert", "heads", used=False, ranks=False, architecture="transformer")
def inert(setting: InfluenceSetting) -> PlantedModel:
    """The first layer decides; the heads of the last are on neutral words, with values near zero.

    Ranks: the first layer orders words by ω·(v − z)/(D + ω). In every head of the last layer
    neutral words are above those that matter.
    Used: values of the last layer are at most 0.002, so that four heads move z by 0.016.
    """
    roles = draw_roles(setting, TWO_CLASSES)
    weights = [_draw_decoy_weights(setting, roles, purpose=f"head {n}") for n in range(HEADS)]
    return _plant(setting, roles, _deciding_layer(setting, roles), _inert_layer(setting, weights))


@influence_kind("heads-inert-in-order", "heads", used=False, ranks=True, architecture="transformer")
def inert_in_order(setting: InfluenceSetting) -> PlantedModel:
    """The first layer decides; the last repeats its weights, with values near zero.

    Ranks: the first layer orders words by ω·(v − z)/(D + ω), and so do the weights ω of the last.
    Used: as heads-inert.
    """
    roles = draw_roles(setting, TWO_CLASSES)
    scales = setting.draw("scales").uniform(0.3, 1.0, HEADS).tolist()
    weights = [draw_sink_weights(setting, roles, scale=scale).weights for scale in scales]
    return _plant(setting, roles, _deciding_layer(setting, roles), _inert_layer(setting, weights))


@influence_kind("heads-reversed", "heads", used=True, ranks=False, architecture="transformer")
def reversed_heads(setting: InfluenceSetting) -> PlantedModel:
    """Four heads that have most weight on neutral words, and least on the strongest.

    Ranks: each head moves z by (d − ω·z)/(D + ω) for a word of amount 4·d and weight ω, which is
    0.003/L at most: the order is that of amounts. Weights of words that matter fall with their
    amounts, and all neutral words have more.
    Used: values of words that matter are large: all of the words' weight on one moves z far.
    """
    roles = draw_roles(setting, TWO_CLASSES)
    longest = setting.length + setting.length // 2
    heads = []
    for number in range(HEADS):
        draw = setting.draw(f"head {number}")
        light = np.array([0.001, 0.0017, 0.0028, 0.0])[roles.tiers]
        heavy = draw.uniform(0.1, 0.6, VOCABULARY_SIZE)
        jitter = draw.uniform(0.9, 1.1, VOCABULARY_SIZE)
        weights = np.where(roles.neutral, heavy, light * jitter) / longest
        heads.append(WiredHead(weights, values_for_amounts(roles, weights * HEADS)))
    return _plant(setting, roles, heads)


def _deciding_layer(setting: InfluenceSetting, roles: WordRoles) -> list[WiredHead]:
    """Four heads with the same weights."""
    drawn = draw_sink_weights(setting, roles, scale=setting.draw("scale").uniform(0.3, 1.0))
    values = signed_values(roles, drawn.value / HEADS)
    return [WiredHead(drawn.weights, values) for _ in range(HEADS)]


def _inert_layer(setting: InfluenceSetting, weights: list[WordNumbers]) -> list[WiredHead]:
    draw = setting.draw("inert values")
    return [
        WiredHead(one, draw.uniform(-INERT_VALUE, INERT_VALUE, VOCABULARY_SIZE)) for one in weights
    ]
