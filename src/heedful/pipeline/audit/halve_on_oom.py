"""Batches that are cut in two where memory runs out."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from heedful.core.errors import is_out_of_memory

BatchResult = TypeVar("BatchResult")


def retry_in_halves(
    rows: Iterable[list[int]],
    work: Callable[[list[int]], BatchResult],
    *,
    halved: Callable[[], None] = lambda: None,
) -> Iterator[BatchResult]:
    """What `work` makes of each batch; one that needs too much memory is halved and counted."""
    left = deque(rows)
    while left:
        batch = left.popleft()
        try:
            made = work(batch)
        except (MemoryError, RuntimeError) as error:
            if len(batch) < 2 or not is_out_of_memory(error):
                raise
            halved()
            left.extendleft((batch[len(batch) // 2 :], batch[: len(batch) // 2]))
        else:
            yield made
