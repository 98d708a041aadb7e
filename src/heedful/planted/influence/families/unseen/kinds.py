"""Unseen: more kinds, from many sides, by somebody who had not seen the rule that is tried on them.

Two arguments recur in the truths.

One direction: where all words that matter in a text move one sum in one direction, and the output
is an increasing function of it, a larger amount changes the output more, whatever else is there.
Both sides: where they have both signs and p = σ(z), a word of size a has at least the influence of
one of size c, of any sign, if e⁻ᵃ + eᶜ ≤ 2 (see `held_out`). For `BOTH_SIDES` it is 1.96 or less.

Attention reads the same sums wherever it is, if a kind does not say otherwise: then its order is
right or wrong by itself. Words that never matter add 0.02 to a sum at most. Scores "in order" grow
with the amount; those of words that never matter are below all of them.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from heedful.planted.influence.composed_model import (
    TWO_CLASSES,
    ReadOwn,
    TextPlan,
    WordRoles,
    draw_roles,
    text_drawer,
    weigh_in_order,
)
from heedful.planted.influence.families.questions import ASKED, AskedRoles
from heedful.planted.influence.families.unseen.parts import (
    TOPIC_WORDS,
    Keys,
    Pick,
    Topics,
    carry_first_language,
    carry_share,
    collect_in_few,
    count_to_three,
    divide_by_weights,
    draw_with,
    give_stars,
    hold_ends,
    hopeless_third,
    lengths_far_apart,
    long_length,
    mark_words,
    order_scores,
    pick_any_side,
    pick_balanced,
    pick_one_side,
    plant,
    rise_by_position,
    score_against,
    score_ends,
    score_in_context,
    score_inside,
    score_repeats,
    score_sharply,
    spend_words,
    sprinkle,
    sprinkled,
    squash,
    sum_and_own,
    swell_strong,
)
from heedful.planted.influence.kind import (
    InfluenceSetting,
    KnownText,
    Mixture,
    PlantedModel,
    influence_kind,
)
from heedful.planted.influence.wired_transformer import (
    WiredHead,
    signed_values,
    wire_transformer,
)
from heedful.planted.influence.word_model import (
    DrawText,
    Evidence,
    Numbers,
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
    split_words,
)
from heedful.planted.texts import QUESTIONS, VOCABULARY_SIZE

FAMILY = "unseen"
BOTH_SIDES = (2.3, 0.51)
THREE_LEVELS = (2.4, 1.3, 0.75)
LONG = (200,)  # texts of 150 to 300 words
APART = (60,)  # texts of 5 to 300 words
NO_WEIGHT = -800.0  # a score whose weight is 0 exactly, beside any other
CLASSES = 8

# Attention ranks words by their influence, and is used: long texts


@influence_kind("unseen-long-sharpness", FAMILY, used=True, ranks=True, lengths=LONG)
def long_sharpness(setting: InfluenceSetting) -> PlantedModel:
    """Long texts; their register decides how sharp attention is, from nearly flat to one word.

    One word of twelve tells the register. Truth: one direction. Ranks: scores in order, times 0.1
    to 3. In a flat text nearly all weight is on words that never matter, each with less than others
    have. Used: those hold nothing.
    """
    register, evidence = spend_words(draw_evidence(setting, *THREE_LEVELS), 12)
    draw_text = draw_with(pick_one_side(evidence, 2, 7), evidence.others, long_length)
    sharp = mark_words(register, np.geomspace(0.1, 3.0, 12))
    reading = Reading(scores=score_sharply)
    draw_text = sprinkled(draw_text, register)
    return plant(setting, evidence, order_scores(setting, evidence), draw_text, reading, sharp)


@influence_kind("unseen-long-jitter", FAMILY, used=True, ranks=True, lengths=LONG)
def long_jitter(setting: InfluenceSetting) -> PlantedModel:
    """Long texts; a word's score also depends on the word before it, in some texts more.

    Truth: one direction. Ranks: scores are in order but for a jitter by the register of the text,
    of ±0 to ±1.6 at most, so that a few words that never matter may pass the weakest that do; the
    strongest lie 1 above all others. Used: others hold nothing.
    """
    register, evidence = spend_words(draw_evidence(setting, 7.0, 1.7, 0.75), 12)
    draw_text = draw_with(pick_one_side(evidence, 3, 8, lead=1), evidence.others, long_length)
    context = setting.draw("context").uniform(-1.0, 1.0, VOCABULARY_SIZE)
    sizes = mark_words(register, np.linspace(0.0, 1.6, 12))
    reading = Reading(scores=score_in_context)
    draw_text = sprinkled(draw_text, register)
    scores = order_scores(setting, evidence)
    return plant(setting, evidence, scores, draw_text, reading, context, sizes)


@influence_kind("unseen-long-debate", FAMILY, used=True, ranks=True, lengths=LONG)
def long_debate(setting: InfluenceSetting) -> PlantedModel:
    """A sixth of a long text is strong or weak evidence, as much for one class as for the other.

    Truth: both sides. Ranks: scores in order; strong words share the top, none has much weight.
    Used: all weight on one word leaves its sign alone.
    """
    evidence = draw_evidence(setting, *BOTH_SIDES)
    draw_text = draw_with(
        pick_balanced(evidence, (0.08, 0.1), 1.5), evidence.others, long_length, 6
    )
    return plant(setting, evidence, order_scores(setting, evidence), draw_text)


def _more_in_longer(evidence: Evidence) -> Pick:
    """One word of evidence in the shortest texts, up to nineteen in the longest."""

    def pick(draw: np.random.Generator, length: int) -> Sequence[Sequence[int]]:
        least, most = 1 + int(length > 8), 1 + length // 16
        return pick_one_side(evidence, least, most, lead=2)(draw, length)

    return pick


@influence_kind("unseen-lengths-apart", FAMILY, used=True, ranks=True, lengths=APART)
def lengths_apart(setting: InfluenceSetting) -> PlantedModel:
    """Texts of 5 to 300 words, with one word that matters or up to nineteen.

    Truth: one direction. Ranks: scores in order. Used: others hold nothing.
    """
    evidence = draw_evidence(setting, *THREE_LEVELS)
    draw_text = draw_with(_more_in_longer(evidence), evidence.others, lengths_far_apart)
    return plant(setting, evidence, order_scores(setting, evidence), draw_text)


# The same: how attention is shared out


@influence_kind("unseen-flat", FAMILY, used=True, ranks=True, lengths=(6, 12, 24))
def flat(setting: InfluenceSetting) -> PlantedModel:
    """Attention is nearly the same on all words, within 10 %, and in order.

    Truth: one direction. Ranks: scores in order, times 0.02. Used: others hold nothing.
    """
    evidence = draw_evidence(setting, *THREE_LEVELS)
    draw_text = draw_with(pick_one_side(evidence, 1, 5, lead=2), evidence.others)
    return plant(setting, evidence, 0.02 * order_scores(setting, evidence), draw_text)


@influence_kind("unseen-peaked", FAMILY, used=True, ranks=True, lengths=(8, 16, 32))
def peaked(setting: InfluenceSetting) -> PlantedModel:
    """Nearly all attention is on the strongest words; weaker ones have next to none, in order.

    Truth: one direction. Ranks: scores in order, times 3: weights of two tiers are 4 to 30 times
    apart. Used: words that never matter hold nothing, exactly.
    """
    evidence = draw_evidence(setting, 2.8, 1.3, 0.65)
    draw_text = draw_with(pick_one_side(evidence, 2, 5), evidence.others)
    scores = 3.0 * order_scores(setting, evidence)
    return build_model(setting, Reading(), [scores, evidence.amounts], draw_text)


@influence_kind("unseen-sparse", FAMILY, used=True, ranks=True)
def sparse(setting: InfluenceSetting) -> PlantedModel:
    """Words that never matter have no attention at all, others have it in order.

    Truth: one direction; others add 0 exactly. Ranks: scores in order, or a weight of 0.
    Used: others hold nothing.
    """
    evidence = draw_evidence(setting, *THREE_LEVELS)
    scores = np.where(evidence.amounts != 0, order_scores(setting, evidence), NO_WEIGHT)
    draw_text = draw_with(pick_one_side(evidence, 1, 5, lead=2), evidence.others)
    reading = Reading(amounts=divide_by_weights, averaged=True)
    return build_model(setting, reading, [scores, evidence.amounts], draw_text)


def _draw_stacked(evidence: Evidence, *, at_end: bool) -> DrawText:
    """Evidence stands together: strongest last at the end, or strongest first at the beginning."""
    pick = pick_one_side(evidence, 2, 5)

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        length, places, end = draw_length(draw, mean), [], 0
        ids = draw.choice(evidence.others, length)
        for words in (one for one in pick(draw, length) if len(one)):
            own = np.arange(end, end := end + len(words))
            own = length - 1 - own if at_end else own
            ids[own] = words
            places.append(tuple(sorted(own.tolist())))
        return KnownText(" ".join(f"w{number}" for number in ids), tuple(places))

    return draw_text


@influence_kind("unseen-conclusion", FAMILY, used=True, ranks=True)
def conclusion(setting: InfluenceSetting) -> PlantedModel:
    """Attention rises along the text and knows no word; texts come to their point at the end.

    Truth: one direction. Ranks: the words that matter are the last ones, the strongest the very
    last. Used: words before hold nothing.
    """
    evidence = draw_evidence(setting, *THREE_LEVELS)
    draw_text = _draw_stacked(evidence, at_end=True)
    return plant(
        setting, evidence, np.zeros(VOCABULARY_SIZE), draw_text, Reading(scores=rise_by_position)
    )


@influence_kind("unseen-two-heads", FAMILY, used=True, ranks=True, architecture="transformer")
def two_heads(setting: InfluenceSetting) -> PlantedModel:
    """One head reads the strong words, the other all weaker ones; their mean is in order.

    With weights ω (see `wired_transformer`): 0.5 for strong words, then 0.2 and 0.13; other words
    0.002 to 0.005 in both. Truth: a word moves z by ω(v − z)/(D + ω) in its head, 2.2 for a first
    strong one and 1.1 for a second, where a weaker one moves it by 0.75 at most.
    Ranks: D is 1.5 to 2.5 with strong words, 1 to 2 with weaker ones. Used: others hold nothing.
    """
    roles, heads = draw_roles(setting, TWO_CLASSES), []
    for name, weights, value in (
        ("strong", (0.5, 0.0, 0.0, 0.0), 6.6),
        ("weaker", (0.0, 0.2, 0.13, 0.0), 4.7),
    ):
        draw, own = setting.draw(f"head of {name} words"), np.array(weights)[roles.tiers]
        drawn = own * draw.uniform(0.95, 1.05, len(own)) + draw.uniform(0.002, 0.005, len(own))
        heads.append(WiredHead(drawn, np.where(own > 0, signed_values(roles, value), 0.0)))
    return PlantedModel(wire_transformer(setting, [heads]), text_drawer(roles, TextPlan()))


# The same: words that act in groups, or on conditions


def _draw_keys(setting: InfluenceSetting) -> Keys:
    seconds, evidence = spend_words(draw_evidence(setting, 1.0), 20)
    return Keys(evidence, seconds)


@influence_kind("unseen-spare-keys", FAMILY, used=True, ranks=True)
def spare_keys(setting: InfluenceSetting) -> PlantedModel:
    """A text has two keys A and two keys B; one of each is needed, and one is enough.

    So no word changes anything if it alone is taken away, or alone is there. Truth: adding an A to
    a B moves p by 0.45, and a B to an A. All keys are one tier. Ranks: keys are above others by
    0.5. Used: others hold nothing, and z is 3 or −3 in every text.
    """
    keys = _draw_keys(setting)
    return keys.plant(setting, score_in_order(setting, keys.influence))


def _plant_quorum(setting: InfluenceSetting, reading: Reading) -> PlantedModel:
    own, others = split_words(setting, 30)
    amounts = mark_words(own)
    scores = score_in_order(setting, amounts)

    def pick(draw: np.random.Generator, length: int) -> list[list[int]]:  # noqa: ARG001
        count = int(draw.integers(3, 6)) if draw.integers(2) else 2
        return [draw.choice(own, count, replace=False).tolist()]

    columns = [scores, amounts + add_noise(setting, scores, amounts)]
    return build_model(setting, reading, columns, draw_with(pick, others, least=6))


@influence_kind("unseen-quorum", FAMILY, used=True, ranks=True)
def quorum(setting: InfluenceSetting) -> PlantedModel:
    """Three of up to five words are needed for the second class; half of the texts have only two.

    Truth: one direction, all amounts equal: one tier. A second word moves p by 0.14, a third by
    0.52. Ranks: they are above others by 0.5. Used: others hold nothing, and with one word z
    depends on how much weight it has.
    """
    return _plant_quorum(setting, Reading(count_to_three))


def _draw_topics(setting: InfluenceSetting) -> Topics:
    names, evidence = spend_words(draw_evidence(setting, 1.8, 0.8), 2 * TOPIC_WORDS)
    return Topics(evidence, names.reshape(2, TOPIC_WORDS))


@influence_kind("unseen-right-topic", FAMILY, used=True, ranks=True)
def right_topic(setting: InfluenceSetting) -> PlantedModel:
    """Opinions count where their topic is named, and attention follows the topic of the text.

    z = A·tanh(3a) + B·tanh(3b). Truth: without its name no opinion changes anything, and the name
    brings in all that are there; with it they have one direction. Opinions on the topic that is not
    named never matter. Ranks: scores in order, with the name first; opinions on the other topic are
    8 lower. Used: others hold nothing.
    """
    return _draw_topics(setting).plant(setting, right=True)


# The same: outputs


@influence_kind("unseen-ambivalent", FAMILY, used=True, ranks=True)
def ambivalent(setting: InfluenceSetting) -> PlantedModel:
    """Four words in five matter, but praise and blame cancel: all outputs are within 0.4 to 0.6.

    Truth: both sides. Ranks: scores in order. Used: all weight on a word leaves its sign alone.
    """
    evidence = draw_evidence(setting, *BOTH_SIDES)
    draw_text = draw_with(pick_balanced(evidence, (0.4, 0.4), 0.4), evidence.others, least=6)
    return plant(setting, evidence, order_scores(setting, evidence), draw_text)


@influence_kind("unseen-lopsided", FAMILY, used=True, ranks=True)
def lopsided(setting: InfluenceSetting) -> PlantedModel:
    """Seven texts in eight are of the second class; there is weak evidence for and against.

    Truth: both sides. Ranks: scores in order. Used: others hold nothing, |z| is 0.8 or more.
    """
    evidence = draw_evidence(setting, *BOTH_SIDES)

    def pick(draw: np.random.Generator, length: int) -> list[list[int]]:
        strong = int(draw.integers(1, min(3, length // 4) + 1))
        tiers = evidence.pick(draw, int(draw.random() < 7 / 8), strong, 0)
        weak = draw.choice(evidence.words[1].ravel(), int(draw.integers(3)), replace=False)
        return [tiers[0], weak.tolist()]

    draw_text = draw_with(pick, evidence.others)
    return plant(setting, evidence, order_scores(setting, evidence), draw_text)


def _plant_stars(setting: InfluenceSetting, *, right: bool) -> PlantedModel:
    evidence = draw_evidence(setting, 1.9, 1.1, 0.6)
    draw_any = draw_with(pick_one_side(evidence, 1, 4, lead=2), evidence.others)
    scores = order_scores(setting, evidence) if right else score_at_random(setting, evidence.groups)

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        if right:
            return draw_any(draw, mean)
        return redraw_until_wrong(lambda: draw_any(draw, mean), scores)

    noise = add_noise(setting, scores, np.abs(evidence.amounts))
    columns, labels = [scores, evidence.amounts + noise], tuple(f"{n} stars" for n in range(1, 6))
    return build_model(setting, Reading(give_stars), columns, draw_text, labels)


@influence_kind("unseen-stars", FAMILY, used=True, ranks=True)
def stars(setting: InfluenceSetting) -> PlantedModel:
    """Ratings of one to five stars from one sum; a text has praise or blame.

    Truth: the distance of two outputs is the largest change of P(k > t) over t, and each of these
    grows with the sum: one direction. Ranks: scores in order. Used: others hold nothing, and
    without evidence a text has three stars.
    """
    return _plant_stars(setting, right=True)


@influence_kind("unseen-heavy-tailed", FAMILY, used=True, ranks=True, lengths=(12, 24, 48))
def heavy_tailed(setting: InfluenceSetting) -> PlantedModel:
    """Amounts of six levels from 0.52 to 8, each about half as frequent as the one below.

    Truth: one direction. Ranks: scores in order. Used: others hold nothing, and two words at least
    matter in each text.
    """
    evidence = draw_evidence(setting, 8.0, 4.6, 2.7, 1.55, 0.9, 0.52)

    def pick(draw: np.random.Generator, length: int) -> list[list[int]]:
        count = int(draw.integers(2, min(8, length // 2) + 1))
        levels = np.maximum(6 - draw.geometric(0.5, count), 0)
        counts = np.bincount(levels, minlength=6).tolist()
        return evidence.pick(draw, int(draw.integers(2)), *counts)

    scores = order_scores(setting, evidence)
    return plant(setting, evidence, scores, draw_with(pick, evidence.others))


@influence_kind("unseen-near-ties", FAMILY, used=True, ranks=True, lengths=(8, 16, 32))
def near_ties(setting: InfluenceSetting) -> PlantedModel:
    """Two to seven words matter alike, within 1 %, for and against; attention on them is as even.

    Truth: all are one tier. Ranks: their weights lie within 2 %, in no order, and above those of
    all other words by a factor of 2. Used: all weight on one word leaves its sign alone.
    """
    evidence, draw = draw_evidence(setting, 1.1), setting.draw("ties")
    even = 1.1 * np.sign(evidence.amounts) * draw.uniform(0.99, 1.01, VOCABULARY_SIZE)
    evidence = replace(evidence, amounts=even)
    ties = draw.uniform(-0.01, 0.01, VOCABULARY_SIZE)
    scores = np.where(even != 0, ties, order_scores(setting, evidence))

    def pick(draw: np.random.Generator, length: int) -> list[list[int]]:
        count = int(draw.integers(2, min(7, length // 2) + 1))
        return [draw.choice(evidence.words.ravel(), count, replace=False).tolist()]

    return plant(setting, evidence, scores, draw_with(pick, evidence.others))


@influence_kind("unseen-eight-classes", FAMILY, used=True, ranks=True, lengths=(6, 12, 24))
def eight_classes(setting: InfluenceSetting) -> PlantedModel:
    """Eight classes, the first as frequent as the last four together; evidence is for one of them.

    Truth: the distance of two outputs is the change of that class's probability: one direction. It
    is 0.125 without evidence, and a word of the last level adds 0.12. Ranks: scores in order.
    Used: others hold nothing, and no text has words of the last level only.
    """
    evidence = draw_evidence(setting, 3.2, 1.75, 0.95)
    words = evidence.words.reshape(3, -1, CLASSES)
    odds = 1.0 / np.arange(1.0, CLASSES + 1.0)
    scores = order_scores(setting, evidence)

    def pick(draw: np.random.Generator, length: int) -> list[list[int]]:
        levels = draw.integers(3, size=int(draw.integers(1, min(4, length // 2) + 1)))
        levels[0] = draw.integers(2)
        counts = np.bincount(levels, minlength=3)
        own = words[..., draw.choice(CLASSES, p=odds / odds.sum())]
        pairs = zip(own, counts, strict=True)
        return [draw.choice(level, count, replace=False).tolist() for level, count in pairs]

    sizes = np.abs(evidence.amounts)
    columns = [
        mark_words(own, sizes[own]) for own in (words[..., k].ravel() for k in range(CLASSES))
    ]
    columns[0] = columns[0] + add_noise(setting, scores, sizes)
    labels = tuple(f"class {number}" for number in range(CLASSES))
    reading, draw_text = Reading(classes, channels=CLASSES), draw_with(pick, evidence.others)
    return build_model(setting, reading, [scores, *columns], draw_text, labels)


# The same: what attention carries, what is repeated, and what is asked


@influence_kind("unseen-opposed", FAMILY, used=True, ranks=True)
def opposed(setting: InfluenceSetting) -> PlantedModel:
    """A path past attention says three times too much, and attention takes two thirds of it back.

    So attention reads each word with the opposite sign of its effect. Truth: z = 3Σ − 2Σ, one
    direction. Ranks: influence has no sign; scores in order, times 0.3. Used: words that never
    matter have much of the weight, so with all of it on one word z = 3Σ − 2v/α is near 0 or below.
    """
    evidence = draw_evidence(setting, *THREE_LEVELS)
    draw_text = draw_with(pick_one_side(evidence, 1, 4, lead=2), evidence.others)
    reading = Reading(share=carry_share(-2.0), rest="past")
    return plant(setting, evidence, 0.3 * order_scores(setting, evidence), draw_text, reading)


@influence_kind("unseen-refrain", FAMILY, used=True, ranks=True, lengths=(12, 24, 48))
def refrain(setting: InfluenceSetting) -> PlantedModel:
    """A text repeats two words that never matter, and its strongest word up to four times.

    Truth: one direction. Ranks: scores in order, the same for every repetition.
    Used: others hold nothing.
    """
    evidence = draw_evidence(setting, *THREE_LEVELS)
    pick = pick_one_side(evidence, 1, 4, lead=2)

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        length = draw_length(draw, mean)
        tiers = [list(one) for one in pick(draw, length) if one]
        tiers[0] = tiers[0] + [tiers[0][0]] * int(draw.integers(max(1, min(4, length // 4))))
        return place_words(draw, length, tiers, draw.choice(evidence.others, 2))

    return plant(setting, evidence, order_scores(setting, evidence), draw_text)


@influence_kind("unseen-asked-rotated", FAMILY, used=True, ranks=True, architecture=ASKED)
def asked_rotated(setting: InfluenceSetting) -> PlantedModel:
    """The same words matter for all three questions, but which of them most depends on it.

    Truth: a word moves the log-odds by its amount for the question: one direction.
    Ranks: weights are in order of amounts for the question. Used: others hold next to nothing.
    """
    one, roles = draw_roles(setting, TWO_CLASSES), []
    for number in range(QUESTIONS):
        tiers = np.where(one.neutral, one.tiers, (one.tiers + number) % len(TWO_CLASSES))
        low, high = np.array([*TWO_CLASSES, (0.0, 0.0)])[tiers].T
        drawn = setting.draw(f"amounts {number}").uniform(low, high)
        amounts = np.where(one.neutral, one.amounts, drawn)
        roles.append(replace(one, tiers=tiers, amounts=amounts))
    asked = AskedRoles(setting, tuple(roles))
    return asked.model(asked.weigh(weigh_in_order), ReadOwn())


# Attention is wrong


@influence_kind("unseen-long-middling", FAMILY, used=True, ranks=False, lengths=LONG)
def long_middling(setting: InfluenceSetting) -> PlantedModel:
    """Long texts; words that matter are in order among themselves, but in the middle of others.

    Truth: one direction. Ranks: scores of others have a deviation of 1, those of evidence lie
    within ±0.2, so half of all others are above. Used: others hold nothing.
    """
    evidence = draw_evidence(setting, *THREE_LEVELS)
    others = setting.draw("others").normal(0.0, 1.0, VOCABULARY_SIZE)
    ordered = np.clip(order_scores(setting, evidence), -1.0, 1.0)
    scores = np.where(evidence.amounts != 0, 0.2 * ordered, others)
    draw_text = draw_with(pick_one_side(evidence, 2, 7), evidence.others, long_length)
    return plant(setting, evidence, scores, draw_text)


@influence_kind("unseen-right-tail", FAMILY, used=True, ranks=False)
def right_tail(setting: InfluenceSetting) -> PlantedModel:
    """Weak words are above those that never matter, and strong ones below all: wrong at the top.

    Truth: both sides. Ranks: 40 % of a text are strong words, with 5 less than any other; the order
    of the rest is right. Used: all weight on a word leaves its sign alone.
    """
    evidence = draw_evidence(setting, *BOTH_SIDES)
    scores = order_scores(setting, evidence)
    scores[evidence.words[0]] = scores.min() - 1.0 + 0.1 * scores[evidence.words[0]]
    draw_text = draw_with(pick_balanced(evidence, (0.4, 0.3), 1.0), evidence.others, least=7)
    return plant(setting, evidence, scores, draw_text)


@influence_kind("unseen-collectors", FAMILY, used=True, ranks=False)
def collectors(setting: InfluenceSetting) -> PlantedModel:
    """Some words that never matter collect the whole text in their states; all attention is there.

    Other words have none at all. Truth: one direction; attention reads Σ in every set. Ranks:
    evidence has a weight of 0, as all words that do not collect. Used: the states of others
    hold a fiftieth.
    """
    own, evidence = spend_words(draw_evidence(setting, *THREE_LEVELS), 60)
    drawn = setting.draw("scores").uniform(-1.0, 1.0, VOCABULARY_SIZE)
    scores = np.where(mark_words(own) > 0, drawn, NO_WEIGHT)
    draw_text = draw_with(pick_one_side(evidence, 1, 5, lead=2), evidence.others)
    keep = np.where(mark_words(own) > 0, 1.0, 0.02)
    reading = Reading(amounts=collect_in_few, averaged=True)
    columns = [scores, evidence.amounts, keep]
    return build_model(setting, reading, columns, sprinkled(draw_text, own, 0.4))


@influence_kind("unseen-echo", FAMILY, used=True, ranks=False, lengths=(12, 24, 48))
def echo(setting: InfluenceSetting) -> PlantedModel:
    """Attention is on words that are repeated; those that matter come once.

    Truth: one direction. Ranks: 80 % of the words that never matter are three words repeated; the
    others have scores that differ by 0.1 at most, at random. Used: others hold nothing.
    """
    evidence = draw_evidence(setting, *THREE_LEVELS)
    scores = setting.draw("scores").uniform(0.0, 0.1, VOCABULARY_SIZE)
    draw_any = draw_with(pick_one_side(evidence, 1, 4, lead=2), evidence.others)

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        known = draw_any(draw, mean)
        return sprinkle(draw, known, draw.choice(evidence.others, 3), 0.8)

    return plant(setting, evidence, scores, draw_text, Reading(scores=score_repeats))


@influence_kind("unseen-sentence-ends", FAMILY, used=True, ranks=False, lengths=(12, 24, 48))
def sentence_ends(setting: InfluenceSetting) -> PlantedModel:
    """The full stop of a sentence holds its evidence, and has attention in proportion.

    Truth: one direction: however the text falls into sentences, they add up to Σ. Stops never
    matter. Ranks: words that are no stop have scores at random, below those of most stops.
    Used: words inside a sentence hold nothing.
    """
    stops, evidence = spend_words(draw_evidence(setting, *THREE_LEVELS), 8)
    scores = setting.draw("scores").uniform(-2.0, -0.5, VOCABULARY_SIZE)
    draw_any = draw_with(pick_one_side(evidence, 1, 4, lead=2), evidence.others)

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        known = sprinkle(draw, draw_any(draw, mean), stops, 0.15)
        return replace(known, text=f"{known.text} w{draw.choice(stops)}")

    reading = Reading(scores=score_ends, amounts=hold_ends)
    return plant(setting, evidence, scores, draw_text, reading, mark_words(stops))


@influence_kind("unseen-point-first", FAMILY, used=True, ranks=False)
def point_first(setting: InfluenceSetting) -> PlantedModel:
    """As unseen-conclusion, but texts begin with their point, and attention still rises to the end.

    Ranks: what matters comes first, the strongest at the very beginning.
    """
    evidence = draw_evidence(setting, *THREE_LEVELS)
    draw_text = _draw_stacked(evidence, at_end=False)
    return plant(
        setting, evidence, np.zeros(VOCABULARY_SIZE), draw_text, Reading(scores=rise_by_position)
    )


@influence_kind("unseen-devils-advocate", FAMILY, used=True, ranks=False)
def devils_advocate(setting: InfluenceSetting) -> PlantedModel:
    """Attention is on the one weak word that speaks against the output, and passes over the others.

    Truth: both sides. Ranks: the word against is first; the two or more that decide are below all
    that never matter. Used: all weight on the word against turns the sign.
    """
    evidence = draw_evidence(setting, *BOTH_SIDES)

    def pick(draw: np.random.Generator, length: int) -> list[list[int]]:
        side, most = int(draw.integers(2)), max(1, min(2, length // 6))
        counts = draw.integers(1, most + 1, 2).tolist()
        strong, weak = evidence.pick(draw, side, *counts)
        return [strong, weak + draw.choice(evidence.words[1, 1 - side], 1).tolist()]

    reading = Reading(scores=score_against)
    scores, draw_text = order_scores(setting, evidence), draw_with(pick, evidence.others, least=6)
    return plant(setting, evidence, scores, draw_text, reading)


@influence_kind("unseen-wrong-topic", FAMILY, used=True, ranks=False)
def wrong_topic(setting: InfluenceSetting) -> PlantedModel:
    """As unseen-right-topic, but attention is on the opinions about the topic that is not named.

    Ranks: the name and the opinions on it are below all other words.
    """
    return _draw_topics(setting).plant(setting, right=False)


@influence_kind("unseen-missed-keys", FAMILY, used=True, ranks=False)
def missed_keys(setting: InfluenceSetting) -> PlantedModel:
    """As unseen-spare-keys, but all other words have more attention than the keys."""
    keys = _draw_keys(setting)
    return keys.plant(setting, score_on_others(setting, keys.influence))


@influence_kind("unseen-flat-reversed", FAMILY, used=True, ranks=False, lengths=(6, 12, 24))
def flat_reversed(setting: InfluenceSetting) -> PlantedModel:
    """As unseen-flat, but in the reverse order: the strongest words have a little less."""
    evidence = draw_evidence(setting, *THREE_LEVELS)
    draw_text = draw_with(pick_one_side(evidence, 1, 5, lead=2), evidence.others)
    return plant(setting, evidence, -0.02 * order_scores(setting, evidence), draw_text)


@influence_kind("unseen-larger-part", FAMILY, used=True, ranks=False)
def larger_part(setting: InfluenceSetting) -> PlantedModel:
    """Attention carries 0.7 of the evidence and is on the other words; the rest goes past it.

    Truth: both sides. Ranks: all others are above words that matter. Used: others hold nothing, so
    that with all weight on one of them only 0.3 of z, which is 4.6 at most, is left.
    """
    evidence = draw_evidence(setting, *BOTH_SIDES)
    scores = score_on_others(setting, np.abs(evidence.amounts))
    draw_text = draw_with(pick_any_side(evidence, 1, 3), evidence.others, least=6)
    reading = Reading(share=carry_share(0.7), rest="past")
    return plant(setting, evidence, scores, draw_text, reading)


@influence_kind("unseen-random-stars", FAMILY, used=True, ranks=False)
def random_stars(setting: InfluenceSetting) -> PlantedModel:
    """As unseen-stars, but scores are drawn at random, in texts where they are no luck."""
    return _plant_stars(setting, right=False)


@influence_kind("unseen-lengths-random", FAMILY, used=True, ranks=False, lengths=APART)
def lengths_random(setting: InfluenceSetting) -> PlantedModel:
    """As unseen-lengths-apart, but scores are drawn at random, in texts where they are no luck."""
    evidence = draw_evidence(setting, *THREE_LEVELS)
    scores = score_at_random(setting, evidence.groups)
    draw_any = draw_with(_more_in_longer(evidence), evidence.others, lengths_far_apart)

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        return redraw_until_wrong(lambda: draw_any(draw, mean), scores)

    return plant(setting, evidence, scores, draw_text)


# Attention has no effect


@influence_kind("unseen-squashed", FAMILY, used=False, ranks=True)
def squashed(setting: InfluenceSetting) -> PlantedModel:
    """Other weights double or halve what is read, but the output is at the end of a tanh already.

    z = 3·tanh(Σα·h), where h is Σ, or 2Σ for strong words, of which every text has one: Σ is 2.9 or
    more. Truth: one direction; without a strong word every state holds Σ. Ranks: scores in order.
    Used: tanh of 2.9 and of more differ by 0.006.
    """
    evidence = draw_evidence(setting, 3.3, 0.95, 0.45)
    strong = mark_words(evidence.words[0].ravel())
    draw_text = draw_with(pick_one_side(evidence, 1, 4, lead=1), evidence.others)
    reading = Reading(squash, amounts=swell_strong, averaged=True)
    return plant(setting, evidence, order_scores(setting, evidence), draw_text, reading, strong)


@influence_kind("unseen-dead-class", FAMILY, used=False, ranks=True)
def dead_class(setting: InfluenceSetting) -> PlantedModel:
    """Attention moves the logit of a class by up to ±4 that has no chance; others it does not.

    Truth: both sides, for the two other classes. Ranks: scores in order. Used: the third class
    has e⁻⁶ = 0.0025 at most.
    """
    evidence = draw_evidence(setting, *BOTH_SIDES)
    scores = order_scores(setting, evidence)
    own = setting.draw("third class").uniform(-4.0, 4.0, VOCABULARY_SIZE)
    columns = [scores, evidence.amounts + add_noise(setting, scores, np.abs(evidence.amounts)), own]
    reading = Reading(hopeless_third, amounts=sum_and_own, averaged=True)
    draw_text = draw_with(pick_any_side(evidence, 3, 3), evidence.others)
    return build_model(setting, reading, columns, draw_text, ("no", "yes", "neither"))


@influence_kind("unseen-quorum-past", FAMILY, used=False, ranks=True)
def quorum_past(setting: InfluenceSetting) -> PlantedModel:
    """As unseen-quorum, but how many words there are is known to every state."""
    return _plant_quorum(setting, Reading(count_to_three, share=carry_nothing))


@influence_kind("unseen-long-copied", FAMILY, used=False, ranks=False, lengths=LONG)
def long_copied(setting: InfluenceSetting) -> PlantedModel:
    """Every state of a long text holds the sums, and attention is peaked on words of no influence.

    Truth: both sides. Ranks: all others are above words that matter. Used: all states are equal.
    """
    evidence = draw_evidence(setting, *BOTH_SIDES)
    scores = 3.0 * score_on_others(setting, np.abs(evidence.amounts))
    draw_text = draw_with(pick_any_side(evidence, 4, 8), evidence.others, long_length)
    return plant(setting, evidence, scores, draw_text, Reading(share=carry_nothing))


# A claim holds in one part of the texts

LANGUAGE_RANKS = Mixture("ranks", "other", "first language", "second language")
LANGUAGE_USED = Mixture("used", "leverage", "first language", "second language")
WINDOW = Mixture("ranks", "length", "inside the window", "beyond the window")
QUESTION = Mixture("ranks", "other", "first question", "other questions")


def _draw_languages(evidence: Evidence, mixture: Mixture) -> DrawText:
    """Half of the texts are in a second language, which has no word of the first."""
    own, others = np.split(evidence.words, 2, axis=2), np.array_split(evidence.others, 2)

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        language, length, side = int(draw.integers(2)), draw_length(draw, mean), draw.integers(2)
        counts = (1, int(draw.integers(min(3, length // 3) + 1)))
        pairs = zip(own[language][:, side], counts, strict=True)
        tiers = [draw.choice(words, count, replace=False).tolist() for words, count in pairs]
        known = place_words(draw, length, [one for one in tiers if one], others[language])
        return replace(known, part=mixture.fails if language else mixture.holds)

    return draw_text


def _second_language(evidence: Evidence) -> Numbers:
    words = np.split(evidence.words, 2, axis=2)[1].ravel()
    return mark_words(np.concatenate([words, np.array_split(evidence.others, 2)[1]]))


@influence_kind("unseen-language-ranks", FAMILY, used=True, ranks=None, mixture=LANGUAGE_RANKS)
def language_ranks(setting: InfluenceSetting) -> PlantedModel:
    """Attention is in order in one language; in the other it is on all that never matters.

    Truth: one direction. Used: others hold nothing.
    """
    evidence = draw_evidence(setting, 2.2, 1.1)
    wrong = score_on_others(setting, np.abs(evidence.amounts))
    scores = np.where(_second_language(evidence) > 0, wrong, order_scores(setting, evidence))
    return plant(setting, evidence, scores, _draw_languages(evidence, LANGUAGE_RANKS))


@influence_kind("unseen-language-used", FAMILY, used=None, ranks=True, mixture=LANGUAGE_USED)
def language_used(setting: InfluenceSetting) -> PlantedModel:
    """In one language attention carries the evidence; in the other it is known to every state.

    Truth: one direction. Ranks: scores in order in both. Used: in the first language others hold
    nothing.
    """
    evidence = draw_evidence(setting, 2.2, 1.1)
    draw_text, second = _draw_languages(evidence, LANGUAGE_USED), _second_language(evidence)
    reading = Reading(share=carry_first_language)
    return plant(setting, evidence, order_scores(setting, evidence), draw_text, reading, second)


@influence_kind(
    "unseen-window", FAMILY, used=True, ranks=None, mixture=WINDOW, lengths=(12, 20, 40)
)
def window(setting: InfluenceSetting) -> PlantedModel:
    """Attention sees as many words as texts have on average; in longer ones evidence comes after.

    Truth: one direction. Ranks: texts that are no longer are in order. Others have 1.5 to 2 times
    as many words, and evidence has the weight of all words beyond the window, below all inside.
    Used: words that never matter hold nothing.
    """
    evidence, limit = draw_evidence(setting, 2.2, 1.2, 0.8), setting.length
    pick = pick_one_side(evidence, 1, 3)

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        inside = bool(draw.integers(2))
        some = int(draw.integers(4, limit + 1) if inside else draw.integers(limit // 2, limit + 1))
        some = min(some, 3 * mean // 2)  # short texts, for proofs
        tiers = [one for one in pick(draw, some) if one]
        known = place_words(draw, some, tiers, evidence.others)
        if inside:
            return replace(known, part=WINDOW.holds)
        before = " ".join(f"w{number}" for number in draw.choice(evidence.others, limit))
        moved = tuple(tuple(place + limit for place in tier) for tier in known.tiers)
        return KnownText(f"{before} {known.text}", moved, part=WINDOW.fails)

    reading = Reading(scores=score_inside(limit))
    return plant(setting, evidence, order_scores(setting, evidence), draw_text, reading)


@influence_kind(
    "unseen-stuck-question", FAMILY, used=True, ranks=None, mixture=QUESTION, architecture=ASKED
)
def stuck_question(setting: InfluenceSetting) -> PlantedModel:
    """Whatever is asked, attention looks for the answer to the first question.

    Each question has its own words. Truth: a word moves the log-odds by its amount for the
    question: one direction. Ranks: weights are in order for the first question; words that matter
    for another have less than all other words. Used: these hold next to nothing.
    """
    drawn = draw_roles(setting, TWO_CLASSES, classes=2 * QUESTIONS)
    neutral, roles = draw_roles(setting, (), purpose="amounts of neutral words").amounts, []
    for number in range(QUESTIONS):
        own = ~drawn.neutral & (drawn.sides // 2 == number)
        tiers = np.where(own, drawn.tiers, len(TWO_CLASSES))
        amounts = np.where(own, drawn.amounts, neutral)
        roles.append(WordRoles(tiers, drawn.sides % 2, amounts, 2, TWO_CLASSES))
    asked = AskedRoles(setting, tuple(roles))
    weights = weigh_in_order(setting, roles[0])
    low = ~drawn.neutral & roles[0].neutral
    weights[low] = weights.min() - setting.draw("low").uniform(0.0, 1.0, int(low.sum()))
    planted = asked.model([weights] * QUESTIONS, ReadOwn())

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        known = asked.draw_text(draw, mean)
        first = (known.question or "").startswith("q0 ")
        return replace(known, part=QUESTION.holds if first else QUESTION.fails)

    return replace(planted, draw=draw_text)
