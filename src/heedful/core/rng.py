"""Random draws keyed by what they belong to, never by batch shape, order or worker.

A draw belongs to (seed, purpose, content of a text). Philox is counter-based: the key selects the
stream, so the same text gets the same numbers in any batch, order or shard, and on any machine.
"""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

TextKey = int | str  # the content of a text, or a number
WHOLE_RUN = -1  # the "instance" of a draw that belongs to the whole data set


def generator(seed: int, purpose: str, instance: TextKey = WHOLE_RUN) -> np.random.Generator:
    """The random stream of one text for one purpose; `instance` is a number, or its content.

    >>> a, b = (generator(0, "permutation", 7).random() for _ in range(2))
    >>> a == b
    True
    """
    digest = blake2b(f"{seed}|{purpose}|{instance}".encode(), digest_size=16).digest()
    key = np.frombuffer(digest, dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


def uniform_keys(
    seed: int, purpose: str, texts: Sequence[TextKey], *, draws: int, lengths: Sequence[int]
) -> NDArray[np.float64]:
    """(len(texts), draws, max length) uniform numbers; row b uses only its first lengths[b].

    `texts` are what the subject reads of each text: copies of a text have the same numbers.
    """
    keys = np.ones((len(texts), draws, max(lengths, default=0)))
    for row, (text, length) in enumerate(zip(texts, lengths, strict=True)):
        keys[row, :, :length] = generator(seed, purpose, text).random((draws, length))
    return keys


def normal_keys(
    seed: int, purpose: str, texts: Sequence[TextKey], *, draws: int, lengths: Sequence[int]
) -> NDArray[np.float64]:
    """As `uniform_keys`, with standard normal numbers (zeros beyond each row's length)."""
    keys = np.zeros((len(texts), draws, max(lengths, default=0)))
    for row, (text, length) in enumerate(zip(texts, lengths, strict=True)):
        noise = generator(seed, purpose, text).standard_normal((draws, length))
        keys[row, :, :length] = noise
    return keys
