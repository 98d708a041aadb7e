"""Occlusion (Zeiler & Fergus, 2014): how the output changes when a token or word is hidden."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.core.values import Explanation
from heedful.methods.base import Join, ScoreKind, methods
from heedful.methods.erasure.coalitions import (
    Players,
    player_counts,
    player_index,
    require_coalition_settings,
    spread_scores,
    target_and_rest_logits,
    target_value_of_pairs,
)
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.target import TargetValue


@methods.register("occlusion")
@dataclass(frozen=True)
class Occlusion:
    """v(x) − v(x with t hidden): the token, or with players="words" its whole word.

    A hidden token keeps its place and has the subject's blank vector, such as that of [MASK];
    leave-one-out deletes it instead.
    """

    of: TargetValue = "probability"
    players: Players = "tokens"
    kind: ClassVar[ScoreKind] = "saliency"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_coalition_settings(self.of, self.players)

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        token_player = player_index(context.batch, self.players)
        number = player_counts(token_player)
        texts = torch.arange(len(token_player))
        rows = texts.repeat_interleave(torch.tensor(number))
        hidden = token_player[rows] == torch.cat([torch.arange(count) for count in number])[:, None]
        # the whole text is run as its variants are, so that only what is hidden makes a difference
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
