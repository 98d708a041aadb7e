"""Special tokens that hold most weight, and attention by position.

Weight on special tokens says nothing about words; how weights on words compare does. With Ω the
weight of special tokens, D = Ω + Σω and values v, adding a word moves z by ω·(v − z)/(D + ω)
(`wired_transformer`). In models without special tokens, a word moves z by its amount wherever it is
(`composed_model`), unless the kind says otherwise.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.planted.influence.composed_model import (
    TWO_CLASSES,
    Columns,
    TextPlan,
    compose_model,
    draw_roles,
    text_drawer,
    weigh_in_order,
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

SLOPE = 0.1  # weights by position are between 1 + SLOPE and 1 − SLOPE
LEAD_LEVELS = ((6.0, 7.0), (4.6, 5.4), (3.4, 4.0))
LEAST_SCALE, MOST_SCALE = 0.05, 0.6


@dataclass(frozen=True)
class ReadByPosition:
    """A state holds its own word; weights fall by `ratio` from each word to the next.

    States are scaled by the sum of all weights, so that z = Σ ratioᵗ · eₜ · (1 − ratio).
    """

    ratio: float

    def __call__(
        self,
        log_weights: Float[Tensor, "B T"],  # noqa: ARG002
        evidence: Float[Tensor, "B T C"],
        mask: Bool[Tensor, "B T"],
    ) -> Columns:
        place = mask.to(evidence).cumsum(-1) - 1.0
        scores = place * float(np.log(self.ratio))
        total = (scores.exp() * mask).sum(-1)[:, None, None]
        values = (1.0 - self.ratio) * total * evidence * mask[..., None]
        return scores, values, torch.zeros_like(evidence)


@dataclass(frozen=True)
class ReadWithSlope:
    """A state holds its own word; weights fall evenly over `longest` words."""

    longest: int

    def __call__(
        self,
        log_weights: Float[Tensor, "B T"],  # noqa: ARG002
        evidence: Float[Tensor, "B T C"],
        mask: Bool[Tensor, "B T"],
    ) -> Columns:
        place = mask.to(evidence).cumsum(-1) - 1.0
        weights = 1.0 + SLOPE - 2.0 * SLOPE * place / self.longest
        total = (weights * mask).sum(-1)[:, None, None]
        return weights.log(), total * evidence * mask[..., None], torch.zeros_like(evidence)


@dataclass(frozen=True)
class ReadBackwardSum:
    """A state holds the sum from its word on; scores fall by `step` from each word to the next."""

    step: float

    def __call__(
        self,
        log_weights: Float[Tensor, "B T"],  # noqa: ARG002
        evidence: Float[Tensor, "B T C"],
        mask: Bool[Tensor, "B T"],
    ) -> Columns:
        inside = evidence * mask[..., None]
        sums = inside.flip(1).cumsum(1).flip(1)
        scores = -self.step * (mask.to(evidence).cumsum(-1) - 1.0)
        return scores, sums, torch.zeros_like(evidence)


@influence_kind("positions-sink", "positions", used=True, ranks=True, architecture="transformer")
def sink(setting: InfluenceSetting) -> PlantedModel:
    """[CLS] and [SEP] hold from a half to nearly all weight; words are in the right order.

    How they share it is drawn from the seed, and so is how much they leave to words.
    Ranks: words that matter in a text have one value, so that ω·(v − z)/(D + ω) grows with ω.
    Used: other weights on words, with their sum as it is, move z between 0 and a multiple.
    """
    roles = draw_roles(setting, TWO_CLASSES)
    draw = setting.draw("sink")
    scale = float(np.exp(draw.uniform(np.log(LEAST_SCALE), np.log(MOST_SCALE))))
    drawn = draw_sink_weights(setting, roles, scale=scale)
    values = signed_values(roles, drawn.value)
    head = WiredHead(drawn.weights, values, on_separator=draw.uniform(0.05, 0.95))
    return PlantedModel(wire_transformer(setting, [[head]]), text_drawer(roles))


@influence_kind(
    "positions-sink-words-wrong", "positions", used=True, ranks=False, architecture="transformer"
)
def sink_words_wrong(setting: InfluenceSetting) -> PlantedModel:
    """Special tokens hold most weight; of the words, neutral ones have more than those that matter.

    Ranks: weights ω of words that matter are 0.12/L at most and fall with the amounts d, where L is
    the largest number of words, so that a word moves z by (d − ω·z)/(D + ω), which grows with d.
    Neutral words have between 0.2/L and 0.6/L: all together 0.6 at most beside Ω = 1.
    Used: values of words that matter are large: all of the words' weight on one moves z far.
    """
    roles = draw_roles(setting, TWO_CLASSES)
    draw = setting.draw("sink")
    light = np.array([0.03, 0.06, 0.1, 0.0])[roles.tiers] * draw.uniform(
        0.85, 1.15, VOCABULARY_SIZE
    )
    heavy = draw.uniform(0.2, 0.6, VOCABULARY_SIZE)
    longest = setting.length + setting.length // 2
    weights = np.where(roles.neutral, heavy, light) / longest
    values = values_for_amounts(roles, weights) * 1.3
    head = WiredHead(weights, values, on_separator=draw.uniform(0.05, 0.95))
    return PlantedModel(wire_transformer(setting, [[head]]), text_drawer(roles))


@influence_kind(
    "positions-sink-decides", "positions", used=False, ranks=True, architecture="transformer"
)
def sink_decides(setting: InfluenceSetting) -> PlantedModel:
    """All words have the same value: only how much weight special tokens leave to them matters.

    Ranks: z = V·Σω/(Ω + Σω) − b; adding a word moves it by V·ω·Ω/(D·(D + ω)), which grows with ω.
    Used: other weights on the words, with their sum as it is, leave z as it is.
    """
    roles = draw_roles(setting, TWO_CLASSES)
    drawn = draw_sink_weights(setting, roles, scale=0.8)
    weights = np.where(roles.neutral, 0.0005 + drawn.weights / 20, drawn.weights)
    values = np.full(VOCABULARY_SIZE, drawn.value)
    bias = -float(setting.draw("bias").uniform(0.5, 0.6)) * 4.0
    model = wire_transformer(setting, [[WiredHead(weights, values)]], bias=bias)
    return PlantedModel(model, text_drawer(roles, TextPlan(matter=(1, 5))))


@influence_kind(
    "positions-separator-holds", "positions", used=False, ranks=False, architecture="transformer"
)
def separator_holds(setting: InfluenceSetting) -> PlantedModel:
    """The first layer writes the answer to every token; the last reads it, mostly at [SEP].

    Ranks: the first layer orders words by ω·(v − z)/(D + ω). In the last, neutral words have more
    weight than those that matter; [SEP] has from a half to nearly all.
    Used: the last layer reads the same number from all tokens.
    """
    roles = draw_roles(setting, TWO_CLASSES)
    drawn, draw = draw_sink_weights(setting, roles, scale=0.5), setting.draw("last layer")
    first = WiredHead(drawn.weights, signed_values(roles, 0.5 * drawn.value))
    longest = setting.length + setting.length // 2
    high, low = draw.uniform(0.3, 1.0, VOCABULARY_SIZE), draw.uniform(0.01, 0.2, VOCABULARY_SIZE)
    weights = np.where(roles.neutral, high, low) / longest
    last = WiredHead(weights, np.ones(VOCABULARY_SIZE), on_separator=0.97, reads_sum=True)
    return PlantedModel(wire_transformer(setting, [[first], [last]]), text_drawer(roles))


@influence_kind("positions-lead", "positions", used=True, ranks=True)
def lead(setting: InfluenceSetting) -> PlantedModel:
    """Attention falls with the position, and texts begin with what matters, strongest first.

    Weights fall by a factor ρ of 0.55 to 0.65 from each word to the next, so that the log-odds are
    (1 − ρ)·Σρᵗ·eₜ, and e falls along the words that matter, all for one class.
    Ranks: adding a word of amount v before a rest whose own z is T moves z by ρʳ(1 − ρ)(v − T), r
    the words before it. For a later word of amount v′ ≤ v with m words between and rest T′, it is
    ρʳ⁺ᵐ(1 − ρ)(v′ − T′). As T ≤ (1 − ρᵐ)·v + ρᵐ·T′, the first is at least ρʳ⁺ᵐ(1 − ρ)(v − T′).
    Words behind all that matter change nothing but each other's ±0.04.
    Used: without weight on words that matter the output is nearly even.
    """
    roles = draw_roles(setting, LEAD_LEVELS)
    ratio = setting.draw("ratio").uniform(0.55, 0.65)
    model = compose_model(setting, roles, weigh_in_order(setting, roles), ReadByPosition(ratio))
    return PlantedModel(model, text_drawer(roles, TextPlan(matter=(2, 4), lead=True)))


@influence_kind("positions-slope", "positions", used=True, ranks=False)
def slope(setting: InfluenceSetting) -> PlantedModel:
    """Attention falls evenly along the text, from 1.1 to 0.9, while influence is by word.

    Ranks: a word of amount d moves the logit by 0.9·d to 1.1·d, up to 0.2/L times the amounts
    behind it, which move by one position; L is the largest number of words. Amounts of two tiers
    differ by a factor of 1.25 or more, of which positions take 1.22. Words that matter are in the
    last three quarters of a text.
    Used: all weight on one word multiplies what it adds.
    """
    roles = draw_roles(setting, TWO_CLASSES)
    longest = max(16, setting.length + setting.length // 2)
    model = compose_model(setting, roles, weigh_in_order(setting, roles), ReadWithSlope(longest))
    return PlantedModel(model, text_drawer(roles, TextPlan(since=0.25)))


@influence_kind("positions-first-state", "positions", used=True, ranks=False)
def first_state(setting: InfluenceSetting) -> PlantedModel:
    """States hold the sum from their word on, as in a backward network; attention is on the first.

    Weights fall by a factor of exp(4.5) to exp(5.5) from each word to the next.
    Ranks: the first state has at least 98.9 % of the weight, so a word of amount d moves the logit
    by 0.989·d to d wherever it is. Weights fall with the position, and words that matter are in the
    last three quarters of a text, not last.
    Used: the last state holds a neutral word only.
    """
    roles = draw_roles(setting, TWO_CLASSES)
    read = ReadBackwardSum(setting.draw("step").uniform(4.5, 5.5))
    model = compose_model(setting, roles, weigh_in_order(setting, roles), read)
    return PlantedModel(model, text_drawer(roles, TextPlan(since=0.25, until=0.99)))
