"""Agreement of scores with human rationales.

Axes: K rankings, B texts, W words. `ranks` come from `dense_ranks`, smallest first and −1 where
there is no word; `marked` is True where annotators marked a word.
"""

import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor
from torch.nn.functional import pad

from heedful.numerics.tensor.ranking import group_sizes, top_k_places


def average_precision(
    ranks: Int[Tensor, "K B W"], marked: Bool[Tensor, "B W"]
) -> Float64[Tensor, "K B"]:
    """Σ over thresholds of (gain in recall) · (precision), in [0, 1]; NaN if no word is marked.

    The area under the precision–recall curve by steps, without interpolation; tied words pass a
    threshold together. The expected value of a random order is the share of marked words.

    >>> ranks, marked = torch.tensor([[[2, 1, 0]]]), torch.tensor([[True, False, True]])
    >>> round(average_precision(ranks, marked).item(), 3)
    0.833
    """
    words, hits = (group_sizes(each).double() for each in (ranks, ranks.masked_fill(~marked, -1)))
    passed, correct = (counts.flip(-1).cumsum(-1).flip(-1) for counts in (words, hits))
    total = marked.sum(-1, keepdim=True)
    return (hits * correct / passed.clamp(min=1.0) / total).sum(-1)


def hits_at_k(
    ranks: Int[Tensor, "K B W"], marked: Bool[Tensor, "B W"], k: Int[Tensor, "B"]
) -> Float64[Tensor, "K B"]:
    """How many of the k highest words are marked; words tied at the border share its places."""
    places = top_k_places(ranks, ranks >= 0, k=k[:, None])
    return (places * marked).sum(-1)


def token_f1(
    ranks: Int[Tensor, "K B W"], marked: Bool[Tensor, "B W"], k: Int[Tensor, "B"]
) -> Float64[Tensor, "K B"]:
    """F1 of the k highest words as a prediction of the marked ones, in [0, 1]; NaN if none is.

    2 · hits / (k + marked); for words tied at the border, the mean over all their orders.

    >>> ranks, marked = torch.tensor([[[2, 1, 0]]]), torch.tensor([[True, False, True]])
    >>> token_f1(ranks, marked, torch.tensor([2])).item()
    0.5
    """
    total = marked.sum(-1)
    share = 2 * hits_at_k(ranks, marked, k) / (k + total)
    return share.masked_fill(total == 0, torch.nan)


def span_f1(
    chosen: Bool[Tensor, "K B W"], marked: Bool[Tensor, "B W"], *, least: float = 0.5
) -> Float64[Tensor, "K B"]:
    """F1 of spans, in [0, 1]; NaN if no word is marked.

    Spans are runs of consecutive words. A chosen span is correct if its intersection over union
    with a marked span is at least `least` (½ or more, so that no span can be correct twice).

    >>> chosen = torch.tensor([[[True, True, False, True]]])
    >>> round(span_f1(chosen, torch.tensor([[True, True, True, False]])).item(), 3)
    0.667
    """
    # the intersection of two spans is a run of words: one span of the words in both
    both = chosen & marked
    shared, mine, theirs = (_run_sizes(words) for words in (both, chosen, marked))
    near = shared >= least * (mine + theirs - shared) - 1e-9
    right = (_starts(both) & near).sum(-1)
    spans = _starts(chosen).sum(-1) + _starts(marked).sum(-1)
    return (2 * right / spans.double()).masked_fill(~marked.any(-1), torch.nan)


def words_in_share(words: Int[Tensor, "B"], share: float) -> Int[Tensor, "B"]:
    """The number of words in a share, rounded half up, at least one and at most all.

    >>> words_in_share(torch.tensor([1, 5, 10]), 0.25)
    tensor([1, 1, 3])
    """
    near = (share * words.double() + 0.5 + 1e-9).floor().long()
    return torch.minimum(near.clamp(min=1), words)


def _starts(here: Bool[Tensor, "*K W"]) -> Bool[Tensor, "*K W"]:
    """True at the first word of each span."""
    return here & ~pad(here, (1, 0))[..., :-1]


def _run_sizes(here: Bool[Tensor, "*K W"]) -> Int[Tensor, "*K W"]:
    """For each word the length of its span; 0 outside of spans."""
    number = _starts(here).long().cumsum(-1).masked_fill(~here, 0) - 1
    return group_sizes(number).gather(-1, number.clamp(min=0)).masked_fill(~here, 0)
