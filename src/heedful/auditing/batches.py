"""Texts before a subject in batches that suit it, smaller ones where memory runs out."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import torch

from heedful.core.values import Encoded
from heedful.data.batching import batches
from heedful.models.base import Subject
from heedful.models.sitting import budget_of

Made = TypeVar("Made")


def batches_for(
    subject: Subject, encoded: Sequence[Encoded], *, max_batch_tokens: int
) -> Iterator[list[int]]:
    """Indices into `encoded`, shortest texts first, as many at once as suits the subject."""
    tokens = budget_of(subject, max_batch_tokens)
    return batches(encoded, max_batch_tokens=tokens, max_texts=getattr(subject, "max_texts", None))


def in_halves(
    rows: Iterable[list[int]],
    work: Callable[[list[int]], Made],
    *,
    halved: Callable[[], None] = lambda: None,
) -> Iterator[Made]:
    """What `work` makes of each batch; one that needs too much memory is cut in two, and told."""
    left = deque(rows)
    while left:
        batch = left.popleft()
        try:
            made = work(batch)
        except (MemoryError, RuntimeError) as error:
            if len(batch) < 2 or not _out_of_memory(error):
                raise
            halved()
            left.extendleft((batch[len(batch) // 2 :], batch[: len(batch) // 2]))
        else:
            yield made


def _out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "allocate" in str(error)
