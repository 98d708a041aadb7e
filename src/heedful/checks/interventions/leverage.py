"""The attention that moves the output most: how much could any attention do?"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.checks.interventions.base import interventions, replace_texts
from heedful.core.values import LinearDecoder
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.distributions import tvd


@interventions.register("leverage")
@dataclass(frozen=True)
class Leverage:
    """The attention with the largest change of output, in TVD.

    Two classes, linear decoder: all weight on one token, exactly, because the log-odds are linear
    in the weights. Three classes: exact up to the gap of an ascent, because a class's probability
    is least at a single token and its logarithm is concave in the weights. More classes: the
    largest found at single tokens and by that ascent, a lower bound; another decoder: at single
    tokens only.
    """

    rounds: int = 50

    def __call__(self, context: BatchContext) -> Float[Tensor, "K B *R T"]:
        best, before = context.rows, context.forward.probabilities
        change = torch.zeros_like(before[:, 0])
        for candidate in self._candidates(context):
            moved = tvd(context.decode(candidate).softmax(-1), before)
            better = (moved > change) & context.batch.mask.any(-1)
            best = replace_texts(better, candidate, best)
            change = torch.where(better, moved, change)
        return best[None]

    def _candidates(self, context: BatchContext) -> Iterator[Float[Tensor, "B *R T"]]:
        mask, decoder = context.batch.mask, context.decode
        if isinstance(decoder, LinearDecoder):
            yield _best_point(decoder, mask, context.forward.probabilities)
            if len(decoder.bias) > 2:
                for target in range(len(decoder.bias)):
                    yield _frank_wolfe(decoder, mask, target, rounds=self.rounds)
        else:
            for place in range(int(mask.sum(-1).max())):
                yield _rows_at(context, _point(mask, place))


def _rows_at(context: BatchContext, point: Bool[Tensor, "B T"]) -> Float[Tensor, "B *R T"]:
    """All weight of the words on one token, in every row that may attend to it."""
    if context.rows.dim() == 2:
        return point.to(context.rows)
    open_to = (point[:, None] & context.attendable_words).any(-1, keepdim=True)
    moved = context.place_on_words(point[:, None].to(context.rows))
    return torch.where(open_to, moved, context.rows)


def _best_point(
    decoder: LinearDecoder, mask: Bool[Tensor, "B T"], before: Float[Tensor, "B C"]
) -> Float[Tensor, "B T"]:
    """The single token whose own logits lie farthest from the output, for all texts at once."""
    alone = (decoder.contributions + decoder.bias).softmax(-1)
    moved = tvd(alone, before[:, None, :]).masked_fill(~mask, -1.0)
    corner = torch.zeros_like(moved)
    return corner.scatter(-1, moved.argmax(-1, keepdim=True), 1.0) * mask


def _point(mask: Bool[Tensor, "B T"], place: int) -> Bool[Tensor, "B T"]:
    """Marks each text's word number `place` (its last one, where it has fewer)."""
    number = mask.cumsum(-1).masked_fill(~mask, 0)
    wanted = mask.sum(-1, keepdim=True).clamp(max=place + 1)
    return (number == wanted) & mask


def _frank_wolfe(
    decoder: LinearDecoder, mask: Bool[Tensor, "B T"], target: int, *, rounds: int
) -> Float[Tensor, "B T"]:
    """Pairwise Frank–Wolfe on log p_target, which is concave in the weights, from the best token.

    Each round moves weight from the worst token that has some to the best one; moving it from all
    tokens alike would zigzag (Lacoste-Julien & Jaggi, 2015).
    """
    values = decoder.contributions + decoder.bias
    alone = values.log_softmax(-1)[..., target].masked_fill(~mask, float("-inf"))
    weights = torch.zeros_like(alone).scatter(-1, alone.argmax(-1, keepdim=True), 1.0) * mask
    for _ in range(rounds):
        logits = decoder(weights)
        slope = values[..., target] - torch.einsum("btc,bc->bt", values, logits.softmax(-1))
        best = slope.masked_fill(~mask, float("-inf")).argmax(-1, keepdim=True)
        worst = slope.masked_fill(weights <= 0, float("inf")).argmin(-1, keepdim=True)
        along = _take_place(values, best) - _take_place(values, worst)
        moved = _line_search(logits, along, target, most=weights.gather(-1, worst))
        weights = weights.scatter_add(-1, best, moved).scatter_add(-1, worst, -moved)
        weights = weights.clamp(min=0.0)
    return weights


def _take_place(values: Float[Tensor, "B T C"], place: Int[Tensor, "B 1"]) -> Float[Tensor, "B C"]:
    return values.gather(1, place[..., None].expand(-1, 1, values.shape[-1])).squeeze(1)


def _line_search(
    logits: Float[Tensor, "B C"],
    along: Float[Tensor, "B C"],
    target: int,
    *,
    most: Float[Tensor, "B 1"],
) -> Float[Tensor, "B 1"]:
    """How much weight to move, at most `most`, to raise log p_target most: where its slope is 0."""
    low, high = torch.zeros_like(most), most
    for _ in range(40):
        middle = 0.5 * (low + high)
        p = (logits + middle * along).softmax(-1)
        rising = (along[:, target] - (p * along).sum(-1))[:, None] > 0
        low, high = torch.where(rising, middle, low), torch.where(rising, high, middle)
    return 0.5 * (low + high)
