"""Subjects over one attention layer, built from numbers per word, and the texts that they read.

Every word adds an amount to each channel of a text, and the output is a function of the sums over
the text. States hold amounts in one of three ways, and the model's own attention reads the same
sums in all of them, whatever its weights are:

- `own`: the state of word t holds its amount divided by its weight, as where words of low weight
  have large value vectors (Kobayashi et al., 2020): Σ αₜ·(vₜ/αₜ) = Σ vₜ;
- `next`: the state after word t (for the last word, the first state) has its score and amount;
- `running`: a state holds the sum up to its word, and attention is on the end.

With `averaged` an amount is not divided: the output is a function of the weighted mean Σ αₜ·vₜ.
The part of the sums that attention does not carry is equal in all states, or passes attention by.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from statistics import NormalDist
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from heedful.core.batch import Batch
from heedful.core.values import Decoder, LinearDecoder
from heedful.numerics.tensor.distributions import masked_softmax
from heedful.planted.influence.kind import InfluenceSetting, KnownText, PlantedModel
from heedful.planted.texts import VOCABULARY_SIZE
from heedful.planted.word_subject import WordSubject

Numbers = NDArray[np.float64]
WordIds = NDArray[np.int64]
Output = Callable[[Float[Tensor, "*K B D"]], Float[Tensor, "*K B C"]]
"""From the sums of all channels to logits."""
ReadScores = Callable[[Float[Tensor, "B T K"], Bool[Tensor, "B T"]], Float[Tensor, "B T"]]
ReadAmounts = Callable[[Float[Tensor, "B T K"], Bool[Tensor, "B T"]], Float[Tensor, "B T D"]]
ReadShare = Callable[[Float[Tensor, "B T K"], Bool[Tensor, "B T"]], Float[Tensor, "B"]]

Place = Literal["anywhere", "apart", "early"]
DrawText = Callable[[np.random.Generator, int], KnownText]

SIDE_WORDS = 20  # words of one level of evidence for one class
LEAST_WORDS = 4  # of any text
NOISE = 0.02  # largest amount of a word that never matters: 0.005 in probability
END_STEP = 6.0  # by so much the score of a word is above that of the word before, in `running`


def log_odds(sums: Float[Tensor, "*K B D"]) -> Float[Tensor, "*K B 2"]:
    """Logits (0, z), where z is the sum of all channels."""
    z = sums.sum(-1)
    return torch.stack([torch.zeros_like(z), z], dim=-1)


def classes(sums: Float[Tensor, "*K B D"]) -> Float[Tensor, "*K B D"]:
    """One channel for each class."""
    return sums


def read_first_column(
    vectors: Float[Tensor, "B T K"],
    mask: Bool[Tensor, "B T"],  # noqa: ARG001
) -> Float[Tensor, "B T"]:
    """The score of a word is its first number."""
    return vectors[..., 0]


def carry_everything(
    vectors: Float[Tensor, "B T K"],
    mask: Bool[Tensor, "B T"],  # noqa: ARG001
) -> Float[Tensor, "B"]:
    """Attention carries everything."""
    return torch.ones_like(vectors[:, 0, 0])


def carry_nothing(
    vectors: Float[Tensor, "B T K"],
    mask: Bool[Tensor, "B T"],  # noqa: ARG001
) -> Float[Tensor, "B"]:
    """Attention carries nothing that depends on its weights."""
    return torch.zeros_like(vectors[:, 0, 0])


@dataclass(frozen=True)
class Reading:
    """How a subject reads a text, from the numbers of its words.

    Args:
        output: From the sums to logits.
        channels: How many columns after the score are amounts.
        scores: The attention scores.
        amounts: The amounts, if they are not just columns.
        held: Which state holds the amount of a word.
        averaged: Attention reads a weighted mean of amounts instead of their sum.
        share: The share of the sums that attention carries, per text.
        rest: Where the rest of the sums is: equal in all states, or past attention.
    """

    output: Output = log_odds
    channels: int = 1
    scores: ReadScores = read_first_column
    amounts: ReadAmounts | None = None
    held: Literal["own", "next", "running"] = "own"
    averaged: bool = False
    share: ReadShare = carry_everything
    rest: Literal["states", "past"] = "states"


@dataclass(frozen=True, eq=False)
class InfluenceSubject(WordSubject):
    """A subject of a kind whose truth is known by sets of words; a state is [score, held, past]."""

    setting: InfluenceSetting
    table: Float[Tensor, "V K"]
    reading: Reading
    labels: tuple[str, ...] = ("negative", "positive")

    @property
    def family(self) -> str:
        """The kind, as a model family."""
        return f"planted-{self.setting.kind}"

    def fingerprint(self) -> str:
        """sha256 over the setting and the table."""
        return sha256(f"{self.setting}".encode() + self.table.numpy().tobytes()).hexdigest()

    def states(self, batch: Batch, vectors: Float[Tensor, "B T K"]) -> Float[Tensor, "B T D"]:
        """The score, the amounts as this state holds them, and what passes attention by."""
        reading, mask = self.reading, batch.mask
        amounts = vectors[..., 1 : 1 + reading.channels]
        if reading.amounts is not None:
            amounts = reading.amounts(vectors, mask)
        amounts = amounts.masked_fill(~mask[..., None], 0.0)
        scores = reading.scores(vectors, mask)
        if reading.held == "next":
            before = _word_before(mask)
            scores = scores.gather(1, before)
            amounts = amounts.gather(1, before[..., None].expand_as(amounts))
            amounts = amounts.masked_fill(~mask[..., None], 0.0)
        if reading.held == "running":
            scores = END_STEP * mask.to(scores).cumsum(-1) + 0.0 * scores
        share = reading.share(vectors, mask)[:, None, None]
        rest = (1.0 - share) * amounts.sum(1, keepdim=True).expand_as(amounts)
        held = share * self._held(scores, amounts, mask)
        in_states = reading.rest == "states"
        past = torch.zeros_like(rest) if in_states else rest
        return torch.cat([scores[..., None], held + rest if in_states else held, past], dim=-1)

    def _held(
        self,
        scores: Float[Tensor, "B T"],
        amounts: Float[Tensor, "B T D"],
        mask: Bool[Tensor, "B T"],
    ) -> Float[Tensor, "B T D"]:
        if self.reading.held == "running":
            return amounts.cumsum(1)
        if self.reading.averaged:
            return amounts
        weights = masked_softmax(scores, mask).masked_fill(~mask, 1.0)
        return amounts / weights[..., None]

    def state_decoder(self, batch: Batch, states: Float[Tensor, "B T D"]) -> Decoder:  # noqa: ARG002
        """Linear if the output is linear in the sums."""
        held, past = states[..., 1:].chunk(2, dim=-1)
        if self.reading.output in (log_odds, classes):
            contributions = self.reading.output(held + past)
            return LinearDecoder(contributions, states.new_zeros(contributions.shape[-1]))
        return SumDecoder(held, past[:, 0], self.reading.output)


@dataclass(frozen=True, slots=True, eq=False)
class SumDecoder:
    """The output of the attended amounts and of those that pass attention by."""

    held: Float[Tensor, "B T D"]
    past: Float[Tensor, "B D"]
    output: Output

    def __call__(self, attention: Float[Tensor, "*K B T"]) -> Float[Tensor, "*K B C"]:
        return self.output(torch.einsum("...bt,btd->...bd", attention, self.held) + self.past)


def _word_before(mask: Bool[Tensor, "B T"]) -> Tensor:
    """The position of the word before, of the last word for the first; texts begin at 0."""
    before = (torch.arange(mask.shape[1]) - 1).expand_as(mask).clone()
    before[:, 0] = mask.sum(-1) - 1
    return before


# Words and their numbers


def split_words(setting: InfluenceSetting, *counts: int) -> list[WordIds]:
    """The vocabulary in a random order, cut into parts of these sizes and the rest."""
    order = setting.draw("roles").permutation(VOCABULARY_SIZE)
    return np.split(order, np.cumsum(counts))


@dataclass(frozen=True, eq=False)
class Evidence:
    """Words that speak for a class, by level and side; other words never matter.

    `amounts` are negative for side 0 and positive for side 1, and 0 for other words.
    """

    words: NDArray[np.int64]
    others: WordIds
    amounts: Numbers

    @property
    def groups(self) -> list[WordIds]:
        """The words of each level and side."""
        return list(self.words.reshape(-1, SIDE_WORDS))

    def pick(self, draw: np.random.Generator, side: int, *counts: int) -> list[list[int]]:
        """Different words of one side, so many of each level."""
        levels = zip(self.words[:, side], counts, strict=True)
        return [draw.choice(words, count, replace=False).tolist() for words, count in levels]


def draw_evidence(setting: InfluenceSetting, *levels: float) -> Evidence:
    """Twenty words of evidence for each level and side, within 7 % of the level.

    The seed scales all levels by a factor between 0.95 and 1.15.
    """
    count = len(levels) * 2 * SIDE_WORDS
    own, others = split_words(setting, count)
    words = own.reshape(len(levels), 2, SIDE_WORDS)
    draw = setting.draw("amounts")
    signs = np.array([-1.0, 1.0])[:, None] * draw.uniform(0.95, 1.15)
    sizes = np.array(levels)[:, None, None] * draw.uniform(0.93, 1.07, words.shape)
    amounts = np.zeros(VOCABULARY_SIZE)
    amounts[words] = sizes * signs
    return Evidence(words, others, amounts)


def score_in_order(setting: InfluenceSetting, influence: Numbers, gap: float = 0.7) -> Numbers:
    """Scores that grow with influence; those of words without any lie lower by at least `gap`.

    A score is p·log(influence) ± 0.08, p between 0.8 and 1.3 by seed: words are in order if one
    has at least 1.25 times the influence of another. Those without influence have an exponential
    tail of scores, cut at 3.
    """
    draw, matter = setting.draw("scores"), influence > 0
    power, noise = draw.uniform(0.8, 1.3), draw.uniform(-0.08, 0.08, len(influence))
    scores = power * np.log(np.where(matter, influence, 1.0)) + noise
    tail = np.minimum(draw.exponential(draw.uniform(0.5, 1.5), len(influence)), 3.0)
    ordered: Numbers = np.where(matter, scores, scores[matter].min() - gap - tail)
    return ordered


def score_on_others(setting: InfluenceSetting, influence: Numbers) -> Numbers:
    """Scores at random, those of words with influence lower by at least 0.8 than all others."""
    draw = setting.draw("scores")
    low = draw.uniform(-2.5, -1.0, len(influence)) * draw.uniform(1.0, 1.5)
    high = draw.uniform(-0.2, 1.5, len(influence))
    return np.where(influence > 0, low, high)


def score_at_random(setting: InfluenceSetting, groups: Sequence[WordIds]) -> Numbers:
    """Scores that know nothing of influence, with a standard deviation between 0.8 and 1.6.

    In each group of words, and among the others, they are quantiles of the normal distribution in
    a random order: no group is lucky as a whole.
    """
    draw = setting.draw("scores")
    size, scores = draw.uniform(0.8, 1.6), np.zeros(VOCABULARY_SIZE)
    rest = np.setdiff1d(np.arange(VOCABULARY_SIZE), np.concatenate(groups))
    for words in (*groups, rest):
        shares = (draw.permutation(len(words)) + 0.5) / len(words)
        scores[words] = [NormalDist(0.0, size).inv_cdf(share) for share in shares.tolist()]
    return scores


def add_noise(setting: InfluenceSetting, scores: Numbers, influence: Numbers) -> Numbers:
    """Tiny amounts of the words without influence, in proportion to their weights."""
    never = influence == 0
    sizes = NOISE * np.exp(scores - scores[never].max())
    drawn: Numbers = setting.draw("noise").uniform(-1.0, 1.0, len(scores))
    return np.where(never, sizes * drawn, 0.0)


def build_model(
    setting: InfluenceSetting,
    reading: Reading,
    columns: Sequence[Numbers],
    draw: Callable[[np.random.Generator, int], KnownText],
    labels: tuple[str, ...] = ("negative", "positive"),
) -> PlantedModel:
    """A model from columns of numbers, one number per word: scores, amounts, others."""
    table = torch.from_numpy(np.stack(columns, axis=1))
    return PlantedModel(InfluenceSubject(setting, table, reading, labels), draw)


# Texts


def draw_length(draw: np.random.Generator, mean: int) -> int:
    """Between half and 1.5 times the mean, at least four."""
    return int(draw.integers(max(LEAST_WORDS, mean // 2), mean + mean // 2 + 1))


def place_words(
    draw: np.random.Generator,
    length: int,
    tiers: Sequence[Sequence[int]],
    others: WordIds,
    *,
    where: Place = "anywhere",
) -> KnownText:
    """A text of the words of all tiers at random places, and others in between.

    `apart`: after each of them comes another word; the text is read as a circle. `early`: in the
    first half, and not at the very beginning.
    """
    decisive = [word for tier in tiers for word in tier]
    ids = draw.choice(others, length)
    if where == "apart":
        places = _places_apart(draw, length, len(decisive))
    else:
        places = draw.permutation(length)[: len(decisive)]
        if where == "early":
            places = 1 + draw.permutation(length // 2)[: len(decisive)]
    ids[places] = decisive
    ends = np.cumsum([len(tier) for tier in tiers])
    positions = tuple(tuple(sorted(part.tolist())) for part in np.split(places, ends)[:-1])
    return KnownText(" ".join(f"w{number}" for number in ids), positions)


def _places_apart(draw: np.random.Generator, length: int, count: int) -> WordIds:
    starts = np.sort(draw.permutation(length - count)[:count]) + np.arange(count)
    places: WordIds = draw.permutation((starts + draw.integers(length)) % length)
    return places


def read_ids(known: KnownText) -> WordIds:
    """The numbers of the words of a text."""
    return np.array([int(word.removeprefix("w")) for word in known.text.split()])


def redraw_until_wrong(
    draw_text: Callable[[], KnownText], scores: Numbers, *, held: str = "own"
) -> KnownText:
    """A text in which these scores order words no better than chance.

    At most 55 % of the pairs of words of two tiers are in order, and the highest score is not in
    the first tier. Of texts under random scores, about half are so.
    """
    while True:
        known = draw_text()
        own = scores[read_ids(known)]
        own = np.roll(own, 1) if held == "next" else own
        if int(own.argmax()) not in known.tiers[0] and share_in_order(own, known) <= 0.55:
            return known


def share_in_order(scores: Numbers, known: KnownText) -> float:
    """Of all pairs of words of two tiers, those with the higher score on the earlier tier."""
    never = [place for place in range(len(scores)) if place not in known.decisive]
    tiers = [*known.tiers, tuple(never)]
    right = [
        scores[a] > scores[b]
        for number, tier in enumerate(tiers)
        for later in tiers[number + 1 :]
        for a in tier
        for b in later
    ]
    return float(np.mean(right))
