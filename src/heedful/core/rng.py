"""Random draws keyed by what they belong to, never by batch shape, order or worker.

A draw belongs to (seed, purpose, instance). Philox is counter-based: the key selects the stream, so
the same instance gets the same numbers in any batch and on any machine.
"""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

WHOLE_RUN = -1  # the "instance" of a draw that belongs to the whole data set


def generator(seed: int, purpose: str, instance: int = WHOLE_RUN) -> np.random.Generator:
    """The random stream of one instance for one purpose.

    >>> a, b = (generator(0, "permutation", 7).random() for _ in range(2))
    >>> a == b
    True
    """
    digest = blake2b(f"{seed}|{purpose}|{instance}".encode(), digest_size=16).digest()
    key = np.frombuffer(digest, dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


def uniform_keys(
    seed: int, purpose: str, instances: Sequence[int], *, draws: int, lengths: Sequence[int]
) -> NDArray[np.float64]:
    """(len(instances), draws, max length) uniform numbers; row b uses only its first lengths[b]."""
    keys = np.ones((len(instances), draws, max(lengths, default=0)))
    for row, (instance, length) in enumerate(zip(instances, lengths, strict=True)):
        keys[row, :, :length] = generator(seed, purpose, instance).random((draws, length))
    return keys


def normal_keys(
    seed: int, purpose: str, instances: Sequence[int], *, draws: int, lengths: Sequence[int]
) -> NDArray[np.float64]:
    """As `uniform_keys`, with standard normal numbers (zeros beyond each row's length)."""
    keys = np.zeros((len(instances), draws, max(lengths, default=0)))
    for row, (instance, length) in enumerate(zip(instances, lengths, strict=True)):
        noise = generator(seed, purpose, instance).standard_normal((draws, length))
        keys[row, :, :length] = noise
    return keys
