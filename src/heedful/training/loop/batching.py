"""Texts before a subject, as many at once as suits it."""

from collections.abc import Iterator, Sequence

from heedful.core.batch import Encoded
from heedful.data.batching import batches
from heedful.models.batch_context import token_budget
from heedful.models.protocols import Subject

DEFAULT_BATCH_TOKENS = 20_000  # tokens at once, where nobody asked for another bound


def batches_for(
    subject: Subject, encoded: Sequence[Encoded], *, max_batch_tokens: int = DEFAULT_BATCH_TOKENS
) -> Iterator[list[int]]:
    """Indices into `encoded`, shortest texts first, as many at once as suits the subject."""
    tokens = token_budget(subject, max_batch_tokens)
    return batches(encoded, max_batch_tokens=tokens, max_texts=getattr(subject, "max_texts", None))
