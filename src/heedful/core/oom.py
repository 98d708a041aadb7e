"""How an error is told that means no more than: there is not enough memory."""

import torch


def is_out_of_memory(error: BaseException) -> bool:
    """Whether it says so; torch has one kind of it for graphics cards, and words for the rest."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "allocate" in str(error)
