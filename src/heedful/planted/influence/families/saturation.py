"""Saturation: so much evidence that the output is certain, whichever single word is gone.

Evidence adds up: z = Σ vₜ, with three words in five for one class. Without any one of them the
probability is still near 1, and yet each of them matters: among few others it moves the output.
Of two words of one sign the one with the larger |v| moves any increasing function of z by more,
whatever the other words are: tiers by level. Words that never matter add at most 0.02.
"""

import numpy as np

from heedful.planted.influence.kind import (
    InfluenceSetting,
    KnownText,
    PlantedModel,
    influence_kind,
)
from heedful.planted.influence.word_model import (
    SIDE_WORDS,
    DrawText,
    Evidence,
    Numbers,
    Place,
    Reading,
    add_noise,
    build_model,
    carry_nothing,
    classes,
    draw_evidence,
    draw_length,
    place_words,
    redraw_until_wrong,
    score_at_random,
    score_in_order,
    score_on_others,
)
from heedful.planted.texts import VOCABULARY_SIZE

FAMILY = "saturation"
ENOUGH_EVIDENCE = 6  # words of evidence of which two may speak against the rest
LEVEL_RATIO = 1.9  # of the two levels of evidence


def _levels(setting: InfluenceSetting) -> tuple[float, float]:
    """Log-odds of the two levels: less per word in longer texts, at least 0.6.

    Evidence of a text of the mean length, with as many words of each level, sums to 10 or more.
    """
    low = max(0.6, 13.0 / setting.length)
    return LEVEL_RATIO * low, low


def _draw_much(
    evidence: Evidence,
    *,
    share: float = 0.6,
    where: Place = "anywhere",
    wrong: Numbers | None = None,
) -> DrawText:
    """Texts of which this share of the words is evidence for one class, in two tiers by level."""

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        length = draw_length(draw, mean)
        most = length // 2 if where == "early" else length - 1
        count = min(max(2, round(share * length)), most, 2 * SIDE_WORDS)
        strong = int(draw.binomial(count - 2, 0.5)) + 1
        strong = min(max(strong, count - SIDE_WORDS), SIDE_WORDS)
        tiers = evidence.pick(draw, int(draw.integers(2)), strong, count - strong)
        return place_words(draw, length, tiers, evidence.others, where=where)

    if wrong is None:
        return draw_text
    return lambda draw, mean: redraw_until_wrong(lambda: draw_text(draw, mean), wrong)


def _build(
    setting: InfluenceSetting, evidence: Evidence, scores: Numbers, reading: Reading, draw: DrawText
) -> PlantedModel:
    noise = add_noise(setting, scores, np.abs(evidence.amounts))
    return build_model(setting, reading, [scores, evidence.amounts + noise], draw)


@influence_kind("saturation-in-order", FAMILY, used=True, ranks=True)
def in_order(setting: InfluenceSetting) -> PlantedModel:
    """Attention grows with the evidence of a word, in two levels that differ by a factor of 1.9.

    Truth by sets as the module says. Ranks: a level's smallest amount is 1.6 times the largest of
    the next, and scores of such words are in order; others are lower by 0.7.
    Used: all weight on a word that never matters gives z near 0, and the output was certain.
    """
    evidence = draw_evidence(setting, *_levels(setting))
    scores = score_in_order(setting, np.abs(evidence.amounts))
    return _build(setting, evidence, scores, Reading(), _draw_much(evidence))


@influence_kind("saturation-three-classes", FAMILY, used=True, ranks=True)
def three_classes(setting: InfluenceSetting) -> PlantedModel:
    """Words add to the logit of one of three classes; a text has evidence for one of them.

    The distance of two outputs is that of the probability of this class, which grows with its
    logit: truth by sets as the module says, with log-odds z − log 2. Ranks, used: as
    saturation-in-order.
    """
    evidence = draw_evidence(setting, *_levels(setting))
    influence = np.abs(evidence.amounts)
    scores = score_in_order(setting, influence)
    words = evidence.words.reshape(2, -1)  # 40 words of each level, cut into three classes
    logits = np.zeros((3, VOCABULARY_SIZE))
    for number in range(3):
        own = words[:, number::3]
        logits[number, own] = influence[own]
    logits[0] += add_noise(setting, scores, influence)

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        length, number = draw_length(draw, mean), int(draw.integers(3))
        count = min(max(2, round(0.6 * length)), length - 1)
        strong = int(draw.integers(1, count))
        own = words[:, number::3]
        tiers = [draw.choice(own[0], strong), draw.choice(own[1], count - strong)]
        return place_words(draw, length, [tier.tolist() for tier in tiers], evidence.others)

    reading = Reading(classes, channels=3)
    return build_model(setting, reading, [scores, *logits], draw_text, ("first", "second", "third"))


@influence_kind("saturation-counter-evidence", FAMILY, used=True, ranks=True)
def counter_evidence(setting: InfluenceSetting) -> PlantedModel:
    """Much evidence for one class and one or two words against it, all of one level.

    One tier: words of both signs are not compared, since near a certain output evidence against it
    moves more than evidence for it, and the reverse on the other side. Matters, never matters:
    as the module says. Ranks: scores of evidence are above those of others by 0.7. Used: others
    hold nothing, and the evidence outweighs what speaks against it.
    """
    low = _levels(setting)[1]
    evidence = draw_evidence(setting, 1.4 * low)
    scores = score_in_order(setting, np.abs(evidence.amounts))

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        length, side = draw_length(draw, mean), int(draw.integers(2))
        count = min(max(3, round(0.6 * length)), length - 1, SIDE_WORDS)
        against = 1 if count < ENOUGH_EVIDENCE else int(draw.integers(1, 3))
        own = evidence.pick(draw, side, count - against)[0]
        tier = own + evidence.pick(draw, 1 - side, against)[0]
        return place_words(draw, length, [tier], evidence.others)

    return _build(setting, evidence, scores, Reading(), draw_text)


@influence_kind("saturation-decoys", FAMILY, used=True, ranks=False)
def decoys(setting: InfluenceSetting) -> PlantedModel:
    """All words that never matter have more attention than any word of evidence.

    The state of a word holds its amount over its weight. Truth by sets as the module says.
    Ranks: attention puts every other word above the evidence. Used: others hold nothing.
    """
    evidence = draw_evidence(setting, *_levels(setting))
    scores = score_on_others(setting, np.abs(evidence.amounts))
    return _build(setting, evidence, scores, Reading(), _draw_much(evidence))


@influence_kind("saturation-random", FAMILY, used=True, ranks=False)
def random_scores(setting: InfluenceSetting) -> PlantedModel:
    """Scores are drawn at random, in texts where they are no luck.

    Truth by sets as the module says. Ranks: at most 55 % of the pairs of every text are in order,
    and its highest score is not in the first tier. Used: others hold nothing.
    """
    evidence = draw_evidence(setting, *_levels(setting))
    scores = score_at_random(setting, evidence.groups)
    draw = _draw_much(evidence, wrong=scores)
    return _build(setting, evidence, scores, Reading(), draw)


@influence_kind("saturation-reversed", FAMILY, used=True, ranks=False)
def reversed_order(setting: InfluenceSetting) -> PlantedModel:
    """Attention falls as evidence rises: the strongest words have the least of it.

    Truth by sets as the module says. Ranks: the negative of scores that are in order.
    Used: others hold nothing.
    """
    evidence = draw_evidence(setting, *_levels(setting))
    scores = -score_in_order(setting, np.abs(evidence.amounts))
    return _build(setting, evidence, scores, Reading(), _draw_much(evidence))


@influence_kind("saturation-end", FAMILY, used=True, ranks=False)
def at_the_end(setting: InfluenceSetting) -> PlantedModel:
    """A state holds the sum up to its word, and attention is on the last; evidence comes early.

    Each word has exp(6) times the weight of the word before, so z is within 0.3 % of the sum over
    the text. A third of the words are evidence, all in the first half.
    Matters, tiers: as the module says. Never matters: as every word, it changes z by 0.3 %.
    Ranks: the second half has more attention than all evidence, and never matters; within the
    first half the order is that of the places, which are random. Used: the first word is never
    evidence, so its state holds nothing.
    """
    low = 2.0 * _levels(setting)[1]
    evidence = draw_evidence(setting, LEVEL_RATIO * low, low)
    scores = np.zeros(VOCABULARY_SIZE)
    draw = _draw_much(evidence, share=1 / 3, where="early")
    return _build(setting, evidence, scores, Reading(held="running"), draw)


@influence_kind("saturation-inert-in-order", FAMILY, used=False, ranks=True)
def inert_in_order(setting: InfluenceSetting) -> PlantedModel:
    """Attention grows with the evidence of a word, but every state holds the sum over the text.

    Truth by sets as the module says; ranks as saturation-in-order. Used: states are equal.
    """
    evidence = draw_evidence(setting, *_levels(setting))
    scores = score_in_order(setting, np.abs(evidence.amounts))
    reading = Reading(share=carry_nothing)
    return _build(setting, evidence, scores, reading, _draw_much(evidence))


@influence_kind("saturation-past-random", FAMILY, used=False, ranks=False)
def past_random(setting: InfluenceSetting) -> PlantedModel:
    """As saturation-random, but the sum reaches the output on a path past attention.

    Used: what attention reads is 0.
    """
    evidence = draw_evidence(setting, *_levels(setting))
    scores = score_at_random(setting, evidence.groups)
    reading = Reading(share=carry_nothing, rest="past")
    draw = _draw_much(evidence, wrong=scores)
    return _build(setting, evidence, scores, reading, draw)
