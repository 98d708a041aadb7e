"""Similarity of two rankings of the tokens of a text: Kendall, Spearman, top tokens, with ties.

Scores are compared up to a tolerance, because batch shape and hardware change the last digits of a
score and must not change a rank. Scores inside the mask are finite (`Explanation` checks that).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Float64, Int, Int64
from torch import Tensor
from torch.nn.functional import pad

RELATIVE_TOLERANCE = 1e-6  # relative to the largest score of the text
ABSOLUTE_TOLERANCE = 1e-12  # absolute: below this, scores are rounding noise around zero
SIGNS_AT_A_TIME = 2**21  # 8 MB of float32; far below 2^24, so sums of signs are exact


def dense_ranks(
    values: Float[Tensor, "*batch T"],
    mask: Bool[Tensor, "*batch T"],
    *,
    tolerance: float = RELATIVE_TOLERANCE,
    floor: float = ABSOLUTE_TOLERANCE,
) -> Int64[Tensor, "*batch T"]:
    """Ranks 0, 1, 2, … of the scores in the mask, smallest first, equal for ties; −1 elsewhere.

    Neighbours in the sorted row are tied if their gap ≤ tolerance · max|value| + floor.

    >>> scores, mask = torch.tensor([0.5, 0.1, 0.5000001, 9.0]), torch.tensor([True] * 3 + [False])
    >>> dense_ranks(scores, mask)
    tensor([ 1,  0,  1, -1])
    """
    exact = values.double()
    scale = exact.abs().masked_fill(~mask, 0.0).amax(-1, keepdim=True)
    ordered, home = exact.masked_fill(~mask, torch.inf).sort(-1)
    steps = ordered.diff(dim=-1) > tolerance * scale + floor
    ranks = pad(steps.cumsum(-1), (1, 0))
    return torch.empty_like(ranks).scatter(-1, home, ranks).masked_fill(~mask, -1)


@dataclass(frozen=True, slots=True, eq=False)
class Concordance:
    """Kendall's τ-b between all K × K rankings of each text, and the statistics for its p-values.

    `balance` is concordant minus discordant pairs; the last three sum over the groups of tied
    tokens of each ranking, c tokens to a group.
    """

    tau: Float64[Tensor, "B K K"]  # NaN: fewer than two tokens, or all tied in one ranking
    balance: Int64[Tensor, "B K K"]
    n: Int64[Tensor, "B"]  # tokens ranked
    tie_pairs: Int64[Tensor, "B K"]  # Σ c(c−1)/2
    tie_triples: Int64[Tensor, "B K"]  # Σ c(c−1)(c−2)
    tie_spread: Int64[Tensor, "B K"]  # Σ c(c−1)(2c+5)


def kendall(ranks: Int[Tensor, "B K T"], mask: Bool[Tensor, "B T"]) -> Concordance:
    """Kendall's τ-b between all pairs of K rankings of the tokens of each text.

    τ = (concordant − discordant) / √(untied pairs of one · untied pairs of the other), in [−1, 1]
    (Kendall, 1945). `ranks` come from `dense_ranks` with the same mask.

    >>> ranks = torch.tensor([[[0, 1, 2], [0, 2, 1]]])
    >>> round(kendall(ranks, torch.ones(1, 3, dtype=torch.bool)).tau[0, 0, 1].item(), 3)
    0.333
    """
    ranks = ranks.masked_fill(~mask[:, None], -1)
    n, size = mask.sum(-1), group_sizes(ranks)
    tie_pairs = (size * (size - 1) // 2).sum(-1)
    balance = _balance(ranks, n)
    untied = ((n * (n - 1) // 2)[:, None] - tie_pairs).double().sqrt()
    return Concordance(
        # in a ranking of ties only the balance is 0 too, and 0/0 gives the NaN of an undefined τ
        tau=(balance / untied[:, :, None] / untied[:, None, :]).clamp(-1.0, 1.0),
        balance=balance,
        n=n,
        tie_pairs=tie_pairs,
        tie_triples=(size * (size - 1) * (size - 2)).sum(-1),
        tie_spread=(size * (size - 1) * (2 * size + 5)).sum(-1),
    )


def top1_match(
    a: Float[Tensor, "*batch T"], b: Float[Tensor, "*batch T"], mask: Bool[Tensor, "*batch T"]
) -> Float64[Tensor, "*batch"]:
    """1 where a and b share a top token (any of those tied), else 0; NaN without tokens.

    >>> a, b = torch.tensor([[0.2, 0.7, 0.1]]), torch.tensor([[0.4, 0.4, 0.2]])
    >>> top1_match(a, b, torch.ones(1, 3, dtype=torch.bool))
    tensor([1.], dtype=torch.float64)
    """
    ranked = (dense_ranks(values, mask) for values in (a, b))
    top_a, top_b = (ranks == ranks.amax(-1, keepdim=True) for ranks in ranked)
    return (top_a & top_b).any(-1).double().masked_fill(~mask.any(-1), torch.nan)


def spearman(
    a: Float[Tensor, "*batch T"], b: Float[Tensor, "*batch T"], mask: Bool[Tensor, "*batch T"]
) -> Float64[Tensor, "*batch"]:
    """Spearman's ρ: the correlation of ranks, ties given their average rank; in [−1, 1].

    NaN with fewer than two tokens, or where all are tied in a or in b (Spearman, 1904).

    >>> a, b = torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[1.0, 3.0, 2.0]])
    >>> spearman(a, b, torch.ones(1, 3, dtype=torch.bool))
    tensor([0.5000], dtype=torch.float64)
    """
    x, y = (_centred_ranks(dense_ranks(values, mask), mask) for values in (a, b))
    norms = (x * x).sum(-1).sqrt() * (y * y).sum(-1).sqrt()
    return ((x * y).sum(-1) / norms).clamp(-1.0, 1.0)


def top_k_overlaps(
    ranks: Int[Tensor, "B K T"], mask: Bool[Tensor, "B T"], *, k: Int[Tensor, "B"]
) -> Float64[Tensor, "B K K"]:
    """The share of the k top tokens that each pair of K rankings has in common, in [0, 1].

    Σ_t min(a_t, b_t) / k, where a_t is 1 for a token in the top k and 0 for one outside; tokens
    tied across the border share the places left, so the order of tokens does not matter. `ranks`
    come from `dense_ranks` with the same mask; each text has its own k, at most its number of
    tokens, and NaN where k is 0.

    >>> ranks = torch.tensor([[[2, 1, 0], [2, 0, 1]]])
    >>> top_k_overlaps(ranks, torch.ones(1, 3, dtype=torch.bool), k=torch.tensor([2]))[0, 0]
    tensor([1.0000, 0.5000], dtype=torch.float64)
    """
    places = top_k_places(ranks, mask[:, None].expand_as(ranks), k=k[:, None, None])
    # one ranking against all at a time: all pairs at once would hold K² rows of tokens
    shared = [torch.minimum(places, own[:, None]).sum(-1) for own in places.unbind(1)]
    return torch.stack(shared, dim=1) / k[:, None, None].double()


def _balance(ranks: Int[Tensor, "B K T"], n: Int[Tensor, "B"]) -> Int64[Tensor, "B K K"]:
    """Concordant minus discordant pairs: the Gram matrix of the signs of all pairs of tokens.

    Padding has rank −1 everywhere, so each pair of a token with padding is concordant in every pair
    of rankings. Their number is known and subtracted, which is cheaper than masking every sign.
    """
    B, K, T = ranks.shape
    odd = pad(ranks, (0, 1 - T % 2), value=-1).float()
    total = torch.zeros(B, K, K, dtype=torch.int64, device=ranks.device)
    for rows, signs in _signs(odd):
        total[rows] += torch.bmm(signs, signs.mT).long()
    return total - (n * (odd.shape[-1] - n))[:, None, None]


def _signs(ranks: Float[Tensor, "B K T"]) -> Iterator[tuple[slice, Float[Tensor, "b K pairs"]]]:
    """The sign of r_i − r_j once for every pair of tokens, in blocks of texts and of pairs.

    On a circle of an odd number of tokens each pair occurs once at a distance of 1 … (T−1)/2, so
    blocks of pairs are shifted copies of the row, and no table of indices is needed. Which of the
    two is i does not matter: it flips the sign in all K rankings at once.
    """
    B, K, T = ranks.shape
    around = torch.cat((ranks, ranks), -1).unfold(-1, T, 1)
    half = T // 2
    texts = max(1, SIGNS_AT_A_TIME // max(1, K * T * half))
    shifts = max(1, SIGNS_AT_A_TIME // max(1, min(texts, B) * K * T))
    for start in range(0, B, texts):
        rows = slice(start, start + texts)
        for first in range(1, half + 1, shifts):
            others = around[rows, :, first : min(first + shifts, half + 1)]
            # ranks are whole numbers, so clamping their differences gives the sign
            yield rows, (ranks[rows, :, None] - others).clamp_(-1.0, 1.0).flatten(2)


def group_sizes(ranks: Int[Tensor, "*batch T"]) -> Int64[Tensor, "*batch T"]:
    """How many tokens have rank 0, 1, …, T − 1."""
    index = ranks.long() + 1  # −1, outside the mask, is counted first and dropped
    sizes = index.new_zeros(*index.shape[:-1], index.shape[-1] + 1)
    return sizes.scatter_add(-1, index, torch.ones_like(index))[..., 1:]


def _centred_ranks(
    ranks: Int[Tensor, "*batch T"], mask: Bool[Tensor, "*batch T"]
) -> Float64[Tensor, "*batch T"]:
    """Average ranks 1 … n minus their mean (n + 1)/2; 0 outside the mask."""
    sizes = group_sizes(ranks)
    average = sizes.cumsum(-1) - (sizes - 1) / 2.0
    middle = (mask.sum(-1, keepdim=True) + 1) / 2.0
    return (average.gather(-1, ranks.clamp(min=0)) - middle).masked_fill(~mask, 0.0).double()


def top_k_places(
    ranks: Int[Tensor, "*batch T"], mask: Bool[Tensor, "*batch T"], *, k: int | Int[Tensor, "..."]
) -> Float64[Tensor, "*batch T"]:
    """The share of each token in the k top places; tied tokens divide the free places evenly."""
    sizes = group_sizes(ranks)
    above = mask.sum(-1, keepdim=True) - sizes.cumsum(-1)
    share = ((k - above).double() / sizes.clamp(min=1)).clamp(0.0, 1.0)
    return share.gather(-1, ranks.clamp(min=0)).masked_fill(~mask, 0.0)
