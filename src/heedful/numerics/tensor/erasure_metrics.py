"""How faithful scores are to what erasing words does: the arithmetic, given what the model said.

Axes: K orders, S sizes, B texts, W words, D draws. `p` is the probability of the class that was
predicted on the whole text, `left` the same on what is left of the text.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from heedful.numerics.tensor.ranking import ABSOLUTE_TOLERANCE, RELATIVE_TOLERANCE, dense_ranks

EQUAL_PROBABILITY = (
    1e-6  # probabilities that lie nearer to each other are equal: less may be rounding
)


def bin_sizes(words: Int[Tensor, "B"], shares: Sequence[float]) -> Int[Tensor, "S B"]:
    """How many words each share is, rounded up, at least one.

    >>> bin_sizes(torch.tensor([1, 19]), (0.01, 0.2, 0.5)).tolist()
    [[1, 1], [1, 4], [1, 10]]
    """
    exact = torch.tensor(shares, dtype=torch.float64)[:, None] * words
    return (exact - 1e-9).ceil().long().clamp(min=1)  # 0.01 · 700 is a little more than 7


def grid_sizes(words: Int[Tensor, "B"], steps: int) -> Int[Tensor, "S B"]:
    """From 1 to all but one word, all sizes where they are no more than `steps`; 0 beyond the end.

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
    """The place of each word from the highest score down, equal ones as they stand in the text.

    >>> places(torch.tensor([0.2, 0.9, 0.2], dtype=torch.float64), torch.ones(3).bool())
    tensor([1, 0, 2])
    """
    ranks = dense_ranks(scores, real)  # rounding must not move a rank
    return ranks.argsort(dim=-1, descending=True, stable=True).argsort(dim=-1)


def reverse_order(place: Int[Tensor, "*K W"], real: Bool[Tensor, "*K W"]) -> Int[Tensor, "*K W"]:
    """The same orders from their end; what is no word stays behind."""
    last = real.sum(-1, keepdim=True) - 1
    return torch.where(real, last - place, place)


def share_of_largest(
    scores: Float64[Tensor, "*K W"], real: Bool[Tensor, "*K W"]
) -> Float64[Tensor, "*K W"]:
    """|score| as a share of the text's largest, in [0, 1]; 0 throughout where all scores are 0.

    Not spread from the least to the largest: a score of 0 says "no influence" and must stay 0, and
    equal scores must stay equal to 1.

    >>> as_shares(torch.tensor([-2.0, 1.0, 0.0]).double(), torch.ones(3).bool())
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
    """Sufficiency (keeps) or comprehensiveness as a share of what the whole text is worth.

    max(0, p − left) / max(0, p − empty), clipped to [0, 1], and 1 minus that for sufficiency, as
    its paper has it: 1 is best in both. NaN where an empty text does as well.
    """
    worth = (p - empty).clamp(min=0.0)
    share = ((p - left).clamp(min=0.0) / worth).clamp(max=1.0)
    share = share.masked_fill((worth <= EQUAL_PROBABILITY).expand_as(share), torch.nan)
    return 1 - share if keeps else share


def diagnosticity(
    own: Float64[Tensor, "K B"], chance: Float64[Tensor, "R B"]
) -> Float64[Tensor, "K B"]:
    """The share of the random orders that an order beats, ties half.

    >>> own, chance = torch.tensor([[0.3]]).double(), torch.tensor([[0.1], [0.3]]).double()
    >>> diagnosticity(own, chance)
    tensor([[0.7500]], dtype=torch.float64)
    """
    gap = own[:, None] - chance
    return (
        torch.where(gap.abs() <= EQUAL_PROBABILITY, 0.5, (gap > 0).double())
        .mean(1)
        .masked_fill(own.isnan() | chance.isnan().any(0), torch.nan)
    )


def sign_violations(
    scores: Float64[Tensor, "K B W"], effects: Float64[Tensor, "B W"], real: Bool[Tensor, "B W"]
) -> Float64[Tensor, "K B"]:
    """The share of the words whose score has another sign than the effect of removing them.

    Words count that have both a score and an effect; NaN where none has.
    """
    least = (
        RELATIVE_TOLERANCE * scores.abs().masked_fill(~real, 0.0).amax(-1, keepdim=True)
        + ABSOLUTE_TOLERANCE
    )
    counted = (scores.abs() > least) & (effects.abs() > EQUAL_PROBABILITY) & real
    against = counted & ((scores > 0) != (effects > 0))
    return against.sum(-1).double() / counted.sum(-1)


def infidelity(
    scores: Float64[Tensor, "K B W"],
    gone: Bool[Tensor, "D B W"],
    lost: Float64[Tensor, "D B"],
    *,
    scaled: bool = False,
) -> Float64[Tensor, "K B"]:
    """Mean over draws of (Σ scores of the words gone − what the output lost)² (Yeh et al., 2019).

    Scaled, the scores are first multiplied by the number that makes this least: so an explanation
    is not blamed for its unit.
    """
    told = torch.einsum("kbw,dbw->kdb", scores, gone.double())
    if scaled:
        unit = (told * lost).sum(1, keepdim=True) / told.square().sum(1, keepdim=True)
        told = told * unit.nan_to_num(1.0)
    return (told - lost).square().mean(1)
