"""Rules that trained kinds learn, the texts they are about, and the sets of words to learn from.

A text has words of one side, negative or positive, in tiers of strength, among words that never
matter. Sets of words are texts of their own, so that networks learn the rule on them, too.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heedful.planted.influence.kind import InfluenceSetting, KnownText

SPECIAL_IDS = 4  # ids before that of word w0, in both architectures
VOCABULARY_SIZE = 100
WORDS = tuple(f"w{number}" for number in range(VOCABULARY_SIZE))
WORDS_PER_TIER = 6  # on each side
DECOYS = 10  # words that never matter, on which some kinds put attention
LEAST_WORDS, MOST_MATTERING = 4, 6  # words of a text, and words of it that matter
SUM_LIMIT = 4.0  # log-odds that the sum of all strengths approaches
SHORT_MEAN = 7  # half of the training texts are as short as this on average
Combination = Literal["sum", "mean"]
PerWord = Float[Tensor, "V"]


@dataclass(frozen=True, eq=False)
class Rule:
    """Log-odds of a set of words; all tables are indexed by token id, special tokens included.

    "sum": z = ± L·tanh(Σ strength / L). Adding a stronger word always changes the output more.
    "mean": z = ± Σ weight·strength / Σ weight, where the weights of tiers lie so far apart that
    the strongest tier decides, and adding a weaker word to a stronger one changes little.

    Args:
        tier: 1 for the words with the most influence; 0 for words that never matter.
        side: −1 or 1 for words that matter, else 0.
        strength: Log-odds of a word alone, without its sign; 0 for words that never matter.
        weight: Weight of a word in the mean; 0 for words that never matter.
        decoy: Words that never matter, and of which each text has some.
        combine: How words that matter are combined.
        most: The largest number of words of a text that matter.
    """

    tier: Int[Tensor, "V"]
    side: PerWord
    strength: PerWord
    weight: PerWord
    decoy: Bool[Tensor, "V"]
    combine: Combination
    most: int

    def log_odds(self, ids: Int[Tensor, "N T"]) -> Float[Tensor, "N"]:
        """The log-odds of each set of words."""
        signed = self.side[ids] * self.strength[ids]
        if self.combine == "sum":
            return SUM_LIMIT * (signed.sum(-1) / SUM_LIMIT).tanh()
        total = self.weight[ids].sum(-1)
        return (self.weight[ids] * signed).sum(-1) / total.clamp(min=1e-9)

    def draw(self, draw: np.random.Generator, mean: int) -> KnownText:
        """A text of mean ± mean/2 words, of which 2 or more matter, one of them of tier 1 or 2."""
        length = max(LEAST_WORDS, int(draw.integers((mean + 1) // 2, mean + mean // 2 + 1)))
        matter = int(draw.integers(2, min(self.most, length - 2) + 1))
        tiers = max(self._tiers)
        wanted = [int(draw.integers(1, min(2, tiers) + 1))]
        wanted += [int(one) for one in draw.integers(1, tiers + 1, matter - 1)]
        side = 1 if draw.random() < 0.5 else -1
        ids: list[int] = []
        for number in range(1, tiers + 1):
            group = draw.permutation(self._groups[side, number])
            ids += group[: wanted.count(number)].tolist()
        ids += draw.choice(self._decoys, 1 + int(length >= 8)).tolist()
        ids += draw.choice(self._groups[0, 0], max(0, length - len(ids))).tolist()
        return self.known([ids[place] for place in draw.permutation(len(ids))])

    @cached_property
    def _groups(self) -> dict[tuple[int, int], NDArray[np.int64]]:
        """Ids of the words of each side and tier; of no side and tier 0, without decoys."""
        words = torch.arange(SPECIAL_IDS, len(self.tier))
        own = words[~self.decoy[words]]
        pairs = torch.stack([self.side[own].long(), self.tier[own]], dim=-1)
        return {
            (side, tier): own[(pairs == torch.tensor([side, tier])).all(-1)].numpy()
            for side, tier in {tuple(one) for one in pairs.tolist()}
        }

    @cached_property
    def _decoys(self) -> NDArray[np.int64]:
        decoys: NDArray[np.int64] = self.decoy.nonzero()[:, 0].numpy()
        return decoys

    @cached_property
    def _tiers(self) -> list[int]:
        tiers: list[int] = self.tier.tolist()
        return tiers

    def known(self, ids: list[int]) -> KnownText:
        """The text of these words, with its tiers."""
        tiers = [self._tiers[one] for one in ids]
        found = sorted({one for one in tiers if one})
        positions = tuple(
            tuple(place for place, one in enumerate(tiers) if one == tier) for tier in found
        )
        return KnownText(" ".join(WORDS[one - SPECIAL_IDS] for one in ids), positions)


def draw_rule(
    setting: InfluenceSetting,
    combine: Combination,
    *,
    tiers: int = 3,
    most: int = MOST_MATTERING,
) -> Rule:
    """A rule whose words and strengths differ by seed; a single tier is as strong as the first."""
    draw = setting.draw("rule")
    number = SPECIAL_IDS + VOCABULARY_SIZE
    places = SPECIAL_IDS + draw.permutation(VOCABULARY_SIZE)
    tier, side = torch.zeros(number, dtype=torch.long), torch.zeros(number)
    strength, weight = torch.zeros(number), torch.zeros(number)
    strengths, weights = _draw_tiers(draw, combine, tiers)
    for index in range(2 * tiers):
        group = torch.from_numpy(places[index * WORDS_PER_TIER : (index + 1) * WORDS_PER_TIER])
        tier[group], side[group] = index // 2 + 1, float(2 * (index % 2) - 1)
        strength[group], weight[group] = strengths[index // 2], weights[index // 2]
    decoy = torch.zeros(number, dtype=torch.bool)
    decoy[torch.from_numpy(places[-DECOYS:])] = True
    return Rule(tier, side, strength, weight, decoy, combine, most)


def _draw_tiers(
    draw: np.random.Generator, combine: Combination, tiers: int
) -> tuple[list[float], list[float]]:
    """Strength and weight of each tier."""
    if tiers == 1:
        return [float(draw.uniform(1.6, 2.6))], [1.0]
    if combine == "sum":
        strengths = [draw.uniform(1.9, 2.2), draw.uniform(1.25, 1.4), draw.uniform(0.8, 0.9)]
        return [float(one) for one in strengths[:tiers]], [1.0] * tiers
    first, ratio = draw.uniform(2.6, 3.0), draw.uniform(6.0, 9.0)
    fall = draw.uniform(0.62, 0.68) if tiers == 3 else draw.uniform(0.74, 0.78)
    strengths = [float(first * fall**number) for number in range(tiers)]
    return strengths, [float(ratio ** (tiers - 1 - number)) for number in range(tiers)]


@dataclass(frozen=True, eq=False)
class TrainingSets:
    """Sets of words between a start and an end token, padded with 0."""

    ids: Int[Tensor, "N T"]
    present: Bool[Tensor, "N T"]
    mask: Bool[Tensor, "N T"]
    log_odds: Float[Tensor, "N"]

    def select(self, rows: Int[Tensor, "M"]) -> "TrainingSets":
        """Some of the sets, without columns that only pad."""
        width = int(self.present[rows].sum(-1).max())
        ids, present, mask = (one[rows, :width] for one in (self.ids, self.present, self.mask))
        return TrainingSets(ids, present, mask, self.log_odds[rows])


def draw_sets(
    rule: Rule, setting: InfluenceSetting, count: int, *, start: int, end: int
) -> TrainingSets:
    """Whole texts and sets of their words, of the length of the setting and short."""
    draw = setting.draw("training sets")
    rows, tiers = [], rule.tier.numpy()
    for index in range(count):
        mean = setting.length if index % 2 else min(SHORT_MEAN, setting.length)
        words = rule.draw(draw, mean).text.split()
        text = np.array([SPECIAL_IDS + int(word.removeprefix("w")) for word in words])
        kept = _draw_kept(draw, tiers[text] > 0)
        rows.append([start, *text[kept].tolist(), end])
    width = max(map(len, rows))
    ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    present = torch.arange(width) < torch.tensor([len(row) for row in rows])[:, None]
    return TrainingSets(ids, present, ids >= SPECIAL_IDS, rule.log_odds(ids))


def _draw_kept(draw: np.random.Generator, matter: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """All words; or a share of them; or a share of those that matter, and few others or none.

    Sets of one or two words, or without other words, are rare among random sets, and networks
    would be least exact on them.
    """
    count, way = len(matter), draw.random()
    if way < 0.25:
        return np.ones(count, dtype=bool)
    share = draw.random() if way < 0.85 else 1.5 / count
    others = share if way < 0.5 or way >= 0.85 else min(share, 3.0 / count) * (way < 0.7)
    kept: NDArray[np.bool_] = draw.random(count) < np.where(matter, share, others)
    if not kept.any():
        kept[draw.integers(count)] = True
    return kept
