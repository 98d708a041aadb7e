"""Words hidden from a model: their vectors replaced by a blank one, their places kept."""

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.core.values import Batch, Blank
from heedful.models.base import HasBlank, RunsLean
from heedful.models.sitting import Sitting


def blank_of(sitting: Sitting) -> Blank:
    """What the subject names as no word, such as [MASK]; a vector of zeros where it names none."""
    if isinstance(sitting.subject, HasBlank):
        return sitting.subject.blank()
    width = sitting.embedded.shape[-1]
    return Blank("zero vector", sitting.embedded.new_zeros(width))


def with_blanks(
    sitting: Sitting, rows: Int[Tensor, "N"], hidden: Bool[Tensor, "N T"]
) -> Float[Tensor, "N T E"]:
    """The vectors of texts rows[n] with the tokens hidden[n] blank."""
    vectors = sitting.embedded.detach()[rows]
    blank = blank_of(sitting).vector.to(vectors)
    return torch.where(hidden[..., None], blank, vectors)


def logits_hiding(
    sitting: Sitting, rows: Int[Tensor, "N"], hidden: Bool[Tensor, "N T"]
) -> Float[Tensor, "N C"]:
    """The logits of texts rows[n] with the tokens hidden[n] blank; equal variants are run once."""
    if bool((hidden & ~sitting.batch.mask[rows]).any()):
        raise ValueError("Only words can be hidden.")
    both, place = torch.unique(
        torch.cat([rows[:, None], hidden.long()], dim=1), dim=0, return_inverse=True
    )
    rows, hidden = both[:, 0], both[:, 1:].bool()
    found = [
        outputs(sitting, sitting.batch.chosen(rows[some]), with_blanks(sitting, rows[some], hide))
        for some, hide in _in_budget(sitting, hidden)
    ]
    return torch.cat(found)[place]


def outputs(
    sitting: Sitting, batch: Batch, embedded: Float[Tensor, "N T E"]
) -> Float[Tensor, "N C"]:
    """Logits alone, without the attention where the subject can leave that out."""
    with torch.no_grad():
        if isinstance(sitting.subject, RunsLean):
            return sitting.subject.outputs(batch, embedded)
        return sitting.subject.forward(batch, embedded).logits


def _in_budget(
    sitting: Sitting, hidden: Bool[Tensor, "N T"]
) -> Iterator[tuple[Int[Tensor, "M"], Bool[Tensor, "M T"]]]:
    size = max(1, sitting.budget // hidden.shape[1])
    yield from zip(
        torch.split(torch.arange(len(hidden)), size), torch.split(hidden, size), strict=True
    )
