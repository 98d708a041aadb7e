"""The attention that moves the output most: how much could any attention do?"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.core.values import LinearDecoder
from heedful.interventions.base import interventions
from heedful.models.sitting import Sitting
from heedful.tensor.divergence import tvd
from heedful.tensor.simplex import uniform


@interventions.register("leverage")
@dataclass(frozen=True)
class Leverage:
    """The attention with the largest change of output, in TVD.

    Two classes, linear decoder: all weight on one token, exactly, because the log-odds are linear
    in the weights. Three classes: exact up to the gap of an ascent, because a class's probability
    is least at a single token and its logarithm is concave in the weights. More classes or another
    decoder: the largest found at single tokens and by that ascent, a lower bound.
    """

    rounds: int = 50

    def __call__(self, sitting: Sitting) -> Float[Tensor, "K B T"]:
        mask, own = sitting.batch.mask, sitting.forward.attention
        best, change = own, torch.zeros_like(own[:, 0])
        for candidate in self._candidates(sitting):
            moved = tvd(sitting.decode(candidate).softmax(-1), sitting.forward.probabilities)
            better = (moved > change) & mask.any(-1)
            best = torch.where(better[:, None], candidate, best)
            change = torch.where(better, moved, change)
        return best[None]

    def _candidates(self, sitting: Sitting) -> Iterator[Float[Tensor, "B T"]]:
        mask, decoder = sitting.batch.mask, sitting.decode
        if isinstance(decoder, LinearDecoder):
            yield _best_point(decoder, mask, sitting.forward.probabilities)
            if len(decoder.bias) > 2:
                for target in range(len(decoder.bias)):
                    yield _ascend(decoder, mask, target, rounds=self.rounds)
        else:
            for place in range(int(mask.sum(-1).max())):
                yield _point(mask, place).to(sitting.forward.attention)


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


def _ascend(
    decoder: LinearDecoder, mask: Bool[Tensor, "B T"], target: int, *, rounds: int
) -> Float[Tensor, "B T"]:
    """Frank–Wolfe on log p_target, which is concave in the weights, from uniform attention."""
    values = decoder.contributions + decoder.bias
    weights = uniform(mask, dtype=values.dtype)
    for _ in range(rounds):
        p = decoder(weights).softmax(-1)
        slope = values[..., target] - torch.einsum("btc,bc->bt", values, p)
        top = slope.masked_fill(~mask, float("-inf")).argmax(-1, keepdim=True)
        corner = torch.zeros_like(weights).scatter(-1, top, 1.0)
        weights = weights + _step(decoder, weights, corner, target) * (corner - weights)
    return weights


def _step(
    decoder: LinearDecoder,
    weights: Float[Tensor, "B T"],
    corner: Float[Tensor, "B T"],
    target: int,
) -> Float[Tensor, "B 1"]:
    """The step towards the corner that raises log p_target most, by bisection on its slope."""
    start, end = decoder(weights), decoder(corner)
    along = end - start
    low, high = torch.zeros_like(start[:, :1]), torch.ones_like(start[:, :1])
    for _ in range(30):
        middle = 0.5 * (low + high)
        p = (start + middle * along).softmax(-1)
        rising = (along[:, target] - (p * along).sum(-1))[:, None] > 0
        low, high = torch.where(rising, middle, low), torch.where(rising, high, middle)
    return low
