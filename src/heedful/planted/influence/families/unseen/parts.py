"""What the kinds of `unseen` are made of: how texts are drawn, what states hold, and outputs.

Numbers of a word are its score, its amount, and what a kind needs else.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.numerics.tensor.distributions import masked_softmax
from heedful.planted.influence.kind import InfluenceSetting, KnownText, PlantedModel
from heedful.planted.influence.word_model import (
    DrawText,
    Evidence,
    Numbers,
    Reading,
    ReadScores,
    ReadShare,
    WordIds,
    add_noise,
    build_model,
    draw_length,
    place_words,
    read_ids,
    score_in_order,
)
from heedful.planted.texts import VOCABULARY_SIZE

DROPPED = 8.0  # by so much a score is lower where attention passes over a word
SPAN = 3.0  # of scores by position, from the first word of a text to the last
TOPIC_WORDS = 15
STARS = 1.2
Pick = Callable[[np.random.Generator, int], Sequence[Sequence[int]]]
"""The words of each tier, for a text of so many words."""


# Words and texts


def long_length(draw: np.random.Generator, mean: int) -> int:
    """From three quarters of the mean to 1.5 times the mean."""
    return int(draw.integers(3 * mean // 4, 3 * mean // 2 + 1))


def lengths_far_apart(draw: np.random.Generator, mean: int) -> int:
    """Five to mean²/12 words, the logarithm uniform: as many short texts as long ones."""
    return int(np.exp(draw.uniform(np.log(5.0), np.log(max(9, mean**2 // 12) + 0.99))))


def draw_with(
    pick: Pick,
    others: WordIds,
    length: Callable[[np.random.Generator, int], int] = draw_length,
    least: int = 4,
) -> DrawText:
    """Texts with the words that are picked, at random places."""

    def draw_text(draw: np.random.Generator, mean: int) -> KnownText:
        count = max(least, length(draw, mean))
        return place_words(draw, count, [one for one in pick(draw, count) if len(one)], others)

    return draw_text


def pick_one_side(evidence: Evidence, least: int, most: int, *, lead: int = 0) -> Pick:
    """So many words of one side, up to half of the text, of any levels.

    The first is of one of the first `lead` levels.
    """

    def pick(draw: np.random.Generator, length: int) -> list[list[int]]:
        number = int(draw.integers(least, max(least, min(most, length // 2)) + 1))
        levels = draw.integers(len(evidence.words), size=number)
        levels[0] = draw.integers(lead) if lead else levels[0]
        counts = np.bincount(levels, minlength=len(evidence.words))
        return evidence.pick(draw, int(draw.integers(2)), *counts.tolist())

    return pick


def pick_any_side(evidence: Evidence, strong: int, weak: int) -> Pick:
    """Up to so many strong and weak words, one of each at least, of any sign."""

    def pick(draw: np.random.Generator, length: int) -> list[list[int]]:
        most = (min(strong, length // 4), min(weak, length // 4))
        pairs = zip(evidence.words, most, strict=True)
        return [
            draw.choice(words.ravel(), int(draw.integers(1, count + 1)), replace=False).tolist()
            for words, count in pairs
        ]

    return pick


def pick_balanced(evidence: Evidence, shares: Sequence[float], bound: float) -> Pick:
    """These shares of a text are strong and weak; as many for a side as against, and |z| small."""

    def pick(draw: np.random.Generator, length: int) -> list[list[int]]:
        halves = [max(1, round(share * length / 2)) for share in shares]
        while True:
            tiers = [
                draw.choice(own, half).tolist()
                for words, half in zip(evidence.words, halves, strict=True)
                for own in words
            ]
            if abs(evidence.amounts[np.concatenate(tiers)].sum()) <= bound:
                return [tiers[0] + tiers[1], tiers[2] + tiers[3]]

    return pick


def sprinkle(
    draw: np.random.Generator, known: KnownText, words: WordIds, share: float = 0.0
) -> KnownText:
    """Put these words for this share of those that never matter, for one at least."""
    ids = read_ids(known)
    free = draw.permutation(np.setdiff1d(np.arange(len(ids)), sorted(known.decisive)))
    free = free[: max(1, round(share * len(free)))]
    ids[free] = draw.choice(words, len(free))
    return replace(known, text=" ".join(f"w{number}" for number in ids))


def sprinkled(draw_text: DrawText, words: WordIds, share: float = 0.0) -> DrawText:
    """These texts, sprinkled."""
    return lambda draw, mean: sprinkle(draw, draw_text(draw, mean), words, share)


def spend_words(evidence: Evidence, count: int) -> tuple[WordIds, Evidence]:
    """So many of the words that are no evidence (in random order), and evidence without them."""
    return evidence.others[:count], replace(evidence, others=evidence.others[count:])


def mark_words(words: WordIds, values: Numbers | float = 1.0) -> Numbers:
    """A column that is 0 for all other words."""
    column = np.zeros(VOCABULARY_SIZE)
    column[words] = values
    return column


def order_scores(setting: InfluenceSetting, evidence: Evidence, gap: float = 0.7) -> Numbers:
    """Scores in order."""
    return score_in_order(setting, np.abs(evidence.amounts), gap)


def plant(
    setting: InfluenceSetting,
    evidence: Evidence,
    scores: Numbers,
    draw_text: DrawText,
    reading: Reading | None = None,
    *more: Numbers,
) -> PlantedModel:
    """A model of evidence with some noise; `more` are columns after the amounts."""
    noise = add_noise(setting, scores, np.abs(evidence.amounts))
    columns = [scores, evidence.amounts + noise, *more]
    return build_model(setting, reading or Reading(), columns, draw_text)


# Outputs


def two_classes(z: Tensor) -> Tensor:
    """Logits (0, z)."""
    return torch.stack([torch.zeros_like(z), z], dim=-1)


def carry_share(value: float) -> ReadShare:
    """The same share in all texts."""
    return lambda vectors, mask: torch.full_like(vectors[:, 0, 0], value)  # noqa: ARG005


def score_sharply(
    vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """Scores times the largest number of the third column, if a word has any there."""
    sharp = (vectors[..., 2] * mask).amax(-1, keepdim=True)
    return vectors[..., 0] * torch.where(sharp > 0, sharp, 1.0)


def score_in_context(
    vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """A jitter by word and word before; the last column says how large it is in this text."""
    before = torch.nn.functional.pad(vectors[:, :-1, 2], (1, 0))
    size = (vectors[..., 3] * mask).amax(-1, keepdim=True)
    return vectors[..., 0] + size * vectors[..., 2] * before


def divide_by_weights(
    vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T 1"]:
    """The amount over the weight; 0 where there is no weight."""
    weights = masked_softmax(vectors[..., 0], mask)
    return (vectors[..., 1] / weights.clamp_min(1e-200))[..., None]


def rise_by_position(
    vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """Scores rise evenly from the first word to the last, whatever the words are."""
    place = mask.to(vectors).cumsum(-1)
    return SPAN * place / place.amax(-1, keepdim=True)


@dataclass(frozen=True, eq=False)
class Keys:
    """Words of two roles; both are needed, and a text has two of each."""

    evidence: Evidence
    seconds: WordIds

    @property
    def influence(self) -> Numbers:
        """1 for each key."""
        return np.sign(np.abs(self.evidence.amounts)) + mark_words(self.seconds)

    def pick(self, draw: np.random.Generator, length: int) -> list[list[int]]:  # noqa: ARG002
        """Two keys of each role, in one tier."""
        first = self.evidence.pick(draw, int(draw.integers(2)), 2)[0]
        return [first + draw.choice(self.seconds, 2, replace=False).tolist()]

    def plant(self, setting: InfluenceSetting, scores: Numbers) -> PlantedModel:
        """z = 3·tanh(3A)·tanh(3B)."""
        noise = add_noise(setting, scores, self.influence)
        columns = [scores, self.evidence.amounts, mark_words(self.seconds), noise]
        draw_text = draw_with(self.pick, self.evidence.others, least=6)
        return build_model(setting, Reading(unlock, channels=3), columns, draw_text)


def unlock(sums: Float[Tensor, "*K B 3"]) -> Float[Tensor, "*K B 2"]:
    """z = 3·tanh(3A)·tanh(3B), and noise."""
    first, second = (3.0 * sums[..., :2]).tanh().unbind(-1)
    return two_classes(3.0 * first * second + sums[..., 2])


def count_to_three(sums: Float[Tensor, "*K B 1"]) -> Float[Tensor, "*K B 2"]:
    """z = 5·(σ(2·(n − 2.5)) − 0.5)."""
    return two_classes(5.0 * ((2.0 * (sums.sum(-1) - 2.5)).sigmoid() - 0.5))


@dataclass(frozen=True, eq=False)
class Topics:
    """Opinions on two topics count only where their topic is named; a text names one."""

    evidence: Evidence
    names: WordIds  # (2, TOPIC_WORDS)

    def draw_text(self, draw: np.random.Generator, mean: int) -> KnownText:
        """The name, one to three opinions on the topic, and one or two on the other."""
        length, topic = max(6, draw_length(draw, mean)), int(draw.integers(2))
        side = int(draw.integers(2))
        own, other = np.split(self.evidence.words, 2, axis=2)[:: 1 - 2 * topic]
        strong = int(draw.integers(2))
        counts = (strong, int(draw.integers(1 - strong, 3)))
        tiers = [draw.choice(self.names[topic], 1).tolist()]
        for words, count in zip(own, counts, strict=True):
            tiers.append(draw.choice(words[side], count, replace=False).tolist())
        bystanders = draw.choice(other.ravel(), int(draw.integers(1, 3)), replace=False).tolist()
        tiers = [one for one in tiers if one]
        known = place_words(draw, length, [*tiers, bystanders], self.evidence.others)
        return replace(known, tiers=known.tiers[:-1])

    def plant(self, setting: InfluenceSetting, *, right: bool) -> PlantedModel:
        """Attention passes over opinions on the other topic; or over the name and its opinions."""
        influence = np.abs(self.evidence.amounts) + 4.0 * mark_words(self.names.ravel())
        scores = score_in_order(setting, influence)
        noise = add_noise(setting, scores, influence)
        if not right:
            scores[self.names] = scores.min() - 1.0
        halves = np.split(self.evidence.words, 2, axis=2)
        opinions = [mark_words(own.ravel(), self.evidence.amounts[own.ravel()]) for own in halves]
        columns = [scores, *opinions, *(mark_words(own) for own in self.names), noise]
        reading = Reading(judge_topics, channels=5, scores=score_by_topic(right=right))
        return build_model(setting, reading, columns, self.draw_text)


def judge_topics(sums: Float[Tensor, "*K B 5"]) -> Float[Tensor, "*K B 2"]:
    """z = A·tanh(3a) + B·tanh(3b), and noise."""
    named = (3.0 * sums[..., 2:4]).tanh()
    return two_classes((sums[..., :2] * named).sum(-1) + sums[..., 4])


def score_by_topic(*, right: bool) -> ReadScores:
    """Opinions on the topic that is not named are passed over; or those on the one that is."""

    def read(vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        named = (vectors[..., 3:5] * mask[..., None]).amax(1, keepdim=True) > 0
        passed = (vectors[..., 1:3] != 0) & (named != right)
        return vectors[..., 0] - DROPPED * passed.any(-1)

    return read


def give_stars(sums: Float[Tensor, "*K B 1"]) -> Float[Tensor, "*K B 5"]:
    """Five classes k = −2 … 2 with logits 1.2·(k·Σ − k²/2): the nearest to Σ wins."""
    stars = torch.arange(-2.0, 3.0, dtype=sums.dtype)
    return STARS * (sums * stars - 0.5 * stars**2)


def collect_in_few(
    vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T 1"]:
    """States hold the sum of the text, in proportion to the third column; attention reads Σ."""
    weights, keep = masked_softmax(vectors[..., 0], mask), vectors[..., 2]
    total = (vectors[..., 1] * mask).sum(-1, keepdim=True)
    return (total * keep / (weights * keep).sum(-1, keepdim=True))[..., None]


def score_repeats(
    vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """1.5·log of how often the word is in the text, plus its own score, by which it is known."""
    own = vectors[..., 0]
    same = (own[:, :, None] == own[:, None, :]) & mask[:, None, :]
    return 1.5 * same.sum(-1).clamp_min(1).to(own).log() + own


def sum_sentences(
    vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]
) -> tuple[Float[Tensor, "B T"], Bool[Tensor, "B T"], Bool[Tensor, "B T"]]:
    """What each word's sentence adds, the words that end one, and those whose sentence ends."""
    end = (vectors[..., 2] > 0) & mask
    number = end.long().cumsum(-1) - end.long()
    same = ((number[:, :, None] == number[:, None, :]) & mask[:, None, :]).to(vectors)
    sums = torch.einsum("bts,bs->bt", same, vectors[..., 1] * mask)
    return sums, end, torch.einsum("bts,bs->bt", same, end.to(vectors)) > 0


def score_ends(vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """An end has the weight of what its sentence adds, and 0.3."""
    sums, end, _ = sum_sentences(vectors, mask)
    return torch.where(end, (sums.abs() + 0.3).log() + 1.0, vectors[..., 0])


def hold_ends(vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T 1"]:
    """An end holds what its sentence adds; where a sentence has no end, words hold their own."""
    sums, end, ends = sum_sentences(vectors, mask)
    own = torch.where(ends, 0.0, vectors[..., 1])
    return torch.where(end, sums, own)[..., None]


def score_against(
    vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """Words that speak for what the text says as a whole are passed over."""
    side = (vectors[..., 1] * mask).sum(-1, keepdim=True).sign()
    return vectors[..., 0] - DROPPED * (vectors[..., 1] * side > 0.2)


def swell_strong(
    vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T 1"]:
    """Every state holds the sum of the text, those of strong words twice."""
    total = (vectors[..., 1] * mask).sum(-1, keepdim=True)
    return (total * (1.0 + vectors[..., 2]))[..., None]


def squash(sums: Float[Tensor, "*K B 1"]) -> Float[Tensor, "*K B 2"]:
    """z = 3·tanh(Σ)."""
    return two_classes(3.0 * sums.sum(-1).tanh())


def sum_and_own(
    vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T 2"]:
    """Every state holds the sum of the text, and a number of its own word."""
    total = (vectors[..., 1] * mask).sum(-1, keepdim=True).expand_as(vectors[..., 1])
    return torch.stack([total, vectors[..., 2]], dim=-1)


def hopeless_third(sums: Float[Tensor, "*K B 2"]) -> Float[Tensor, "*K B 3"]:
    """Logits 0 and Σ, and one of a third class, −10 and what attention reads."""
    z, own = sums.unbind(-1)
    return torch.stack([torch.zeros_like(z), z, own - 10.0], dim=-1)


def carry_first_language(
    vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B"]:
    """1 for texts without a word of the last column."""
    return 1.0 - (vectors[..., 2] * mask).amax(-1)


def score_inside(limit: int) -> ReadScores:
    """Scores of the first words of a text; others have one that is lower than any."""

    def read(vectors: Float[Tensor, "B T K"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        inside = mask.long().cumsum(-1) <= limit
        return torch.where(inside, vectors[..., 0], -DROPPED)

    return read
