"""Words hidden from a model: their vectors replaced by a blank one, their places kept."""

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.core.values import Blank
from heedful.models.batch_context import Ask, Passed, Sitting
from heedful.models.protocols import HasBlank


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
    """The logits of texts rows[n] with the tokens hidden[n] blank."""
    found = sitting.embedded.detach().new_zeros(len(rows), len(sitting.subject.labels))
    for variants, which, logits in passes_hiding(sitting, rows, hidden):
        found = found.to(logits)
        found[variants] = logits[which]
    return found


def passes_hiding(
    sitting: Sitting,
    rows: Int[Tensor, "N"],
    hidden: Bool[Tensor, "N T"],
    *,
    ask: Ask = Sitting.outputs,
) -> Iterator[Passed]:
    """Every distinct variant once: which of the N it is, by its row among the logits of a pass."""
    if bool((hidden & ~sitting.batch.mask[rows]).any()):
        raise ValueError("Only words can be hidden.")
    both, which = torch.unique(
        torch.cat([rows[:, None], hidden.long()], dim=1), dim=0, return_inverse=True
    )
    start = 0
    for some, hide in sitting.cut(both[:, 0], both[:, 1:].bool()):
        here = ((which >= start) & (which < start + len(some))).nonzero().squeeze(-1)
        with torch.no_grad():
            logits = ask(sitting, sitting.batch.chosen(some), with_blanks(sitting, some, hide))
        yield here, which[here] - start, logits
        start += len(some)
