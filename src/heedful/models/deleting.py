"""Whole words deleted from a text: all their pieces at once, later tokens move up."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.core.errors import NotApplicable
from heedful.core.values import Batch
from heedful.models.sitting import Sitting


def same_word(batch: Batch) -> Bool[Tensor, "B T T"]:
    """Which tokens of a text are pieces of one word; special tokens are nobody's."""
    pairs = batch.mask[:, :, None] & batch.mask[:, None, :]
    if batch.word is None:
        return pairs & torch.eye(batch.ids.shape[1], dtype=torch.bool)
    return pairs & (batch.word[:, :, None] == batch.word[:, None, :])


def without_each_word(sitting: Sitting) -> Float[Tensor, "B T C"]:
    """Logits with the whole word of token t deleted, for each t in the mask; zeros elsewhere."""
    together, mask = same_word(sitting.batch), sitting.batch.mask
    if int(together.sum()) == int(mask.sum()):  # every word is one token: there is a quicker way
        return sitting.without_each
    first = together.byte().argmax(-1)  # every piece of a word looks its result up at the first one
    rows, heads = (mask & (first == torch.arange(mask.shape[1]))).nonzero(as_tuple=True)
    with sitting.clock("leave_one_out"), torch.no_grad():
        logits = logits_deleting(sitting, rows, together[rows, heads])
    result = logits.new_zeros(*mask.shape, logits.shape[-1])
    result[rows, heads] = logits
    result = result[torch.arange(len(mask))[:, None], first]
    return result.masked_fill(~mask[..., None].to(result.device), 0.0)


def logits_deleting(
    sitting: Sitting, rows: Int[Tensor, "N"], deleted: Bool[Tensor, "N T"]
) -> Float[Tensor, "N C"]:
    """The logits of texts rows[n] without the tokens deleted[n]; equal variants are run once.

    Variants that lose equally many tokens are run together: so none needs padding of its own.
    """
    found = sitting.logits.new_zeros(len(rows), len(sitting.subject.labels))
    size = max(1, sitting.budget // deleted.shape[1])
    lost = deleted.sum(-1)
    for count in torch.unique(lost).tolist():
        for some in torch.split((lost == count).nonzero().squeeze(-1), size):
            shorter = _without(sitting.batch.chosen(rows[some]), deleted[some], count)
            _require_something_left(sitting, shorter)
            first, place = shorter.distinct()
            found[some] = sitting.subject.forward(shorter.chosen(first)).logits.detach()[place]
    return found


def _without(batch: Batch, deleted: Bool[Tensor, "N T"], count: int) -> Batch:
    """The texts without their `count` deleted tokens, taken out from the last to the first."""
    every = torch.arange(len(batch))
    places = deleted.nonzero()[:, 1].reshape(len(batch), count)
    for place in reversed(places.unbind(1)):
        batch = batch.without(every, place)
    return batch


def _require_something_left(sitting: Sitting, shorter: Batch) -> None:
    empty = (~shorter.present.any(-1)).nonzero().squeeze(-1).tolist()
    if empty:
        raise NotApplicable(
            f"Without its only word, text {shorter.instances[empty[0]]} leaves nothing for "
            f"{sitting.subject.family} to read; such a text can only lose tokens (players=tokens)."
        )
