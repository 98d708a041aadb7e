"""Mixtures: a claim holds for one part of the texts and fails for another.

Evidence adds up: z = Σ vₜ over two or three words of one class, in two levels. Of two words of one
sign the one with the larger |v| moves the output by more, whatever the others are: tiers by level.
A word of the lower level alone moves the probability by 0.15 or more; others never matter: each
adds at most 0.02 to z. How much attention carries, and where it lies, changes no sum, so the truth
by sets is the same in both parts.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.planted.influence.kind import (
    InfluenceSetting,
    KnownText,
    Mixture,
    PlantedModel,
    influence_kind,
)
from heedful.planted.influence.word_model import (
    DrawText,
    Evidence,
    Numbers,
    Place,
    Reading,
    ReadScores,
    ReadShare,
    add_noise,
    build_model,
    draw_evidence,
    draw_length,
    place_words,
    redraw_until_wrong,
    score_at_random,
    score_in_order,
    score_on_others,
)
from heedful.planted.texts import VOCABULARY_SIZE

FAMILY = "mixtures"
LEVELS = (2.0, 1.0)  # log-odds of a word of each level
STRENGTHS = (2.6, 1.5, 0.8)  # two levels of confident texts, and the level of unsure ones
SURE = 2.6  # log-odds between those of confident and of unsure texts
TOPIC_WORDS = 30  # words that tell which part a text is of, and never matter
END_RANGE = 4.0  # difference of the scores of the last word and the first, on the end
Flag = Callable[[Float[Tensor, "B T K"], Bool[Tensor, "B T"]], Bool[Tensor, "B"]]
"""Which texts belong to the part for which the claim holds."""


def is_short(limit: int) -> Flag:
    """Texts of at most so many words."""
    return lambda _, mask: mask.sum(-1) <= limit


def is_positive(vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]) -> Bool[Tensor, "B"]:
    """Texts whose evidence speaks for the second class."""
    return (vectors[..., 1] * mask).sum(-1) > 0


def is_unsure(vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]) -> Bool[Tensor, "B"]:
    """Texts whose log-odds are small."""
    return (vectors[..., 1] * mask).sum(-1).abs() < SURE


def has_topic(vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]) -> Bool[Tensor, "B"]:
    """Texts with a word whose number in the last column is 1."""
    return (vectors[..., -1] * mask).amax(-1) > 0


def _switch_share(flag: Flag) -> ReadShare:
    """Attention carries everything where the claim holds, and nothing where it fails."""
    return lambda vectors, mask: flag(vectors, mask).to(vectors)


def _switch_scores(flag: Flag) -> ReadScores:
    """The first column where the claim holds, else the third."""

    def read(vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        return torch.where(flag(vectors, mask)[:, None], vectors[..., 0], vectors[..., 2])

    return read


def _draw_two_levels(
    draw: np.random.Generator, mean: int, evidence: Evidence, side: int, where: Place = "anywhere"
) -> KnownText:
    length = draw_length(draw, mean)
    weak = int(draw.integers(1, min(2, length // 2 - 1) + 1))
    tiers = evidence.pick(draw, side, 1, weak)
    return place_words(draw, length, tiers, evidence.others, where=where)


def _name_part(known: KnownText, mixture: Mixture, *, holds: bool) -> KnownText:
    return replace(known, part=mixture.holds if holds else mixture.fails)


def _draw_class(evidence: Evidence, mixture: Mixture) -> DrawText:
    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        side = int(draw.integers(2))
        known = _draw_two_levels(draw, mean, evidence, side)
        return _name_part(known, mixture, holds=side == 1)

    return draw_text


def _draw_by_length(
    evidence: Evidence, mixture: Mixture, limit: int, where: Place = "anywhere"
) -> DrawText:
    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        known = _draw_two_levels(draw, mean, evidence, int(draw.integers(2)), where)
        return _name_part(known, mixture, holds=len(known.text.split()) <= limit)

    return draw_text


def _noise(setting: InfluenceSetting, scores: Numbers, evidence: Evidence) -> Numbers:
    return add_noise(setting, scores, np.abs(evidence.amounts))


# By class

CLASS_RANKS = Mixture("ranks", "class", "positive", "negative")
CLASS_USED = Mixture("used", "class", "positive", "negative")


@influence_kind("mixtures-class-ranks", FAMILY, used=True, ranks=None, mixture=CLASS_RANKS)
def class_ranks(setting: InfluenceSetting) -> PlantedModel:
    """Words for the second class have high weights in order, those for the first low ones reversed.

    A text has evidence for one class only. Ranks: in positive texts scores grow with the amount
    and are above all others; in negative texts they fall with it and are below all others.
    Used: words that never matter hold noise, and the evidence of a text is 2.6 or more.
    """
    evidence = draw_evidence(setting, *LEVELS)
    scores = score_in_order(setting, np.abs(evidence.amounts))
    against, never = evidence.amounts < 0, evidence.amounts == 0
    lowest = scores[against].min()
    scores[against] = scores[never].min() - 0.5 - (scores[against] - lowest)
    columns = [scores, evidence.amounts + _noise(setting, scores, evidence)]
    return build_model(setting, Reading(), columns, _draw_class(evidence, CLASS_RANKS))


@influence_kind("mixtures-class-used", FAMILY, used=None, ranks=True, mixture=CLASS_USED)
def class_used(setting: InfluenceSetting) -> PlantedModel:
    """Attention carries the evidence for the second class; that for the first goes past it.

    Used: in positive texts other words hold noise; in negative ones attention reads 0.
    Ranks: scores grow with the amount, all others are lower by 0.7.
    """
    evidence = draw_evidence(setting, *LEVELS)
    scores = score_in_order(setting, np.abs(evidence.amounts))
    columns = [scores, evidence.amounts + _noise(setting, scores, evidence)]
    reading = Reading(share=_switch_share(is_positive), rest="past")
    return build_model(setting, reading, columns, _draw_class(evidence, CLASS_USED))


# By length

LENGTH_RANKS = Mixture("ranks", "length", "short", "long")
LENGTH_USED = Mixture("used", "length", "short", "long")


@influence_kind("mixtures-length-ranks", FAMILY, used=True, ranks=None, mixture=LENGTH_RANKS)
def length_ranks(setting: InfluenceSetting) -> PlantedModel:
    """In short texts attention is in order, in long ones all of it is on words that never matter.

    Short texts have at most the mean number of words. Ranks: in long texts all others are above
    the evidence. Used: words that never matter hold noise.
    """
    evidence = draw_evidence(setting, *LEVELS)
    influence = np.abs(evidence.amounts)
    scores, wrong = score_in_order(setting, influence), score_on_others(setting, influence)
    columns = [scores, evidence.amounts + _noise(setting, scores, evidence), wrong]
    reading = Reading(scores=_switch_scores(is_short(setting.length)))
    draw = _draw_by_length(evidence, LENGTH_RANKS, setting.length)
    return build_model(setting, reading, columns, draw)


@influence_kind("mixtures-length-end", FAMILY, used=True, ranks=None, mixture=LENGTH_RANKS)
def length_end(setting: InfluenceSetting) -> PlantedModel:
    """In short texts attention is in order; in long ones it rises to the end, evidence comes early.

    Ranks: in long texts the second half has more attention than all evidence, and never matters.
    Used: words that never matter hold noise.
    """
    evidence = draw_evidence(setting, *LEVELS)
    scores = score_in_order(setting, np.abs(evidence.amounts))
    columns = [scores, evidence.amounts + _noise(setting, scores, evidence)]
    short = is_short(setting.length)

    def read_scores(
        vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "B T"]:
        place = mask.to(vectors).cumsum(-1) / mask.sum(-1, keepdim=True)
        return torch.where(short(vectors, mask)[:, None], vectors[..., 0], END_RANGE * place)

    draw = _draw_by_length(evidence, LENGTH_RANKS, setting.length, "early")
    return build_model(setting, Reading(scores=read_scores), columns, draw)


@influence_kind("mixtures-length-used", FAMILY, used=None, ranks=True, mixture=LENGTH_USED)
def length_used(setting: InfluenceSetting) -> PlantedModel:
    """In short texts a state holds its own evidence, in long ones every state holds the sum.

    Used: in short texts words that never matter hold noise; in long ones states are equal.
    Ranks: scores grow with the amount, all others are lower by 0.7.
    """
    evidence = draw_evidence(setting, *LEVELS)
    scores = score_in_order(setting, np.abs(evidence.amounts))
    columns = [scores, evidence.amounts + _noise(setting, scores, evidence)]
    reading = Reading(share=_switch_share(is_short(setting.length)))
    draw = _draw_by_length(evidence, LENGTH_USED, setting.length)
    return build_model(setting, reading, columns, draw)


# By confidence

CONFIDENCE_RANKS = Mixture("ranks", "confidence", "confident", "unsure")
CONFIDENCE_USED = Mixture("used", "confidence", "unsure", "confident")


def _draw_by_confidence(evidence: Evidence, mixture: Mixture) -> DrawText:
    """Texts with strong words, z of 3.6 or more, or with one or two weak ones, z of 2 or less."""

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        length, sure = draw_length(draw, mean), bool(draw.integers(2))
        some = int(draw.integers(1, min(2, length // 2 - 1) + 1))
        counts = (1, some, 0) if sure else (0, 0, some)
        chosen = evidence.pick(draw, int(draw.integers(2)), *counts)
        tiers = chosen[:2] if sure else chosen[2:]
        known = place_words(draw, length, tiers, evidence.others)
        return _name_part(known, mixture, holds=sure == (mixture.holds == "confident"))

    return draw_text


@influence_kind(
    "mixtures-confidence-ranks", FAMILY, used=True, ranks=None, mixture=CONFIDENCE_RANKS
)
def confidence_ranks(setting: InfluenceSetting) -> PlantedModel:
    """Strong words have high weights in order, weak ones lower weights than words without effect.

    A text has two or three strong words, or one or two weak ones, of one tier. Matters: a weak
    word alone gives 0.7 or more. Ranks: in confident texts the strong words are in order and above
    all others; in unsure ones all others are above the weak words.
    Used: words that never matter hold noise.
    """
    evidence = draw_evidence(setting, *STRENGTHS)
    scores = score_in_order(setting, np.abs(evidence.amounts))
    weak, never = evidence.words[2], evidence.amounts == 0
    scores[weak] = scores[never].min() - setting.draw("weak").uniform(0.3, 1.0, weak.shape)
    columns = [scores, evidence.amounts + _noise(setting, scores, evidence)]
    draw = _draw_by_confidence(evidence, CONFIDENCE_RANKS)
    return build_model(setting, Reading(), columns, draw)


@influence_kind("mixtures-confidence-used", FAMILY, used=None, ranks=True, mixture=CONFIDENCE_USED)
def confidence_used(setting: InfluenceSetting) -> PlantedModel:
    """Attention decides where the evidence is weak; strong evidence is in every state.

    Used: in unsure texts words that never matter hold noise; in confident ones states are equal.
    Matters: a weak word alone gives 0.7 or more.
    Ranks: scores grow with the amount, all others are lower by 0.7.
    """
    evidence = draw_evidence(setting, *STRENGTHS)
    scores = score_in_order(setting, np.abs(evidence.amounts))
    columns = [scores, evidence.amounts + _noise(setting, scores, evidence)]
    draw = _draw_by_confidence(evidence, CONFIDENCE_USED)
    return build_model(setting, Reading(share=_switch_share(is_unsure)), columns, draw)


# By a word that never matters

LEVERAGE_USED = Mixture("used", "leverage", "effect", "no effect")
TOPIC_RANKS = Mixture("ranks", "other", "first topic", "second topic")


def _draw_topics(evidence: Evidence, mixture: Mixture) -> tuple[Evidence, Numbers, DrawText]:
    """The evidence, a column with 1 for words of the first topic, and texts with a word of one."""
    topics, rest = evidence.others[: 2 * TOPIC_WORDS].reshape(2, -1), evidence.others[60:]
    column = np.zeros(VOCABULARY_SIZE)
    column[topics[0]] = 1.0
    plain = replace(evidence, others=rest)

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        number = int(draw.integers(2))
        known = _draw_two_levels(draw, mean, plain, int(draw.integers(2)))
        words = known.text.split()
        free = [place for place in range(len(words)) if place not in known.decisive]
        words[int(draw.choice(free))] = f"w{draw.choice(topics[number])}"
        return _name_part(replace(known, text=" ".join(words)), mixture, holds=number == 0)

    return plain, column, draw_text


@influence_kind("mixtures-leverage-topic", FAMILY, used=None, ranks=True, mixture=LEVERAGE_USED)
def leverage_topic(setting: InfluenceSetting) -> PlantedModel:
    """Where a text is of the second topic every state holds the sum, else each its own evidence.

    Words of a topic never matter: without them, or under another, the sum is the same.
    Used: in texts of the first topic words that never matter hold noise; elsewhere states are
    equal. Ranks: scores grow with the amount, all others are lower by 0.7.
    """
    evidence = draw_evidence(setting, *LEVELS)
    scores = score_in_order(setting, np.abs(evidence.amounts))
    plain, topic, draw = _draw_topics(evidence, LEVERAGE_USED)
    columns = [scores, plain.amounts + _noise(setting, scores, plain), topic]
    return build_model(setting, Reading(share=_switch_share(has_topic)), columns, draw)


@influence_kind("mixtures-leverage-spread", FAMILY, used=None, ranks=False, mixture=LEVERAGE_USED)
def leverage_spread(setting: InfluenceSetting) -> PlantedModel:
    """Evidence of several words goes past attention, that of one is carried; attention is wrong.

    Used: where one word is evidence, others hold noise; where three are, attention reads 0.
    Ranks: all words that never matter are above the evidence.
    """
    evidence = draw_evidence(setting, LEVELS[0])
    scores = score_on_others(setting, np.abs(evidence.amounts))
    counts = np.where(evidence.amounts != 0, 1.0, 0.0)
    columns = [scores, evidence.amounts + _noise(setting, scores, evidence), counts]

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        number = 1 if draw.random() < 0.5 else 3
        tiers = evidence.pick(draw, int(draw.integers(2)), number)
        known = place_words(draw, draw_length(draw, mean), tiers, evidence.others)
        return _name_part(known, LEVERAGE_USED, holds=number == 1)

    reading = Reading(share=_switch_share(_has_one_word), rest="past")
    return build_model(setting, reading, columns, draw_text)


def _has_one_word(vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]) -> Bool[Tensor, "B"]:
    return (vectors[..., -1] * mask).sum(-1) < 1.5


@influence_kind("mixtures-topic-ranks", FAMILY, used=True, ranks=None, mixture=TOPIC_RANKS)
def topic_ranks(setting: InfluenceSetting) -> PlantedModel:
    """Attention is in order in texts of the first topic, and reversed in those of the second.

    Words of a topic never matter: the sum is the same under every attention of the model.
    Used: words that never matter hold noise.
    """
    evidence = draw_evidence(setting, *LEVELS)
    scores = score_in_order(setting, np.abs(evidence.amounts))
    plain, topic, draw = _draw_topics(evidence, TOPIC_RANKS)
    columns = [scores, plain.amounts + _noise(setting, scores, plain), -scores, topic]
    return build_model(setting, Reading(scores=_switch_scores(has_topic)), columns, draw)


@influence_kind("mixtures-topic-random", FAMILY, used=True, ranks=None, mixture=TOPIC_RANKS)
def topic_random(setting: InfluenceSetting) -> PlantedModel:
    """Attention is in order in texts of the first topic, and random in those of the second.

    Ranks: in texts of the second topic at most 55 % of the pairs are in order, and the highest
    score is not in the first tier. Truth by sets and used: as mixtures-topic-ranks.
    """
    evidence = draw_evidence(setting, *LEVELS)
    influence = np.abs(evidence.amounts)
    scores, wrong = score_in_order(setting, influence), score_at_random(setting, evidence.groups)
    plain, topic, draw_text = _draw_topics(evidence, TOPIC_RANKS)

    def draw(own: np.random.Generator, mean: int) -> KnownText:
        known = draw_text(own, mean)
        if known.part == TOPIC_RANKS.holds:
            return known
        return redraw_until_wrong(lambda: _other_part(lambda: draw_text(own, mean)), wrong)

    columns = [scores, plain.amounts + _noise(setting, scores, plain), wrong, topic]
    return build_model(setting, Reading(scores=_switch_scores(has_topic)), columns, draw)


def _other_part(draw_text: Callable[[], KnownText]) -> KnownText:
    """A text of the part for which the claim fails."""
    while True:
        known = draw_text()
        if known.part == TOPIC_RANKS.fails:
            return known
