"""Interaction: words that act on each other: parity, negation, intensifiers, products.

What a word changes depends on which others are there, so that no single deletion shows all of it;
sets do. Words that never matter add at most 0.02 to the log-odds.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.planted.influence.kind import (
    InfluenceSetting,
    KnownText,
    PlantedModel,
    influence_kind,
)
from heedful.planted.influence.word_model import (
    DrawText,
    Numbers,
    Place,
    Reading,
    WordIds,
    add_noise,
    build_model,
    carry_nothing,
    draw_length,
    place_words,
    redraw_until_wrong,
    score_at_random,
    score_in_order,
    score_on_others,
    split_words,
)
from heedful.planted.texts import VOCABULARY_SIZE

FAMILY = "interaction"
ROLE_WORDS = 30  # words of one role and class
LONG_ENOUGH = 7  # words that a text needs for four that matter
BuildScores = Callable[[InfluenceSetting, Numbers], Numbers]


def flip_by_parity(sums: Float[Tensor, "*K B 2"]) -> Float[Tensor, "*K B 2"]:
    """z = Σ of the first channel + 1.1·cos(π·Σ of the second), a count of markers."""
    z = sums[..., 0] + 1.1 * (torch.pi * sums[..., 1]).cos()
    return torch.stack([torch.zeros_like(z), z], dim=-1)


def flip_by_negation(sums: Float[Tensor, "*K B 3"]) -> Float[Tensor, "*K B 2"]:
    """z = Σ of the first channel + 3·tanh(Σ of the second)·cos(π·Σ of the third)."""
    z = sums[..., 0] + 3.0 * sums[..., 1].tanh() * (torch.pi * sums[..., 2]).cos()
    return torch.stack([torch.zeros_like(z), z], dim=-1)


def intensify(sums: Float[Tensor, "*K B 3"]) -> Float[Tensor, "*K B 2"]:
    """z = Σ of the first channel + Σ of the second · (1 + Σ of the third)."""
    z = sums[..., 0] + sums[..., 1] * (1.0 + sums[..., 2])
    return torch.stack([torch.zeros_like(z), z], dim=-1)


def require_both(sums: Float[Tensor, "*K B 3"]) -> Float[Tensor, "*K B 2"]:
    """z = Σ of the first channel + 3·tanh(Σ of the second)·tanh(Σ of the third)."""
    z = sums[..., 0] + 3.0 * sums[..., 1].tanh() * sums[..., 2].tanh()
    return torch.stack([torch.zeros_like(z), z], dim=-1)


@dataclass(frozen=True, eq=False)
class Roles:
    """Signed words of two sides, words that act on them, and words that never matter.

    `signed` and `acting` are what the words add to the two channels; `influence` is what scores
    are to follow.
    """

    sides: tuple[WordIds, WordIds]
    actors: WordIds
    others: WordIds
    signed: Numbers
    acting: Numbers
    influence: Numbers


def _draw_roles(
    setting: InfluenceSetting, *, signed: float, acting: tuple[float, float], influence: float = 1.0
) -> Roles:
    """Roles with amounts ± `signed` within 10 %, and actors between the bounds of `acting`.

    The influence of signed words is `influence`, that of actors 1, both within 5 %.
    """
    negative, positive, actors, others = split_words(setting, *[ROLE_WORDS] * 3)
    draw = setting.draw("amounts")
    amounts, acts, ranks = np.zeros((3, VOCABULARY_SIZE))
    for sign, words in ((-1.0, negative), (1.0, positive)):
        amounts[words] = sign * signed * draw.uniform(0.9, 1.1, len(words))
        ranks[words] = influence * draw.uniform(0.95, 1.05, len(words))
    acts[actors] = draw.uniform(*acting, len(actors))
    ranks[actors] = draw.uniform(0.95, 1.05, len(actors))
    return Roles((negative, positive), actors, others, amounts, acts, ranks)


def _draw_both(
    roles: Roles, *, tiers: bool = False, where: Place = "anywhere", least_actors: int = 0
) -> DrawText:
    """Texts with one or two signed words of one side and up to two actors, of one tier or two.

    With `tiers` there is exactly one signed word, and one or two actors in the tier below.
    """

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        length = draw_length(draw, mean)
        most = 2 if length > LONG_ENOUGH else 1
        least = max(1, least_actors) if tiers else least_actors
        signed = 1 if tiers else int(draw.integers(1, most + 1))
        actors = int(draw.integers(least, most + 1))
        side = roles.sides[int(draw.integers(2))]
        own = draw.choice(side, signed, replace=False).tolist()
        act = draw.choice(roles.actors, actors, replace=False).tolist()
        return place_words(
            draw, length, [own, act] if tiers else [own + act], roles.others, where=where
        )

    return draw_text


def _build(
    setting: InfluenceSetting, roles: Roles, scores: Numbers, reading: Reading, draw: DrawText
) -> PlantedModel:
    columns = [scores, add_noise(setting, scores, roles.influence), roles.signed, roles.acting]
    return build_model(setting, reading, columns, draw)


# Parity of markers


def _build_parity(
    setting: InfluenceSetting,
    build_scores: BuildScores,
    *,
    reading: Reading | None = None,
) -> PlantedModel:
    """Texts with one to three markers (the first tier) and one or two words of ±0.65."""
    roles = _draw_roles(setting, signed=0.65, acting=(1.0, 1.0), influence=0.5)
    scores = build_scores(setting, roles.influence)

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        length = draw_length(draw, mean)
        markers = int(draw.integers(1, 3 if length <= LONG_ENOUGH else 4))
        words = int(draw.integers(1, 2 if length <= LONG_ENOUGH else 3))
        strong = draw.choice(roles.actors, markers, replace=False).tolist()
        weak = draw.choice(np.concatenate(roles.sides), words, replace=False).tolist()
        return place_words(draw, length, [strong, weak], roles.others)

    noise = add_noise(setting, scores, roles.influence)
    columns = [scores, roles.signed + noise, roles.acting]
    chosen = reading or Reading(flip_by_parity, channels=2)
    return build_model(setting, chosen, columns, draw_text)


@influence_kind("interaction-parity", FAMILY, used=True, ranks=True)
def parity(setting: InfluenceSetting) -> PlantedModel:
    """The parity of the markers decides (XOR), and attention is on them, less on weaker words.

    One to three markers flip the sign of 1.1. With u from the rest, |u| ≤ 1.45, any of them moves
    z from 1.1 + u to −1.1 + u or back, always by 0.3 or more in probability. Words of the second
    tier add ±0.65 within 10 %: 0.12 or more where z is ∓1.1, and 0.72/4 = 0.18 at most.
    Never matters: others add at most 0.02.
    Ranks: markers have twice the influence in the scores, others are lower by 0.7.
    Used: weights that do not give all markers the model's own weight make their count another.
    """
    return _build_parity(setting, score_in_order)


@influence_kind("interaction-parity-reversed", FAMILY, used=True, ranks=False)
def parity_reversed(setting: InfluenceSetting) -> PlantedModel:
    """As interaction-parity, but with attention in the reverse order: least of it on markers.

    Ranks: the negative of scores that are in order. Truth by sets and used: as there.
    """
    return _build_parity(setting, lambda own, influence: -score_in_order(own, influence))


@influence_kind("interaction-parity-inert", FAMILY, used=False, ranks=True)
def parity_inert(setting: InfluenceSetting) -> PlantedModel:
    """As interaction-parity, but the sums reach the output on a path past attention.

    Ranks, and truth by sets: as there. Used: what attention reads is 0.
    """
    reading = Reading(flip_by_parity, channels=2, share=carry_nothing, rest="past")
    return _build_parity(setting, score_in_order, reading=reading)


# Negation


NEGATION = Reading(flip_by_negation, channels=3)


def _negation_roles(setting: InfluenceSetting) -> Roles:
    return _draw_roles(setting, signed=1.5, acting=(1.0, 1.0))


@influence_kind("interaction-negation", FAMILY, used=True, ranks=True)
def negation(setting: InfluenceSetting) -> PlantedModel:
    """Negators turn the sign of polar words; attention is on both, the decoder multiplies them.

    Matters: a polar word alone gives 3·tanh(1.35) = 2.6; a negator turns that. One tier: a negator
    changes nothing where no polar word is, and more than a second polar word where one is.
    Never matters: others add at most 0.02. Ranks: scores of both are above all others by 0.7.
    Used: others hold nothing, so all weight on one of them gives z near 0.
    """
    roles = _negation_roles(setting)
    scores = score_in_order(setting, roles.influence)
    return _build(setting, roles, scores, NEGATION, _draw_both(roles))


@influence_kind("interaction-negation-in-states", FAMILY, used=True, ranks=True)
def negation_in_states(setting: InfluenceSetting) -> PlantedModel:
    """As interaction-negation, but the states hold the result: a polar word's is already turned.

    z = Σ v·cos(π·negators) over polar words, |v| ≥ 1.35: alone one moves the probability by 0.29,
    and a negator turns that. Never matters and one tier: as there.
    Ranks: scores of both are above all others by 0.7. Used: as there.
    """
    roles = _draw_roles(setting, signed=1.5, acting=(1.0, 1.0))
    scores = score_in_order(setting, roles.influence)
    reading = Reading(channels=1, amounts=_turn_amounts)
    return _build(setting, roles, scores, reading, _draw_both(roles))


def _turn_amounts(
    vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T 1"]:
    noise, polar, negates = (vectors * mask[..., None])[..., 1:].unbind(-1)
    turned = polar * (torch.pi * negates.sum(-1, keepdim=True)).cos()
    return (noise + turned)[..., None]


@influence_kind("interaction-negation-random", FAMILY, used=True, ranks=False)
def negation_random(setting: InfluenceSetting) -> PlantedModel:
    """As interaction-negation, but with scores at random, in texts where they are no luck.

    Ranks: at most 55 % of the pairs of every text are in order, and its highest score is on a word
    that never matters. Truth by sets and used: as there.
    """
    roles = _negation_roles(setting)
    scores = score_at_random(setting, [*roles.sides, roles.actors])
    draw_text = _draw_both(roles)

    def draw_wrong(draw: np.random.Generator, mean: int) -> KnownText:
        return redraw_until_wrong(lambda: draw_text(draw, mean), scores)

    return _build(setting, roles, scores, NEGATION, draw_wrong)


@influence_kind("interaction-negation-next-word", FAMILY, used=True, ranks=False)
def negation_next_word(setting: InfluenceSetting) -> PlantedModel:
    """As interaction-negation, but the state after a word has its score and what it holds.

    No two words that matter are neighbours; the text is read as a circle. The sums, and so the
    truth by sets, are as there. Ranks: attention is on the words after, which never matter.
    Used: the states of words that follow none of them hold nothing.
    """
    roles = _negation_roles(setting)
    scores = score_in_order(setting, roles.influence)
    draw_text = _draw_both(roles, where="apart")

    def draw_wrong(draw: np.random.Generator, mean: int) -> KnownText:
        return redraw_until_wrong(lambda: draw_text(draw, mean), scores, held="next")

    reading = Reading(flip_by_negation, channels=3, held="next")
    return _build(setting, roles, scores, reading, draw_wrong)


# Intensifiers


INTENSIFIERS = (1.2, 1.8)
HEAD = 0.85  # log-odds of a word that intensifiers act on


@influence_kind("interaction-intensifier", FAMILY, used=True, ranks=True)
def intensifier(setting: InfluenceSetting) -> PlantedModel:
    """One or two intensifiers act on the only polar word, which has the most attention.

    z = v·(1 + Σk), |v| near 0.85, k between 1.2 and 1.8. Tiers: sets without the polar word give
    an intensifier no effect, and adding the polar word 0.18 or more in probability, so the polar
    word is first. Matters: with it, an intensifier adds 0.9 or more to z of 0.77 to 0.94.
    Never matters: others add at most 0.02. Ranks: the polar word has twice the influence in the
    scores, others are lower by 0.7. Used: others hold nothing.
    """
    roles = _draw_roles(setting, signed=HEAD, acting=INTENSIFIERS, influence=2.0)
    scores = score_in_order(setting, roles.influence)
    reading = Reading(intensify, channels=3)
    return _build(setting, roles, scores, reading, _draw_both(roles, tiers=True))


@influence_kind("interaction-intensifier-decoys", FAMILY, used=False, ranks=False)
def intensifier_decoys(setting: InfluenceSetting) -> PlantedModel:
    """As interaction-intensifier, but attention is on all others, and every state holds the sums.

    Truth by sets: as there. Ranks: all others are above the words that matter. Used: states are
    equal.
    """
    roles = _draw_roles(setting, signed=HEAD, acting=INTENSIFIERS, influence=2.0)
    scores = score_on_others(setting, roles.influence)
    reading = Reading(intensify, channels=3, share=carry_nothing)
    return _build(setting, roles, scores, reading, _draw_both(roles, tiers=True))


# Products


def _product_roles(setting: InfluenceSetting) -> Roles:
    return _draw_roles(setting, signed=1.6, acting=(1.4, 1.8))


@influence_kind("interaction-both-needed", FAMILY, used=True, ranks=True)
def both_needed(setting: InfluenceSetting) -> PlantedModel:
    """z is the product of what words of two roles hold: each role is nothing without the other.

    A text has one or two words of each role. Matters: with a word of the other role, the first of
    its own gives 3·tanh(1.4)·tanh(1.4) = 2.3. One tier: without the other role a word has no
    effect. Never matters: others add at most 0.02.
    Ranks: scores of both roles are above all others by 0.7. Used: others hold nothing.
    """
    roles = _product_roles(setting)
    scores = score_in_order(setting, roles.influence)
    reading = Reading(require_both, channels=3)
    return _build(setting, roles, scores, reading, _draw_both(roles, least_actors=1))


@influence_kind("interaction-bystanders", FAMILY, used=True, ranks=False)
def bystanders(setting: InfluenceSetting) -> PlantedModel:
    """As interaction-both-needed, but attention is on the words that never matter.

    The state of a word holds its amount over its weight, so the truth by sets is as there.
    Ranks: all others are above the words that matter. Used: others hold nothing.
    """
    roles = _product_roles(setting)
    scores = score_on_others(setting, roles.influence)
    reading = Reading(require_both, channels=3)
    return _build(setting, roles, scores, reading, _draw_both(roles, least_actors=1))
