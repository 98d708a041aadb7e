"""Occlusion (Zeiler & Fergus, 2014): the change of the output when a token or word is masked."""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.core.values import Explanation
from heedful.methods.base import methods
from heedful.methods.erasure.coalitions import (
    Players,
    player_counts,
    player_index,
    spread_scores,
    target_and_rest_logits,
    target_value_of_pairs,
)
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.target import TargetValue


@methods.register("occlusion", kind="saliency", signed=True, erases="one")
@dataclass(frozen=True)
class Occlusion:
    """v(x) − v(x with t masked): the token, or with players="words" its whole word.

    A masked token keeps its position and gets the subject's mask embedding, such as that of [MASK];
    leave-one-out deletes the token instead.
    """

    of: TargetValue = "probability"
    players: Players = "tokens"

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        token_player = player_index(context.batch, self.players)
        number = player_counts(token_player)
        texts = torch.arange(len(token_player))
        rows = texts.repeat_interleave(torch.tensor(number))
        hidden = token_player[rows] == torch.cat([torch.arange(count) for count in number])[:, None]
        # the whole text runs in the same batches as its variants, so that only the mask differs
        nothing = torch.zeros_like(token_player, dtype=torch.bool)
        with context.clock("occlusion"):
            target_and_rest = target_and_rest_logits(
                context, target, torch.cat([texts, rows]), torch.cat([nothing, hidden])
            )
        whole, without = torch.split(
            target_value_of_pairs(target_and_rest, self.of), [len(texts), len(rows)]
        )
        return spread_scores(
            "occlusion", context, token_player, torch.split(whole[rows] - without, number)
        )
