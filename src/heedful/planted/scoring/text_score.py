"""How well the scores of one text's words agree with the words that are known to matter.

Words are ranked by the size of their score, without its sign, since a word can matter for a class
or against it. Tied words share the places that they occupy, whatever their order in the text.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from heedful.core.errors import ShapeError
from heedful.numerics.tensor.ranking import dense_ranks, top_k_places
from heedful.planted.influence.kind import KnownText


@dataclass(frozen=True, slots=True)
class TextScore:
    """The measures of one text, each between 0 and 1, and what random scores would reach.

    NaN where the truth says nothing: no word matters, or all of them do.

    Args:
        top_word: Whether the word with the largest score is of the first tier.
        top_word_chance: The share of words of the first tier.
        top_set: The share of the k words that matter among the k words with the largest scores.
        top_set_chance: The share of words that matter, k of all.
        order: The share of pairs of words of different tiers that are in order; ties count half,
            and ½ is chance. Words that never matter come after all tiers.
    """

    top_word: float
    top_word_chance: float
    top_set: float
    top_set_chance: float
    order: float


def score_text(scores: Float64[Tensor, "W"], known: KnownText) -> TextScore:
    """Compare the scores of a text's words with its tiers.

    >>> known = KnownText("not a good film", tiers=((2,), (0,)))
    >>> score_text(torch.tensor([0.1, 0.3, -0.9, 0.0], dtype=torch.float64), known)
    TextScore(top_word=1.0, top_word_chance=0.25, top_set=0.5, top_set_chance=0.5, order=0.8)
    """
    tier = tier_of_words(known)
    words = len(tier)
    if len(scores) != words or not bool(scores.isfinite().all()):
        raise ShapeError(
            f"A text of {words} words needs as many finite scores; got {len(scores)}, "
            f"{int((~scores.isfinite()).sum())} of them not finite."
        )
    ranks = dense_ranks(scores.abs(), torch.ones(words, dtype=torch.bool))
    decisive = tier < len(known.tiers)
    return TextScore(
        *_share_on_top(ranks, tier == 0, 1),
        *_share_on_top(ranks, decisive, int(decisive.sum())),
        _order(ranks, tier),
    )


def tier_of_words(known: KnownText) -> Int64[Tensor, "W"]:
    """The number of each word's tier, 0 for the first; one more than the last if it is in none."""
    tier = torch.full((len(known.text.split()),), len(known.tiers))
    for number, places in enumerate(known.tiers):
        tier[list(places)] = number
    return tier


def _share_on_top(
    ranks: Int64[Tensor, "W"], members: Bool[Tensor, "W"], places: int
) -> tuple[float, float]:
    """The share of the first places that members have, and their share of all words."""
    count, words = int(members.sum()), len(members)
    if count in (0, words):
        return float("nan"), float("nan")
    on_top = top_k_places(ranks, torch.ones_like(members), k=places)
    return float(on_top[members].sum()) / places, count / words


def _order(ranks: Int64[Tensor, "W"], tier: Int64[Tensor, "W"]) -> float:
    """The share of pairs of words of different tiers whose scores are in order, ties half."""
    earlier = tier[:, None] < tier
    if not bool(earlier.any()):
        return float("nan")
    signs = torch.sign(ranks[:, None] - ranks)[earlier]
    return float(signs.double().mean()) / 2 + 0.5
