"""A vector for no word, from what a tokenizer knows."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.values import MaskEmbedding

VOCABULARY_CHUNK = 4096  # vocabularies are large, and only the mean of their vectors is wanted


def find_mask_embedding(
    tokenizer: Any, vectors: Callable[[Int[Tensor, "N"]], Float[Tensor, "N E"]], size: int
) -> MaskEmbedding:
    """The mask token's vector; without one the unknown token's, or the mean of all tokens'.

    `vectors` looks tokens up as the model does, scaled perhaps. A token that also begins or ends
    texts, as GPT-2's unknown token does, is no blank.
    """
    ends = {tokenizer.eos_token_id, tokenizer.bos_token_id}
    for name in ("mask_token", "unk_token"):
        number = getattr(tokenizer, f"{name}_id")
        if number is not None and number not in ends:
            return MaskEmbedding(getattr(tokenizer, name), vectors(torch.tensor([number]))[0])
    parts = [
        vectors(torch.arange(start, min(size, start + VOCABULARY_CHUNK))).sum(0)
        for start in range(0, size, VOCABULARY_CHUNK)
    ]
    return MaskEmbedding("mean of all token vectors", torch.stack(parts).sum(0) / size)
