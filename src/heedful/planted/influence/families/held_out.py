"""Held out: kinds that no other family has, to try on them what was made with the others.

Where all words that matter move one sum in one direction, and the output is an increasing function
of the sum, a word of larger amount changes the output more, whatever other words are there. Where
they have both signs and p = σ(z), an amount a > 0 changes p by at least p(1 − p)(1 − e⁻ᵃ), and −c
by at most p(1 − p)(eᶜ − 1); by symmetry signs can be exchanged, so that a word of size a has at
least the influence of one of size c, of any sign, if e⁻ᵃ + eᶜ ≤ 2. For `BOTH_SIDES` it is 1.96 or
less. Words that never matter add at most 0.02 to a sum, if a kind does not say otherwise.
"""

from collections.abc import Sequence
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
    Output,
    Place,
    Reading,
    WordIds,
    add_noise,
    build_model,
    carry_nothing,
    classes,
    draw_evidence,
    draw_length,
    place_words,
    read_ids,
    score_in_order,
    share_in_order,
)
from heedful.planted.texts import VOCABULARY_SIZE

FAMILY = "held-out"
BOTH_SIDES = (2.3, 0.51)  # log-odds of strong and weak words of any sign
THREE_LEVELS = (2.4, 1.3, 0.8)
THREE_CLASSES = ("first", "second", "third")
VETO = 3.4  # log-odds against, once a veto is there
THRESHOLD = 0.7
TINY = 0.06  # largest amount of a tail: 0.015 in probability
SPECIAL_WORDS = 20  # vetoes, or markers of irony
DECOYS = 80  # opinions on other aspects, or names
NOT_CARRIED = 0.99  # share of the evidence that goes around attention that has hardly any effect


def _two_classes(z: Tensor) -> Tensor:
    return torch.stack([torch.zeros_like(z), z], dim=-1)


def _bounded(bias: float) -> Output:
    """z = bias + 3·tanh(Σ/2)."""
    return lambda sums: _two_classes(bias + 3.0 * (sums.sum(-1) / 2.0).tanh())


def _bounded_classes(sums: Float[Tensor, "*K B 3"]) -> Float[Tensor, "*K B 3"]:
    """A logit 3·tanh(Σ/2) for each class."""
    return 3.0 * (sums / 2.0).tanh()


def _rule_out(biases: Tensor) -> Output:
    """A logit for each class: its bias, less what speaks against it."""
    return lambda sums: biases - sums


def _pass_threshold(sums: Float[Tensor, "*K B 1"]) -> Float[Tensor, "*K B 2"]:
    """z = 5·(σ(3·(Σ − 0.7)) − 0.5)."""
    return _two_classes(5.0 * ((3.0 * (sums.sum(-1) - THRESHOLD)).sigmoid() - 0.5))


def _obey_veto(sums: Float[Tensor, "*K B 2"]) -> Float[Tensor, "*K B 2"]:
    """z = Σ·(1 − V) − 3.4·V, where V is near 1 if there is a veto, and else 0."""
    veto = (3.0 * sums[..., 1]).tanh()
    return _two_classes(sums[..., 0] * (1.0 - veto) - VETO * veto)


def _turn_by_irony(bias: float) -> Output:
    """z = (bias + Σ)·(1 − 2M), where M is near 1 if there is a marker of irony, and else 0."""

    def output(sums: Float[Tensor, "*K B 2"]) -> Float[Tensor, "*K B 2"]:
        return _two_classes((bias + sums[..., 0]) * (1.0 - 2.0 * (3.0 * sums[..., 1]).tanh()))

    return output


# Words and texts


def _place(
    draw: np.random.Generator,
    length: int,
    tiers: Sequence[Sequence[int]],
    others: WordIds,
    where: Place = "anywhere",
) -> KnownText:
    return place_words(draw, length, [list(one) for one in tiers if len(one)], others, where=where)


def _pick_any_side(draw: np.random.Generator, evidence: Evidence, *counts: int) -> list[list[int]]:
    """Different words of each level, of any sign."""
    levels = zip(evidence.words, counts, strict=True)
    return [draw.choice(words.ravel(), count, replace=False).tolist() for words, count in levels]


def _draw_both_sides(evidence: Evidence, where: Place = "anywhere") -> DrawText:
    """Texts with one to three strong and one to four weak words, of any sign."""

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        length = draw_length(draw, mean)
        strong = int(draw.integers(1, min(3, length // 4) + 1))
        weak = int(draw.integers(1, min(4, length // 2 - strong) + 1))
        tiers = _pick_any_side(draw, evidence, strong, weak)
        return _place(draw, length, tiers, evidence.others, where)

    return draw_text


def _split_classes(setting: InfluenceSetting) -> tuple[Evidence, list[WordIds], list[Numbers]]:
    """Evidence of three levels, its words for each of three classes, and a column for each."""
    evidence = draw_evidence(setting, *THREE_LEVELS)
    flat = evidence.words.reshape(len(THREE_LEVELS), -1)
    words = [flat[:, number::3] for number in range(3)]
    columns = []
    for own in words:
        column = np.zeros(VOCABULARY_SIZE)
        column[own] = np.abs(evidence.amounts[own])
        columns.append(column)
    return evidence, words, columns


def _draw_one_class(words: Sequence[WordIds], others: WordIds) -> DrawText:
    """Texts with one to five words of one of three classes, of any levels."""

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        length, own = draw_length(draw, mean), words[int(draw.integers(3))]
        levels = draw.integers(len(own), size=int(draw.integers(1, min(5, length - 2) + 1)))
        levels[0] = draw.integers(2)
        counts = np.bincount(levels, minlength=len(own))
        pairs = zip(own, counts, strict=True)
        tiers = [draw.choice(level, count, replace=False).tolist() for level, count in pairs]
        return _place(draw, length, tiers, others)

    return draw_text


def _spend_words(
    setting: InfluenceSetting, evidence: Evidence, count: int
) -> tuple[WordIds, Evidence]:
    """So many of the words that are no evidence, and the evidence without them."""
    order = setting.draw("special words").permutation(evidence.others)
    return order[:count], replace(evidence, others=order[count:])


def _mark(words: WordIds) -> Numbers:
    column = np.zeros(VOCABULARY_SIZE)
    column[words] = 1.0
    return column


def _draw_frequencies(
    setting: InfluenceSetting, words: WordIds, slope: float
) -> tuple[Numbers, WordIds]:
    """The log frequency of words, in a random order of ranks, and a corpus to draw from.

    Word number r is drawn with a probability in proportion to r to the power of −slope (Zipf).
    """
    order = setting.draw("frequencies").permutation(words)
    logs = np.zeros(VOCABULARY_SIZE)
    logs[order] = -slope * np.log(np.arange(1.0, len(order) + 1.0))
    times = np.rint(np.exp(logs[order] - logs[order].min()))
    return logs, np.repeat(order, times.astype(np.int64))


def _praise(evidence: Evidence) -> Numbers:
    """What the words of the second side add; those of the first add nothing."""
    return np.maximum(evidence.amounts, 0.0)


# Attention ranks words by their influence, and is used


@influence_kind("held-out-repeats", FAMILY, used=True, ranks=True, lengths=(12, 24, 48))
def repeats(setting: InfluenceSetting) -> PlantedModel:
    """Two or three words of a class, of four levels, come one to three times each; z is bounded.

    z = b + 3·tanh(Σ/2), |b| ≤ 0.4, so that few repeats already reach what can be reached.
    Truth by sets: one direction, as the module says; a word of the last level alone moves z by 0.7
    from b. Never matters: others move z by 0.03 at most. Ranks: scores grow with the amount,
    all others are lower by 0.4. Used: others hold nothing.
    """
    evidence = draw_evidence(setting, 2.6, 1.6, 0.95, 0.55)
    influence = np.abs(evidence.amounts)
    scores = score_in_order(setting, influence, gap=0.4)
    bias = float(setting.draw("bias").uniform(-0.4, 0.4))

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        length, side = draw_length(draw, mean), int(draw.integers(2))
        tiers: list[list[int]] = [[], [], [], []]
        room = length // 2
        for level in draw.permutation(4)[: int(draw.integers(2, 4))].tolist():
            times = min(room, int(draw.integers(1, 4)))
            tiers[level] = [int(draw.choice(evidence.words[level, side]))] * times
            room -= times
        return _place(draw, length, tiers, evidence.others)

    columns = [scores, evidence.amounts + add_noise(setting, scores, influence)]
    return build_model(setting, Reading(_bounded(bias)), columns, draw_text)


@influence_kind("held-out-ruled-out", FAMILY, used=True, ranks=True, lengths=(8, 16, 32))
def ruled_out(setting: InfluenceSetting) -> PlantedModel:
    """Three classes; words speak against one of them, and which of the others wins is a bias.

    Truth by sets: all words that matter in a text lower one logit. The distance of two outputs is
    the change of that class's probability, which falls with the sum: one direction. Its p is 0.27
    or more before, and 0.7 off its logit takes 0.11 of that. Ranks: scores grow with the amount,
    all others are lower by 0.7. Used: others hold nothing.
    """
    evidence, words, columns = _split_classes(setting)
    influence = np.abs(evidence.amounts)
    scores = score_in_order(setting, influence)
    biases = torch.from_numpy(setting.draw("bias").uniform(-0.15, 0.15, 3))
    columns[0] = columns[0] + add_noise(setting, scores, influence)
    draw_text = _draw_one_class(words, evidence.others)
    reading = Reading(_rule_out(biases), channels=3)
    return build_model(setting, reading, [scores, *columns], draw_text, THREE_CLASSES)


def _draw_veto(evidence: Evidence, vetoes: WordIds, others: WordIds) -> DrawText:
    """Texts with one to four words of praise; half of them with one veto, or two of long ones."""

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        length = draw_length(draw, mean)
        count = int(draw.integers(3 if length > 8 else 2))
        count = count if draw.random() < 0.7 else 0
        strong = int(draw.integers(2))
        weak = int(draw.integers(1 - strong, min(3, length - count - strong - 1) + 1))
        against = draw.choice(vetoes, count).tolist()
        return _place(draw, length, [against, *evidence.pick(draw, 1, strong, weak)], others)

    return draw_text


@influence_kind("held-out-veto", FAMILY, used=True, ranks=True, lengths=(10, 20, 40))
def veto(setting: InfluenceSetting) -> PlantedModel:
    """A veto makes the output negative and hides all praise: then no word of it changes anything.

    z = Σ·(1 − V) − 3.4·V, Σ ≥ 0 of praise, V = 0.995 with a veto. Tiers: a first veto takes p from
    0.5 or more to 0.03; praise adds σ(1.97) − 0.5 = 0.38 at most. Where a veto is, another one
    and praise change p by 0.002 at most. Praise: one direction, 0.7 alone.
    Ranks: scores grow from weak praise to vetoes, all others are lower by 0.7. Used: others hold
    nothing, and z is −3.4, or 0.7 or more.
    """
    evidence = draw_evidence(setting, 1.6, 0.8)
    vetoes, evidence = _spend_words(setting, evidence, SPECIAL_WORDS)
    influence = _praise(evidence) + VETO * _mark(vetoes)
    scores = score_in_order(setting, influence)
    columns = [scores, _praise(evidence) + add_noise(setting, scores, influence), _mark(vetoes)]
    draw_text = _draw_veto(evidence, vetoes, evidence.others)
    return build_model(setting, Reading(_obey_veto, channels=2), columns, draw_text)


@influence_kind("held-out-irony", FAMILY, used=True, ranks=True, lengths=(10, 20, 40))
def irony(setting: InfluenceSetting) -> PlantedModel:
    """Praise speaks for a class, or against it where there is a marker of irony, which ranks first.

    z = (b + Σ)·(1 − 2M), b from 0.7 to 0.9, Σ ≥ 0 of praise; 60 % of the texts have one marker.
    Tiers: a marker turns z of b + Σ ≥ 0.7, which changes p by 2σ(0.7) − 1 = 0.33 or more; praise by
    σ(2.09 + 0.7) − σ(0.7) = 0.27 at most. Praise: one direction, with and without a marker; a weak
    word moves |z| from b by 0.75. Never matters: 0.02 at most.
    Ranks: scores grow from weak praise to markers, others are lower by 0.7. Used: all weight on
    another word gives z = b, where a text has 1.5 more or the other sign.
    """
    evidence = draw_evidence(setting, 1.7, 0.85)
    markers, evidence = _spend_words(setting, evidence, SPECIAL_WORDS)
    influence = _praise(evidence) + 3.5 * _mark(markers)
    scores = score_in_order(setting, influence)
    bias = float(setting.draw("bias").uniform(0.7, 0.9))

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        length = draw_length(draw, mean)
        strong = int(draw.integers(1, 3 if length > 6 else 2))
        weak = int(draw.integers(min(3, length - strong - 1)))
        marker = draw.choice(markers, int(draw.random() < 0.6)).tolist()
        return _place(
            draw, length, [marker, *evidence.pick(draw, 1, strong, weak)], evidence.others
        )

    columns = [scores, _praise(evidence) + add_noise(setting, scores, influence), _mark(markers)]
    return build_model(setting, Reading(_turn_by_irony(bias), channels=2), columns, draw_text)


@influence_kind("held-out-both-sides", FAMILY, used=True, ranks=True, lengths=(15, 30, 60))
def both_sides(setting: InfluenceSetting) -> PlantedModel:
    """Praise and blame, strong and weak, in one text, and many words of tiny effects that add up.

    Truth by sets: both signs, as the module says; weak words move p from 0.5 by 0.11 or more.
    Words of the tail add 0.06 at most, 0.015 in probability, and lean to one class.
    Ranks: scores grow with the amount, those of the tail too, up to noise; the largest of a tail
    is a seventh of the least weak word. Used: all weight on a strong word or on one of the other
    sign moves z far.
    """
    evidence = draw_evidence(setting, *BOTH_SIDES)
    draw = setting.draw("tail")
    tiny = TINY * np.maximum(draw.random(VOCABULARY_SIZE) ** 2, 0.02)
    signs = np.where(draw.random(VOCABULARY_SIZE) < 0.7, 1.0, -1.0) * draw.choice([-1.0, 1.0])
    amounts = np.where(evidence.amounts != 0, evidence.amounts, signs * tiny)
    power, noise = draw.uniform(0.7, 1.0), draw.uniform(-0.1, 0.1, VOCABULARY_SIZE)
    scores = power * np.log(np.abs(amounts)) + noise
    return build_model(setting, Reading(), [scores, amounts], _draw_both_sides(evidence))


# Attention is wrong, or has no effect


@influence_kind("held-out-other-aspects", FAMILY, used=True, ranks=False, lengths=(12, 24, 48))
def other_aspects(setting: InfluenceSetting) -> PlantedModel:
    """Attention finds opinions, and most of it is on those about aspects that the label ignores.

    Of the words that are no evidence, 60 to 80 % are such opinions. z = 5·(σ(3(Σ − 0.7)) − 0.5).
    Truth by sets: one direction; a weak word alone moves p by 0.15 or more. Never matters: others
    add at most 0.007, 0.006 in probability. Ranks: evidence is below all of these opinions and
    above plain words, in a random order. Used: others hold nothing, and p is 0.13 without evidence.
    """
    evidence = draw_evidence(setting, 1.2, 0.52)
    decoys, evidence = _spend_words(setting, evidence, DECOYS)
    influence, draw = np.abs(evidence.amounts), setting.draw("scores")
    scores = draw.uniform(-3.0, -1.0, VOCABULARY_SIZE)
    scores[influence > 0] = draw.uniform(-0.2, 0.6, int((influence > 0).sum()))
    scores[decoys] = draw.uniform(0.8, 2.0, DECOYS)

    def draw_text(own: np.random.Generator, mean: int) -> KnownText:
        length, side = draw_length(own, mean), int(own.integers(2))
        strong = int(own.random() < 0.6)
        weak = int(own.integers(1 - strong, min(3, length // 2)))
        tiers = evidence.pick(own, side, strong, weak)
        known = _place(own, length, tiers, evidence.others)
        return _fill(own, known, decoys, own.uniform(0.6, 0.8))

    columns = [scores, influence + add_noise(setting, scores, influence) / 3.0]
    return build_model(setting, Reading(_pass_threshold), columns, draw_text)


def _fill(draw: np.random.Generator, known: KnownText, words: WordIds, share: float) -> KnownText:
    """The text with this share of its words that never matter, rounded up, replaced by others."""
    ids = read_ids(known)
    free = draw.permutation(np.setdiff1d(np.arange(len(ids)), sorted(known.decisive)))
    free = free[: int(np.ceil(share * len(free)))]
    ids[free] = draw.choice(words, len(free))
    return replace(known, text=" ".join(f"w{number}" for number in ids))


@influence_kind("held-out-frequent", FAMILY, used=True, ranks=False, lengths=(12, 24, 48))
def frequent(setting: InfluenceSetting) -> PlantedModel:
    """Attention grows with how frequent a word is, as on function words; evidence is rare.

    Words are drawn by Zipf's law, so that frequent ones are repeated. Three classes; truth by sets:
    one direction, the probability of the class that the evidence of a text is for.
    Ranks: evidence has scores near those of the rarest words, in a random order; 13 % of
    other words drawn are below at most. Used: others hold nothing.
    """
    evidence, words, columns = _split_classes(setting)
    influence, draw = np.abs(evidence.amounts), setting.draw("scores")
    logs, corpus = _draw_frequencies(setting, evidence.others, draw.uniform(0.9, 1.1))
    scores = draw.uniform(0.4, 0.8) * logs
    low = scores[evidence.others].min()
    scores = np.where(influence > 0, low + draw.uniform(0.0, 0.3, VOCABULARY_SIZE), scores)
    columns[0] = columns[0] + add_noise(setting, scores, influence)
    draw_text = _draw_one_class(words, corpus)
    reading = Reading(classes, channels=3)
    return build_model(setting, reading, [scores, *columns], draw_text, THREE_CLASSES)


@influence_kind("held-out-rare", FAMILY, used=False, ranks=False, lengths=(10, 20, 40))
def rare(setting: InfluenceSetting) -> PlantedModel:
    """Attention grows with how rare a word is, as on names; evidence and vetoes are frequent words.

    Truth by sets as held-out-veto. Ranks: evidence has scores of the third to tenth most frequent
    word, so that two thirds of other words are above. Used: every state holds the sums.
    """
    evidence = draw_evidence(setting, 1.6, 0.8)
    vetoes, evidence = _spend_words(setting, evidence, SPECIAL_WORDS)
    influence = np.abs(evidence.amounts) + VETO * _mark(vetoes)
    draw = setting.draw("scores")
    logs, corpus = _draw_frequencies(setting, evidence.others, draw.uniform(0.5, 0.65))
    ranks = draw.uniform(3.0, 10.0, VOCABULARY_SIZE)
    common = -0.6 * np.log(ranks)
    scores = -draw.uniform(0.6, 1.0) * np.where(influence > 0, common, logs)
    columns = [scores, _praise(evidence) + add_noise(setting, scores, influence), _mark(vetoes)]
    reading = Reading(_obey_veto, channels=2, share=carry_nothing)
    return build_model(setting, reading, columns, _draw_veto(evidence, vetoes, corpus))


def _neighbours(mask: Bool[Tensor, "B T"]) -> tuple[Tensor, Tensor]:
    """The positions of the word before and of the word after; a text is read as a circle."""
    place, count = torch.arange(mask.shape[1]).expand_as(mask), mask.sum(-1, keepdim=True)
    return (place - 1) % count, (place + 1) % count


def _score_by_neighbours(
    vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    before, after = (vectors[..., 0].gather(1, places) for places in _neighbours(mask))
    return torch.logaddexp(before, after)


def _hold_neighbours(
    vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T 1"]:
    before, after = (vectors[..., 1].gather(1, places) for places in _neighbours(mask))
    return 0.5 * (before + after)[..., None]


@influence_kind("held-out-neighbours", FAMILY, used=True, ranks=False, lengths=(10, 20, 40))
def neighbours(setting: InfluenceSetting) -> PlantedModel:
    """A state holds half the evidence of the word before and half of that after, and their weight.

    The text is read as a circle, so every word counts once, and no two that matter are neighbours.
    Truth by sets: praise and blame, both signs, as the module says.
    Ranks: attention is on words beside those that matter; at most 55 % of the pairs of a text are
    in order, and its highest score is on a word that never matters. Used: states between words that
    never matter hold noise, the others are far apart.
    """
    evidence = draw_evidence(setting, *BOTH_SIDES)
    influence = np.abs(evidence.amounts)
    scores = score_in_order(setting, influence)
    draw_any = _draw_both_sides(evidence, "apart")

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        while True:
            known = draw_any(draw, mean)
            own = scores[read_ids(known)]
            state = np.logaddexp(np.roll(own, 1), np.roll(own, -1))
            if int(state.argmax()) not in known.decisive and share_in_order(state, known) <= 0.55:
                return known

    reading = Reading(scores=_score_by_neighbours, amounts=_hold_neighbours)
    columns = [scores, evidence.amounts + add_noise(setting, scores, influence)]
    return build_model(setting, reading, columns, draw_text)


def _carry_little(
    vectors: Float[Tensor, "B T K"],
    mask: Bool[Tensor, "B T"],  # noqa: ARG001
) -> Float[Tensor, "B"]:
    return torch.full_like(vectors[:, 0, 0], 1.0 - NOT_CARRIED)


@influence_kind("held-out-bypass", FAMILY, used=False, ranks=True, lengths=(8, 16, 32))
def bypass(setting: InfluenceSetting) -> PlantedModel:
    """Attention is in order, but a residual path holds nearly everything; three bounded classes.

    The path around attention adds 0.99 of the sums, attention 0.01 of the weighted mean.
    Truth by sets: one direction, the probability of one class, and 0.01·3 of the mean moves a
    logit by 0.045 at most. A word of the last level alone moves its logit by 1.
    Ranks: scores grow with the amount, others are lower by 0.7. Used: other weights move a logit
    by 0.045 at most, 0.012 in probability.
    """
    evidence, words, columns = _split_classes(setting)
    influence = np.abs(evidence.amounts)
    scores = score_in_order(setting, influence)
    columns[1] = columns[1] + add_noise(setting, scores, influence)
    reading = Reading(_bounded_classes, channels=3, averaged=True, share=_carry_little, rest="past")
    draw_text = _draw_one_class(words, evidence.others)
    return build_model(setting, reading, [scores, *columns], draw_text, THREE_CLASSES)


@influence_kind("held-out-uniform", FAMILY, used=True, ranks=False, lengths=(10, 20, 40))
def uniform(setting: InfluenceSetting) -> PlantedModel:
    """All words have the same attention, as where states are summed; no text begins with evidence.

    Truth by sets: praise and blame, both signs, as the module says. Ranks: no word has more than
    another. Used: all weight on a strong word multiplies what it adds.
    """
    evidence = draw_evidence(setting, *BOTH_SIDES)
    scores = np.zeros(VOCABULARY_SIZE)
    draw_rest = _draw_both_sides(evidence)

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        known = draw_rest(draw, mean)
        ids, place = read_ids(known), int(draw.choice(_never(known)))
        ids = np.roll(ids, -place)
        tiers = tuple(
            tuple(sorted((one - place) % len(ids) for one in tier)) for tier in known.tiers
        )
        return KnownText(" ".join(f"w{number}" for number in ids), tiers)

    noise = add_noise(setting, scores, np.abs(evidence.amounts))
    return build_model(setting, Reading(), [scores, evidence.amounts + noise], draw_text)


def _never(known: KnownText) -> list[int]:
    return [place for place in range(len(known.text.split())) if place not in known.decisive]


@influence_kind("held-out-weak-first", FAMILY, used=True, ranks=False, lengths=(10, 20, 40))
def weak_first(setting: InfluenceSetting) -> PlantedModel:
    """Most words are praise or blame; attention is highest on the weak ones, lowest on the neutral.

    A text has as much praise as blame, up to one word. Truth by sets: both signs, as the module
    says. Ranks: four words in five matter, half of them weak; every weak word is above every strong
    one, which is about half of the pairs, and the highest score is on a weak one. Used: all
    weight on one word leaves its sign alone.
    """
    evidence = draw_evidence(setting, *BOTH_SIDES)
    influence, draw = np.abs(evidence.amounts), setting.draw("scores")
    scores = draw.uniform(-3.0, -1.6, VOCABULARY_SIZE)
    for words, (low, high) in zip(evidence.words, ((-1.2, -0.4), (0.4, 1.4)), strict=True):
        scores[words] = draw.uniform(low, high, words.shape)

    def draw_text(own: np.random.Generator, mean: int) -> KnownText:
        length = draw_length(own, mean)
        strong = (matter := int(np.ceil(0.79 * length))) // 2
        tiers = []
        for level, count in enumerate((strong, matter - strong)):
            first = int(own.integers(2))
            halves = (count - count // 2, count // 2)
            sides = (evidence.words[level, first], evidence.words[level, 1 - first])
            pairs = zip(sides, halves, strict=True)
            tiers.append([n for side, half in pairs for n in own.choice(side, half).tolist()])
        return _place(own, length, tiers, evidence.others)

    columns = [scores, evidence.amounts + add_noise(setting, scores, influence)]
    return build_model(setting, Reading(), columns, draw_text)


# A claim holds in one part of the texts

CONFLICT = Mixture("used", "other", "conflict", "agreement")
NAMES = Mixture("ranks", "other", "without names", "with names")


def _has_conflict(vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B"]:
    """1 for texts with evidence of both signs."""
    amounts = vectors[..., 1] * mask
    both = (amounts > TINY).any(-1) & (amounts < -TINY).any(-1)
    return both.to(vectors)


@influence_kind("held-out-conflict", FAMILY, used=None, ranks=True, mixture=CONFLICT)
def conflict(setting: InfluenceSetting) -> PlantedModel:
    """Where all evidence agrees it goes past attention, which weighs only praise against blame.

    Truth by sets: both signs, as the module says; the sum is the same on both ways.
    Ranks: scores grow with the amount, others are lower by 0.7. Used: in texts with both, all
    weight on one word leaves its sign alone; elsewhere attention reads 0.
    """
    evidence = draw_evidence(setting, *BOTH_SIDES)
    influence = np.abs(evidence.amounts)
    scores = score_in_order(setting, influence)

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        length, side, both = draw_length(draw, mean), int(draw.integers(2)), bool(draw.integers(2))
        counts = [int(draw.integers(1, 3 if length > 8 else 2)) for _ in range(2)]
        tiers = evidence.pick(draw, side, *counts)
        if both:
            level = int(draw.integers(2))
            tiers[level][0] = int(draw.choice(evidence.words[level, 1 - side]))
        part = CONFLICT.holds if both else CONFLICT.fails
        return replace(_place(draw, length, tiers, evidence.others), part=part)

    columns = [scores, evidence.amounts + add_noise(setting, scores, influence)]
    reading = Reading(share=_has_conflict, rest="past")
    return build_model(setting, reading, columns, draw_text)


@influence_kind(
    "held-out-names", FAMILY, used=True, ranks=None, mixture=NAMES, lengths=(12, 24, 48)
)
def names(setting: InfluenceSetting) -> PlantedModel:
    """Names have more attention than evidence and never matter; only half of the texts have any.

    There they are 60 to 85 % of the words that are no evidence. z = b + 3·tanh(Σ/2), |b| ≤ 0.4.
    Truth by sets: one direction; a word of the last level alone moves z by 0.8 from b.
    Ranks: without names scores grow with the amount, and others are lower by 0.5; with names, all
    of them are above all evidence. Used: others hold nothing.
    """
    evidence = draw_evidence(setting, 2.2, 1.2, 0.65)
    named, evidence = _spend_words(setting, evidence, DECOYS)
    influence = np.abs(evidence.amounts)
    scores = score_in_order(setting, influence, gap=0.5)
    scores[named] = scores.max() + setting.draw("names").uniform(0.1, 1.2, DECOYS)
    bias = float(setting.draw("bias").uniform(-0.4, 0.4))

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        length = draw_length(draw, mean)
        counts = np.bincount(draw.integers(3, size=int(draw.integers(1, 3))), minlength=3)
        tiers = evidence.pick(draw, int(draw.integers(2)), *counts.tolist())
        known = _place(draw, length, tiers, evidence.others)
        if draw.integers(2):
            return replace(known, part=NAMES.holds)
        return replace(_fill(draw, known, named, draw.uniform(0.6, 0.85)), part=NAMES.fails)

    columns = [scores, evidence.amounts + add_noise(setting, scores, influence)]
    return build_model(setting, Reading(_bounded(bias)), columns, draw_text)
