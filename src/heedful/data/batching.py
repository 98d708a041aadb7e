"""Batches of texts of similar length, so that little of a batch is padding."""

from collections.abc import Iterator, Sequence

from heedful.core.batch import Encoded
from heedful.core.errors import ConfigError

DEFAULT_BATCH_TOKENS = 20_000


def batches(
    encoded: Sequence[Encoded], *, max_batch_tokens: int, max_texts: int | None = None
) -> Iterator[list[int]]:
    """Yield the indices into `encoded` of each batch, shortest texts first (ties in input order).

    A batch of n texts is as wide as its longest: n × longest is at most `max_batch_tokens`, except
    that a text which alone is longer gets a batch of its own. No text is padded by more than a
    quarter plus four tokens, since some work grows with the square of the width. `max_texts` bounds
    n.

    >>> texts = [Encoded(i, 0, (1,) * n, (0,) * n, ("a",)) for i, n in enumerate((3, 1, 2))]
    >>> list(batches(texts, max_batch_tokens=4))
    [[1, 2], [0]]
    """
    if max_batch_tokens < 1:
        raise ConfigError(f"max_batch_tokens must be at least 1; got {max_batch_tokens}.")
    return _batches([len(one.ids) for one in encoded], max_batch_tokens, max_texts or len(encoded))


def max_batched_length(shortest: int) -> int:
    """The longest text that may share a batch with one of this length."""
    return shortest + shortest // 4 + 4


def _batches(lengths: list[int], most: int, texts: int) -> Iterator[list[int]]:
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        length = lengths[index]
        full = (len(batch) + 1) * length > most or len(batch) == texts
        if batch and (full or length > max_batched_length(lengths[batch[0]])):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def batches_for(
    subject: object, encoded: Sequence[Encoded], *, max_batch_tokens: int = DEFAULT_BATCH_TOKENS
) -> Iterator[list[int]]:
    """Batches within the limits that the subject sets itself: `max_batch_tokens`, `max_texts`."""
    own: int = getattr(subject, "max_batch_tokens", max_batch_tokens)
    return batches(
        encoded,
        max_batch_tokens=min(own, max_batch_tokens),
        max_texts=getattr(subject, "max_texts", None),
    )
