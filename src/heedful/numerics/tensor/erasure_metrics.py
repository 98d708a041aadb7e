"""Metrics of faithfulness by erasing words, given the outputs of the model.

Axes: K orders, S sizes, B texts, W words, D draws. `p` is the probability of the class predicted on
the whole text, `left` its probability on what is left of the text.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from heedful.numerics.tensor.ranking import ABSOLUTE_TOLERANCE, RELATIVE_TOLERANCE, dense_ranks

EQUAL_PROBABILITY = 1e-6  # smaller differences may be rounding, so they count as ties
EQUAL_DISTANCE = 1e-6  # of the largest distance: smaller differences count as ties


def bin_sizes(words: Int[Tensor, "B"], shares: Sequence[float]) -> Int[Tensor, "S B"]:
    """The number of words in each share, rounded up, at least one.

    >>> bin_sizes(torch.tensor([1, 19]), (0.01, 0.2, 0.5)).tolist()
    [[1, 1], [1, 4], [1, 10]]
    """
    exact = torch.tensor(shares, dtype=torch.float64)[:, None] * words
    return (exact - 1e-9).ceil().long().clamp(min=1)  # 0.01 · 700 is a little more than 7


def grid_sizes(words: Int[Tensor, "B"], steps: int) -> Int[Tensor, "S B"]:
    """Sizes from 1 to all but one word, every size if there are at most `steps`; 0 beyond the end.

    >>> grid_sizes(torch.tensor([1, 3, 9]), 4).T.tolist()
    [[0, 0, 0, 0], [1, 2, 0, 0], [2, 4, 6, 8]]
    """
    most = (words - 1).clamp(min=0)
    number = torch.arange(1, steps + 1)[:, None]
    spread = (number * most + steps - 1) // steps
    return torch.where(most <= steps, torch.where(number <= most, number, 0), spread)


def removal_ranks(
    scores: Float64[Tensor, "*K W"], real: Bool[Tensor, "*K W"]
) -> Int[Tensor, "*K W"]:
    """The rank of each word from the highest score down; ties in the order of the text.

    >>> removal_ranks(torch.tensor([0.2, 0.9, 0.2], dtype=torch.float64), torch.ones(3).bool())
    tensor([1, 0, 2])
    """
    ranks = dense_ranks(scores, real)  # rounding must not change a rank
    return ranks.argsort(dim=-1, descending=True, stable=True).argsort(dim=-1)


def reverse_order(place: Int[Tensor, "*K W"], real: Bool[Tensor, "*K W"]) -> Int[Tensor, "*K W"]:
    """The reverse orders; positions without a word stay at the end."""
    last = real.sum(-1, keepdim=True) - 1
    return torch.where(real, last - place, place)


def share_of_largest(
    scores: Float64[Tensor, "*K W"], real: Bool[Tensor, "*K W"]
) -> Float64[Tensor, "*K W"]:
    """|score| as a share of the largest in the text, in [0, 1]; all 0 where all scores are 0.

    Not min-max scaling: a score of 0 means "no influence" and must stay 0, and equal scores must
    all become 1.

    >>> share_of_largest(torch.tensor([-2.0, 1.0, 0.0]).double(), torch.ones(3).bool())
    tensor([1.0000, 0.5000, 0.0000], dtype=torch.float64)
    """
    sizes = scores.abs().masked_fill(~real, 0.0)
    largest = sizes.amax(-1, keepdim=True)
    return sizes / largest.masked_fill(largest <= ABSOLUTE_TOLERANCE, torch.inf)


def normalised_change(
    p: Float64[Tensor, "B"],
    left: Float64[Tensor, "*K B"],
    empty: Float64[Tensor, "B"],
    *,
    keeps: bool,
) -> Float64[Tensor, "*K B"]:
    """Sufficiency (keeps) or comprehensiveness as a share of the effect of the whole text.

    max(0, p − left) / max(0, p − empty), clipped to [0, 1], and 1 minus that for sufficiency, as in
    its paper: 1 is best in both. NaN where an empty text does as well.
    """
    worth = (p - empty).clamp(min=0.0)
    share = ((p - left).clamp(min=0.0) / worth).clamp(max=1.0)
    share = share.masked_fill((worth <= EQUAL_PROBABILITY).expand_as(share), torch.nan)
    return 1 - share if keeps else share


def diagnosticity(
    own: Float64[Tensor, "K B"], chance: Float64[Tensor, "R B"]
) -> Float64[Tensor, "K B"]:
    """The share of random orders that an order beats; ties count half.

    >>> own, chance = torch.tensor([[0.3]]).double(), torch.tensor([[0.1], [0.3]]).double()
    >>> diagnosticity(own, chance)
    tensor([[0.7500]], dtype=torch.float64)
    """
    share = _above_with_ties(own[:, None] - chance, EQUAL_PROBABILITY).mean(1)
    return share.masked_fill(own.isnan() | chance.isnan().any(0), torch.nan)


def sign_agreement(
    scores: Float64[Tensor, "K B W"], effects: Float64[Tensor, "B W"], *, negligible: float = 0.0
) -> Float64[Tensor, "K B"]:
    """The share of words whose score has the sign of their effect, or of a human score.

    Only words count whose score is not 0 and whose effect is above `negligible`; NaN if none does.
    """
    least = RELATIVE_TOLERANCE * scores.abs().amax(-1, keepdim=True) + ABSOLUTE_TOLERANCE
    counted = (scores.abs() > least) & (effects.abs() > negligible)
    same = counted & ((scores > 0) == (effects > 0))
    return same.sum(-1).double() / counted.sum(-1)


def infidelity(
    scores: Float64[Tensor, "K B W"],
    gone: Bool[Tensor, "D B W"],
    lost: Float64[Tensor, "D B"],
    *,
    scaled: bool = False,
) -> Float64[Tensor, "K B"]:
    """Mean over draws of (Σ scores of removed words − loss of output)² (Yeh et al., 2019).

    If `scaled`, scores are first multiplied by the factor that minimises this, so the unit of an
    explanation does not matter.
    """
    expected = torch.einsum("kbw,dbw->kdb", scores, gone.double())
    if scaled:
        unit = (expected * lost).sum(1, keepdim=True) / expected.square().sum(1, keepdim=True)
        expected = expected * unit.nan_to_num(1.0)
    return (expected - lost).square().mean(1)


def nearest_distance(
    points: Float64[Tensor, "M D"], reference: Float64[Tensor, "N D"], others: Bool[Tensor, "M N"]
) -> Float64[Tensor, "M"]:
    """The distance of each point to the nearest reference point marked in `others`.

    >>> reference = torch.tensor([[0.0], [3.0]]).double()
    >>> nearest_distance(reference, reference, ~torch.eye(2).bool())
    tensor([3., 3.], dtype=torch.float64)
    """
    # not by matrix products: those cancel where points are close, and only such matter
    apart = torch.cdist(points, reference, compute_mode="donot_use_mm_for_euclid_dist")
    return apart.masked_fill(~others, torch.inf).amin(-1)


def share_nearer(
    distance: Float64[Tensor, "M"], usual: Float64[Tensor, "N"]
) -> Float64[Tensor, "M"]:
    """The share of the usual distances that are smaller, ties half; NaN stays NaN.

    >>> share_nearer(torch.tensor([2.0]).double(), torch.tensor([1.0, 2.0, 3.0, 4.0]).double())
    tensor([0.3750], dtype=torch.float64)
    """
    near = float(EQUAL_DISTANCE * usual.max())
    share = _above_with_ties(distance[:, None] - usual, near).mean(-1)
    return share.masked_fill(distance.isnan(), torch.nan)


def _above_with_ties(gap: Float64[Tensor, "*K"], tolerance: float) -> Float64[Tensor, "*K"]:
    return torch.where(gap.abs() <= tolerance, 0.5, (gap > 0).double())
