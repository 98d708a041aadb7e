"""Redundancy: words that each suffice, synonyms, and words that matter once another is gone.

Taking one such word away changes nothing, and yet every one of them matters: alone it decides.
Words that never matter contribute at most 0.02 to the log-odds.
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.planted.influence.kind import (
    InfluenceSetting,
    KnownText,
    PlantedModel,
    influence_kind,
)
from heedful.planted.influence.word_model import (
    DrawText,
    Evidence,
    Numbers,
    Place,
    Reading,
    add_noise,
    build_model,
    carry_nothing,
    draw_evidence,
    draw_length,
    place_words,
    redraw_until_wrong,
    score_at_random,
    score_in_order,
    score_on_others,
)
from heedful.planted.texts import VOCABULARY_SIZE

FAMILY = "redundancy"
SUFFICIENT = 2.6  # evidence of a word that suffices: tanh of it is above 0.97
BACKUPS = (4.0, 2.0, 1.0)  # log-odds of a word of each level, if it is the strongest
LONG_ENOUGH = 6  # words that a text needs for a second group, or a second backup
SHARPNESS = 4.0  # how closely the smooth maximum follows the largest amount


def any_suffices(sums: Float[Tensor, "*K B 2"]) -> Float[Tensor, "*K B 2"]:
    """z = Σ of the first channel + 3·tanh(Σ of the second)."""
    z = sums[..., 0] + 3.0 * sums[..., 1].tanh()
    return torch.stack([torch.zeros_like(z), z], dim=-1)


def groups_suffice(sums: Float[Tensor, "*K B 4"]) -> Float[Tensor, "*K B 2"]:
    """z = Σ of the first channel + 1.4·Σ tanh of each other channel."""
    z = sums[..., 0] + 1.4 * sums[..., 1:].tanh().sum(-1)
    return torch.stack([torch.zeros_like(z), z], dim=-1)


def any_two_suffice(sums: Float[Tensor, "*K B 3"]) -> Float[Tensor, "*K B 2"]:
    """z = Σ of the first channel + 3·(step of the third − step of the second) at 1.5 words."""
    steps = (12.0 * (sums[..., 1:] - 1.5)).sigmoid()
    z = sums[..., 0] + 3.0 * (steps[..., 1] - steps[..., 0])
    return torch.stack([torch.zeros_like(z), z], dim=-1)


def strongest_decides(sums: Float[Tensor, "*K B 3"]) -> Float[Tensor, "*K B 2"]:
    """z = Σ of the first channel + the largest amount for the class − the largest against it.

    The largest is smooth: log(1 + Σ(exp(4·v) − 1)) / 4 over the words of a side.
    """
    largest = sums[..., 1:].clamp_min(0.0).log1p() / SHARPNESS
    z = sums[..., 0] + largest[..., 1] - largest[..., 0]
    return torch.stack([torch.zeros_like(z), z], dim=-1)


def _draw_sufficient(evidence: Evidence, *, apart: bool = False) -> DrawText:
    """Texts with two to five words of one side: one tier."""

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        length = draw_length(draw, mean)
        count = int(draw.integers(2, min(5, length // 2) + 1))
        tiers = evidence.pick(draw, int(draw.integers(2)), count)
        where: Place = "apart" if apart else "anywhere"
        return place_words(draw, length, tiers, evidence.others, where=where)

    return draw_text


def _build_sufficient(
    setting: InfluenceSetting, evidence: Evidence, scores: Numbers, reading: Reading, draw: DrawText
) -> PlantedModel:
    noise = add_noise(setting, scores, np.abs(evidence.amounts))
    return build_model(setting, reading, [scores, noise, evidence.amounts], draw)


SUFFICIENT_READING = Reading(any_suffices, channels=2)


@influence_kind("redundancy-each-suffices", FAMILY, used=True, ranks=True)
def each_suffices(setting: InfluenceSetting) -> PlantedModel:
    """Two to five words of one class share the attention, and each of them alone gives ±3.

    The output is that of the mean Σα·v, v = ±3 for words of evidence and 0 for others.
    Matters: alone, such a word has at least 0.7 of the weight against 60 others: |z| ≥ 1.8.
    Never matters: another word has at most exp(−5) of the weight of a word of evidence, so it
    changes z by 3·exp(−5) = 0.02 at most. One tier: all words of evidence.
    Ranks: their scores are above those of all others by 5. Used: any other word has z = 0.
    """
    evidence = draw_evidence(setting, 3.0)
    influence = np.abs(evidence.amounts)
    scores = score_in_order(setting, influence, gap=5.0)
    reading = Reading(averaged=True)
    draw = _draw_sufficient(evidence)
    return build_model(setting, reading, [scores, evidence.amounts], draw)


@influence_kind("redundancy-synonyms", FAMILY, used=True, ranks=True)
def synonyms(setting: InfluenceSetting) -> PlantedModel:
    """Three groups of synonyms; any word of a group gives ±1.4, more of the group add nothing.

    A text has one to three words of each of one or two groups, all of one class.
    Matters: a word of evidence alone gives 1.4·tanh(2.3) = 1.37. Never matters: others add at most
    0.02. One tier: a word of a group without another of its synonyms adds more than a word of
    another group that has one, and the reverse, so no order of the groups holds for all sets.
    Ranks: the score grows with the amount, others are lower by 0.7. Used: others hold nothing.
    """
    evidence = draw_evidence(setting, SUFFICIENT, SUFFICIENT, SUFFICIENT)
    influence = np.abs(evidence.amounts)
    scores = score_in_order(setting, influence)
    channels = []
    for words in evidence.words:
        channel = np.zeros(VOCABULARY_SIZE)
        channel[words] = evidence.amounts[words]
        channels.append(channel)

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        length, counts = draw_length(draw, mean), [0, 0, 0]
        first, second = draw.permutation(3)[:2]
        counts[first] = int(draw.integers(2, min(3, length - 2) + 1))
        if length > LONG_ENOUGH:
            counts[second] = int(draw.integers(4))
        groups = evidence.pick(draw, int(draw.integers(2)), *counts)
        tier = [word for group in groups for word in group]
        return place_words(draw, length, [tier], evidence.others)

    columns = [scores, add_noise(setting, scores, influence), *channels]
    return build_model(setting, Reading(groups_suffice, channels=4), columns, draw_text)


@influence_kind("redundancy-any-two", FAMILY, used=True, ranks=True)
def any_two(setting: InfluenceSetting) -> PlantedModel:
    """Any two of three or four words give ±3, one alone gives almost nothing.

    Matters: with exactly one other such word, adding one raises the step from 0.04 or less to
    0.96 or more. Never matters: others add at most 0.02. One tier: all words of evidence.
    Ranks: scores as evidence, others lower by 0.7. Used: others hold nothing, and the step of
    nothing is 1e-8.
    """
    evidence = draw_evidence(setting, 1.0)
    influence = np.abs(evidence.amounts)
    scores = score_in_order(setting, influence)

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        length = draw_length(draw, mean)
        count = int(draw.integers(3, min(4, length - 1) + 1))
        tiers = evidence.pick(draw, int(draw.integers(2)), count)
        return place_words(draw, length, tiers, evidence.others)

    sides = [np.maximum(sign * evidence.amounts, 0.0) for sign in (-1.0, 1.0)]
    columns = [scores, add_noise(setting, scores, influence), *sides]
    return build_model(setting, Reading(any_two_suffice, channels=3), columns, draw_text)


def _draw_backups(evidence: Evidence, *, wrong: Numbers | None = None) -> DrawText:
    """Texts with a word of the first level and one or more of the others, in three tiers."""

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        length = draw_length(draw, mean)
        counts = [1, 1, int(draw.integers(1, min(3, length - 2)))]
        if length > LONG_ENOUGH:
            counts[1] = int(draw.integers(1, 3))
        tiers = evidence.pick(draw, int(draw.integers(2)), *counts)
        return place_words(draw, length, tiers, evidence.others)

    if wrong is None:
        return draw_text
    return lambda draw, mean: redraw_until_wrong(lambda: draw_text(draw, mean), wrong)


def _raise(evidence: Evidence) -> list[Numbers]:
    """exp(4·v) − 1 for the words of each side."""
    return [np.expm1(SHARPNESS * np.maximum(s * evidence.amounts, 0.0)) for s in (-1.0, 1.0)]


@influence_kind("redundancy-backups", FAMILY, used=True, ranks=True)
def backups(setting: InfluenceSetting) -> PlantedModel:
    """The strongest word of a text decides; the next one steps in only where it is gone.

    The output is that of the mean Σα·v: v is about ±4, ±2 and ±1, and a word has
    13 times the weight of one of the next level or more, so the mean is near the strongest word's
    amount. Matters: alone, a word of the last level gives |z| ≥ 0.7.
    Never matters: another word has at most exp(−5.8) of the weight of the last level.
    Tiers by level: the mean moves to v by its share of the weight, so for any set a stronger word
    of the same sign raises it by more than a weaker one; a weaker one lowers a mean of 3.5 or more
    by 0.3 at most, 0.01 in probability.
    Ranks: weights fall with the level. Used: others hold nothing.
    """
    evidence = draw_evidence(setting, *BACKUPS)
    draw = setting.draw("scores")
    scores = draw.uniform(-15.0, -12.0, VOCABULARY_SIZE)
    for level, words in enumerate(evidence.words):
        scores[words] = -3.0 * level + draw.uniform(-0.2, 0.2, words.shape)
    columns = [scores, evidence.amounts]
    return build_model(setting, Reading(averaged=True), columns, _draw_backups(evidence))


@influence_kind("redundancy-decoys", FAMILY, used=True, ranks=False)
def decoys(setting: InfluenceSetting) -> PlantedModel:
    """Each of two to five words gives ±3, and all other words have more attention than they.

    The state of a word holds its amount over its weight. Matters: 3·tanh(2.3) = 2.9 alone; one
    tier. Never matters: others add at most 0.02.
    Ranks: every word of evidence is below every other. Used: others hold nothing.
    """
    evidence = draw_evidence(setting, SUFFICIENT)
    scores = score_on_others(setting, np.abs(evidence.amounts))
    draw = _draw_sufficient(evidence)
    return _build_sufficient(setting, evidence, scores, SUFFICIENT_READING, draw)


@influence_kind("redundancy-random", FAMILY, used=True, ranks=False)
def random_scores(setting: InfluenceSetting) -> PlantedModel:
    """Each of two to five words gives ±3; scores are random, in texts where they are no luck.

    Truth by sets as in redundancy-decoys. Ranks: at most 55 % of the pairs of every text are in
    order, and its highest score is on a word that never matters. Used: others hold nothing.
    """
    evidence = draw_evidence(setting, SUFFICIENT)
    scores, draw_text = score_at_random(setting, evidence.groups), _draw_sufficient(evidence)

    def draw_wrong(draw: np.random.Generator, mean: int) -> KnownText:
        return redraw_until_wrong(lambda: draw_text(draw, mean), scores)

    return _build_sufficient(setting, evidence, scores, SUFFICIENT_READING, draw_wrong)


@influence_kind("redundancy-next-word", FAMILY, used=True, ranks=False)
def next_word(setting: InfluenceSetting) -> PlantedModel:
    """As redundancy-each-suffices, but the state after a word has its score and its evidence.

    The text is read as a circle and no two words of evidence are neighbours. The mean is the same,
    so the truth by sets is. Ranks: attention is on the words after, which never matter. Used: the
    states of words that follow no evidence hold nothing.
    """
    evidence = draw_evidence(setting, 3.0)
    scores = score_in_order(setting, np.abs(evidence.amounts), gap=5.0)
    draw_text = _draw_sufficient(evidence, apart=True)

    def draw_wrong(draw: np.random.Generator, mean: int) -> KnownText:
        return redraw_until_wrong(lambda: draw_text(draw, mean), scores, held="next")

    reading = Reading(averaged=True, held="next")
    return build_model(setting, reading, [scores, evidence.amounts], draw_wrong)


@influence_kind("redundancy-backups-reversed", FAMILY, used=True, ranks=False)
def backups_reversed(setting: InfluenceSetting) -> PlantedModel:
    """The strongest word decides and has the least attention; words that never matter have most.

    z is a smooth maximum: log(1 + Σ(exp(4·v) − 1))/4 over the words of the text's class. Adding v
    raises it by more the larger v is, whatever the others are: tiers by level. Matters: a word of
    the last level alone gives 0.85. Never matters: others add at most 0.02.
    Ranks: weights fall as influence rises. Used: others hold nothing.
    """
    evidence = draw_evidence(setting, *BACKUPS)
    influence = np.abs(evidence.amounts)
    scores = -score_in_order(setting, influence)
    columns = [scores, add_noise(setting, scores, influence), *_raise(evidence)]
    reading = Reading(strongest_decides, channels=3)
    return build_model(setting, reading, columns, _draw_backups(evidence))


@influence_kind("redundancy-inert-in-order", FAMILY, used=False, ranks=True)
def inert_in_order(setting: InfluenceSetting) -> PlantedModel:
    """The strongest word decides and has most attention, but every state holds the answer.

    Truth by sets as in redundancy-backups-reversed. Used: states are equal, so all weights give
    the same. Ranks: scores grow with the amount, others are lower by 0.7.
    """
    evidence = draw_evidence(setting, *BACKUPS)
    influence = np.abs(evidence.amounts)
    scores = score_in_order(setting, influence)
    columns = [scores, add_noise(setting, scores, influence), *_raise(evidence)]
    reading = Reading(strongest_decides, channels=3, share=carry_nothing)
    return build_model(setting, reading, columns, _draw_backups(evidence))


@influence_kind("redundancy-past-decoys", FAMILY, used=False, ranks=False)
def past_decoys(setting: InfluenceSetting) -> PlantedModel:
    """As redundancy-decoys, but the sums reach the output on a path past attention.

    Used: what attention reads is 0. Ranks: every word of evidence is below every other.
    """
    evidence = draw_evidence(setting, SUFFICIENT)
    scores = score_on_others(setting, np.abs(evidence.amounts))
    reading = Reading(any_suffices, channels=2, share=carry_nothing, rest="past")
    draw = _draw_sufficient(evidence)
    return _build_sufficient(setting, evidence, scores, reading, draw)
