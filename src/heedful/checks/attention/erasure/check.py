"""Do the highest weights decide? (Serrano & Smith, 2019)"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, autograd

from heedful.checks.base import Findings
from heedful.checks.draws import draw_for_words, draw_uniform
from heedful.core.settings import Repeats, check_on_init
from heedful.core.values import LinearDecoder
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.distributions import jsd, positions_first
from heedful.numerics.tensor.target import target_value
from heedful.numerics.tensor.weight_removal import (
    descending_order,
    fewest_removals_to_flip,
    first_true,
    mark_first,
    removals_to_flip,
    remove_weights,
    top_word,
)

NOT_LINEAR = "The smallest set is known for linear decoders only; this one is not linear."


@check_on_init
@dataclass(frozen=True)
class Erasure:
    """Do the highest weights decide?

    Weights of words are set to 0 and the others rescaled; states stay. `flip_top` and `flip_random`
    are whether the decision flips without the top weight and without another word's, drawn at
    random; `js_top_minus_random` is how much farther the first moves the output. Then weights are
    removed one by one until the decision flips: `fraction_to_flip_…` is the share of words removed
    by then, in the order of attention, of gradients or at random, and for the smallest set there
    is. Texts that no removal flips have none; `can_flip` counts the others.
    """

    orders: Repeats = 5
    draw: Literal["position", "as_published"] = "position"

    def __call__(self, context: BatchContext) -> Findings:
        fractions, missing = self._sets(context)
        return Findings.from_columns(self._single(context) | fractions, missing)

    def _single(self, context: BatchContext) -> dict[str, Float[Tensor, "B"]]:
        """Without the top weight, and without another."""
        mask, own = context.batch.mask, context.forward.attention
        top = top_word(own, mask)
        pair = torch.stack([top, self._other(context, top)])
        places = torch.arange(mask.shape[1], device=mask.device)
        rows, left = _erase_weights(context, places == pair[..., None])
        logits = context.decode(rows).double()
        before = context.forward.logits.double().softmax(-1)
        moved = jsd(logits.softmax(-1), before)
        flipped = _flipped(context, logits).double()
        gap = own.gather(1, pair.T[:, :1]) - own.gather(1, pair.T[:, 1:])
        several = context.batch.lengths > 1
        defined = several & left.all(0)  # all weight on the top word: nothing else was attended to
        return {
            "flip_top": torch.where(defined, flipped[0], torch.nan),
            "flip_random": torch.where(defined, flipped[1], torch.nan),
            "js_top_minus_random": torch.where(defined, moved[0] - moved[1], torch.nan),
            "attention_gap": torch.where(several, gap[:, 0], torch.nan),
        }

    def _other(self, context: BatchContext, top: Int[Tensor, "B"]) -> Int[Tensor, "B"]:
        """A word other than the top one, all equally likely.

        The published code drew a rank from 1 to T − 1 and used it as a position: the first word
        was never drawn, and the top one could be.
        """
        batch = context.batch
        drawn = draw_uniform(context, "erasure", draws=1, lengths=[1] * len(batch))
        share = drawn[:, 0, 0].to(batch.mask.device)
        others = (batch.lengths - 1).clamp(min=0)
        number = (share * others).long()
        if self.draw == "position":
            place_of_top = batch.mask.cumsum(-1).gather(1, top[:, None])[:, 0] - 1
            number = number + (number >= place_of_top).long()
        else:
            number = number + 1
        chosen = torch.minimum(number, others)[:, None]
        return positions_first(batch.mask).gather(1, chosen)[:, 0]

    def _sets(self, context: BatchContext) -> tuple[dict[str, Float[Tensor, "B"]], dict[str, str]]:
        """How many words go until the decision flips, in every order, as shares of the words."""
        named, mask = _orders(context), context.batch.mask
        drawn = draw_for_words(context, "orders of erasure", draws=self.orders).transpose(0, 1)
        orders = [*named.values(), *descending_order(drawn.to(mask.device), mask)]
        tried = [_removals_until_flip(context, order) for order in orders]
        missing, decoder = {"fraction_to_flip_optimal": NOT_LINEAR}, context.decode
        if isinstance(decoder, LinearDecoder):
            parts = _weights_and_contributions(context, decoder)
            tried.append(fewest_removals_to_flip(*parts, context.predicted))
            missing = {}
        counts = torch.stack(tried)
        can, lengths = (counts > 0).any(0), context.batch.lengths.double()
        # an order that never flips a text that others flip would have to remove all of it
        needed = torch.where(counts > 0, counts / lengths, 1.0)
        needed = torch.where(can, needed, torch.nan)
        columns = dict(zip(named, needed, strict=False))
        columns["random"] = needed[len(named) : len(named) + self.orders].mean(0)
        if not missing:
            columns["optimal"] = needed.amin(0)  # rounding may find a tie earlier in another order
        fractions = {f"fraction_to_flip_{name}": column for name, column in columns.items()}
        can_flip = torch.where(lengths > 1, can.double(), torch.nan)
        return {"can_flip": can_flip} | fractions, missing


def _orders(context: BatchContext) -> dict[str, Int[Tensor, "B T"]]:
    """Words by attention, gradient and their product, descending."""
    slope = _log_odds_gradient(context)
    product = context.rows * slope
    if slope.dim() == 3:
        slope, product = slope.sum(1), product.sum(1)
    own = context.forward.attention
    scores = {"attention": own, "gradient": slope, "attention_x_gradient": product}
    return {name: descending_order(one, context.batch.mask) for name, one in scores.items()}


def _log_odds_gradient(context: BatchContext) -> Float[Tensor, "B *R T"]:
    """Gradient of the predicted class's log-odds at the weights of words.

    It is that of the probability divided by p(1 − p): the order is the same, also where p is so
    near to 1 that its own gradient would round to 0.
    """
    with torch.enable_grad():
        leaf = context.rows.clone().requires_grad_()
        odds = target_value(context.decode(leaf), context.predicted, "log_odds")
        (slope,) = autograd.grad(odds.sum(), leaf)
    return slope.masked_fill(~context.attendable_words, 0.0)


def _removals_until_flip(context: BatchContext, order: Int[Tensor, "B T"]) -> Int[Tensor, "B"]:
    """How many words go in this order until the decision flips; 0 where it never does.

    Decoders that are not linear take several removals per pass, until every text has flipped.
    """
    if isinstance(decoder := context.decode, LinearDecoder):
        parts = _weights_and_contributions(context, decoder)
        return removals_to_flip(*parts, context.predicted, order=order)
    lengths, found = context.batch.lengths, torch.zeros_like(context.predicted)
    size = max(1, context.budget // context.batch.ids.numel())
    for first in range(1, int(lengths.max()), size):
        last = min(first + size, int(lengths.max()))
        counts = torch.arange(first, last, device=order.device)
        rows, left = _erase_weights(context, mark_first(order, counts) & context.batch.mask)
        flipped = first_true((_flipped(context, context.decode(rows)) & left).T)
        here = torch.where(flipped > 0, flipped + first - 1, 0)
        found = torch.where(found > 0, found, here)
        if bool(((found > 0) | (lengths <= last)).all()):
            break
    return found


def _weights_and_contributions(
    context: BatchContext, decoder: LinearDecoder
) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T C"]]:
    """Weights and each word's logits, bias included, in double precision."""
    weights = context.forward.attention.masked_fill(~context.batch.mask, 0.0)
    return weights.double(), (decoder.contributions + decoder.bias).double()


def _erase_weights(
    context: BatchContext, removed: Bool[Tensor, "K B T"]
) -> tuple[Float[Tensor, "K B *R T"], Bool[Tensor, "K B"]]:
    """Rows without some words, and whether any word is left with weight."""
    gone = removed if context.rows.dim() == 2 else removed[:, :, None]
    kept = remove_weights(context.rows.masked_fill(~context.attendable_words, 0.0), gone)
    return context.place_on_words(kept), kept.flatten(2).any(-1)


def _flipped(context: BatchContext, logits: Float[Tensor, "K B C"]) -> Bool[Tensor, "K B"]:
    return logits.argmax(-1) != context.predicted
