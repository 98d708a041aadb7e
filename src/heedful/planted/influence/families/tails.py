"""Tails: few words that matter, in texts of many that never do.

Evidence adds up: z = Σ vₜ over one to three words of one class, in two levels; of two words of one
sign the one with the larger |v| moves the output by more, whatever the others are: tiers by level.
A word of the lower level alone gives 0.88 or more, 0.2 in probability. All other words, the tail,
never matter: each adds at most 0.02 to z, which is noise.
"""

import numpy as np

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
    WordIds,
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

FAMILY = "tails"
LENGTHS = (20, 40, 60)
LEVELS = (2.2, 1.0)  # log-odds of a word of each level
FREQUENT = 12  # words that make up most of the tail, where some are frequent
FREQUENT_SHARE = 0.7


def _draw_few(
    evidence: Evidence, *, tail: WordIds | None = None, where: Place = "anywhere"
) -> DrawText:
    """Texts with one to three words of one class and a tail of other words."""

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        length = draw_length(draw, mean)
        weak = int(draw.integers(0, min(3, length // 2)))
        tiers = evidence.pick(draw, int(draw.integers(2)), 1, weak)
        others = evidence.others if tail is None else tail
        return place_words(draw, length, tiers, others, where=where)

    return draw_text


def _draw_wrong(draw_text: DrawText, scores: Numbers, held: str = "own") -> DrawText:
    return lambda draw, mean: redraw_until_wrong(lambda: draw_text(draw, mean), scores, held=held)


def _build(
    setting: InfluenceSetting,
    evidence: Evidence,
    scores: Numbers,
    draw: DrawText,
    reading: Reading | None = None,
) -> PlantedModel:
    noise = add_noise(setting, scores, np.abs(evidence.amounts))
    return build_model(setting, reading or Reading(), [scores, evidence.amounts + noise], draw)


@influence_kind("tails-noise", FAMILY, used=True, ranks=True, lengths=LENGTHS)
def noise(setting: InfluenceSetting) -> PlantedModel:
    """Attention is high on the few, in order; on the tail it is noise over a factor of 20.

    Truth by sets as the module says. Ranks: scores grow with the amount, all others are lower by
    0.7. Used: all weight on a word of the tail gives z near 0, and |z| is 1.9 or more.
    """
    evidence = draw_evidence(setting, *LEVELS)
    scores = score_in_order(setting, np.abs(evidence.amounts))
    return _build(setting, evidence, scores, _draw_few(evidence))


@influence_kind("tails-flat", FAMILY, used=True, ranks=True, lengths=LENGTHS)
def flat(setting: InfluenceSetting) -> PlantedModel:
    """Each of the few has more attention than any other word, and the tail has most in total.

    Truth by sets as the module says. Ranks: scores grow with the amount, all others are lower by
    0.2 to 0.6. Used: as tails-noise.
    """
    evidence = draw_evidence(setting, *LEVELS)
    influence = np.abs(evidence.amounts)
    ordered = score_in_order(setting, influence)
    low = ordered[influence > 0].min()
    tail = low - setting.draw("tail").uniform(0.2, 0.6, VOCABULARY_SIZE)
    scores = np.where(influence > 0, ordered, tail)
    return _build(setting, evidence, scores, _draw_few(evidence))


@influence_kind("tails-one-word", FAMILY, used=True, ranks=True, lengths=LENGTHS)
def one_word(setting: InfluenceSetting) -> PlantedModel:
    """One word of a text gives ±2.6; the output is that of the weighted mean Σα·v.

    Any other word has at most exp(−5) of its weight and an amount up to ±0.02.
    Matters: it has 0.6 of the weight against 90 others. Never matters: another word changes z by
    (2.6 + 0.02)·exp(−5) = 0.018 at most, and by 0.04 where only such words are.
    Ranks: its score is above all others by 5. Used: other words hold |v| ≤ 0.02.
    """
    evidence = draw_evidence(setting, 2.6)
    influence = np.abs(evidence.amounts)
    scores = score_in_order(setting, influence, gap=5.0)

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        tiers = evidence.pick(draw, int(draw.integers(2)), 1)
        return place_words(draw, draw_length(draw, mean), tiers, evidence.others)

    return _build(setting, evidence, scores, draw_text, Reading(averaged=True))


@influence_kind("tails-frequent-decoys", FAMILY, used=True, ranks=False, lengths=LENGTHS)
def frequent_decoys(setting: InfluenceSetting) -> PlantedModel:
    """Twelve words that never matter are most of every text, and have the highest weights.

    They are 70 % of the tail on average. The few that matter come next, above the rest of the
    tail. Truth by sets as the module says.
    Ranks: of the pairs of a word that matters and one that does not, 30 % on average are in order.
    Used: words of the tail hold noise.
    """
    evidence = draw_evidence(setting, *LEVELS)
    scores, tail = _score_frequent(setting, evidence)
    return _build(setting, evidence, scores, _draw_few(evidence, tail=tail))


def _score_frequent(setting: InfluenceSetting, evidence: Evidence) -> tuple[Numbers, WordIds]:
    """Scores, highest on frequent words, and a tail to draw from in which they are frequent."""
    scores = score_in_order(setting, np.abs(evidence.amounts))
    frequent, rest = np.split(evidence.others, [FREQUENT])
    scores[frequent] = scores.max() + setting.draw("frequent").uniform(0.2, 1.2, FREQUENT)
    times = round(FREQUENT_SHARE / (1.0 - FREQUENT_SHARE) * len(rest) / FREQUENT)
    return scores, np.concatenate([np.repeat(frequent, times), rest])


@influence_kind("tails-reversed", FAMILY, used=True, ranks=False, lengths=LENGTHS)
def reversed_order(setting: InfluenceSetting) -> PlantedModel:
    """The few have the lowest weights, the strongest of them the lowest of all.

    Truth by sets as the module says. Ranks: the negative of scores that are in order.
    Used: words of the tail hold noise.
    """
    evidence = draw_evidence(setting, *LEVELS)
    scores = -score_in_order(setting, np.abs(evidence.amounts))
    return _build(setting, evidence, scores, _draw_few(evidence))


@influence_kind("tails-random", FAMILY, used=True, ranks=False, lengths=LENGTHS)
def random_scores(setting: InfluenceSetting) -> PlantedModel:
    """Scores are drawn at random for all words, in texts where they are no luck.

    Truth by sets as the module says. Ranks: at most 55 % of the pairs of every text are in order,
    and its highest score is not in the first tier. Used: words of the tail hold noise.
    """
    evidence = draw_evidence(setting, *LEVELS)
    scores = score_at_random(setting, evidence.groups)
    draw = _draw_wrong(_draw_few(evidence), scores)
    return _build(setting, evidence, scores, draw)


@influence_kind("tails-next-word", FAMILY, used=True, ranks=False, lengths=LENGTHS)
def next_word(setting: InfluenceSetting) -> PlantedModel:
    """The state after a word has its score and its evidence, as where a recurrent state lags.

    No two words that matter are neighbours; the text is read as a circle. The sum, and so the
    truth by sets, is as the module says. Ranks: attention is on words of the tail that follow.
    Used: other states hold noise.
    """
    evidence = draw_evidence(setting, *LEVELS)
    scores = score_in_order(setting, np.abs(evidence.amounts))
    draw = _draw_wrong(_draw_few(evidence, where="apart"), scores, "next")
    return _build(setting, evidence, scores, draw, Reading(held="next"))


@influence_kind("tails-end", FAMILY, used=True, ranks=False, lengths=LENGTHS)
def at_the_end(setting: InfluenceSetting) -> PlantedModel:
    """A state holds the sum up to its word, and attention is on the last; the few come early.

    Each word has exp(6) times the weight of the word before, so z is within 0.3 % of the sum over
    the text. Truth by sets as the module says. Ranks: the few are in the first half, so at least
    half of all words have more attention than any of them. Used: the first word is of the tail,
    and its state holds noise.
    """
    evidence = draw_evidence(setting, *LEVELS)
    scores = np.zeros(VOCABULARY_SIZE)
    draw = _draw_few(evidence, where="early")
    return _build(setting, evidence, scores, draw, Reading(held="running"))


@influence_kind("tails-inert-in-order", FAMILY, used=False, ranks=True, lengths=LENGTHS)
def inert_in_order(setting: InfluenceSetting) -> PlantedModel:
    """Attention is as in tails-noise, but the sum reaches the output on a path past it.

    Truth by sets as the module says; ranks as tails-noise. Used: what attention reads is 0.
    """
    evidence = draw_evidence(setting, *LEVELS)
    scores = score_in_order(setting, np.abs(evidence.amounts))
    reading = Reading(share=carry_nothing, rest="past")
    return _build(setting, evidence, scores, _draw_few(evidence), reading)


@influence_kind("tails-inert-decoys", FAMILY, used=False, ranks=False, lengths=LENGTHS)
def inert_decoys(setting: InfluenceSetting) -> PlantedModel:
    """All of the tail has more attention than the few, and every state holds the sum of the text.

    Truth by sets as the module says. Ranks: every word of the tail is above the few.
    Used: states are equal.
    """
    evidence = draw_evidence(setting, *LEVELS)
    scores = score_on_others(setting, np.abs(evidence.amounts))
    reading = Reading(share=carry_nothing)
    return _build(setting, evidence, scores, _draw_few(evidence), reading)
