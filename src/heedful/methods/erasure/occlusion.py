"""Occlusion (Zeiler & Fergus, 2014): how the output changes when a token or word is hidden."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.core.values import Explanation
from heedful.methods.base import Join, Kind, methods
from heedful.methods.erasure.coalitions import (
    Players,
    counts,
    duels_hiding,
    require_settings,
    scored,
    seats,
    value_of_duels,
)
from heedful.models.batch_context import Sitting
from heedful.numerics.tensor.target import Of


@methods.register("occlusion")
@dataclass(frozen=True)
class Occlusion:
    """v(x) − v(x with t hidden): the token, or with players="words" its whole word.

    A hidden token keeps its place and has the subject's blank vector, such as that of [MASK];
    leave-one-out deletes it instead.
    """

    of: Of = "probability"
    players: Players = "tokens"
    kind: ClassVar[Kind] = "saliency"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_settings(self.of, self.players)

    def __call__(self, sitting: Sitting, target: Int[Tensor, "B"]) -> Explanation:
        seat = seats(sitting.batch, self.players)
        number = counts(seat)
        texts = torch.arange(len(seat))
        rows = texts.repeat_interleave(torch.tensor(number))
        hidden = seat[rows] == torch.cat([torch.arange(count) for count in number])[:, None]
        # the whole text is run as its variants are, so that only what is hidden makes a difference
        nothing = torch.zeros_like(seat, dtype=torch.bool)
        with sitting.clock("occlusion"):
            duels = duels_hiding(
                sitting, target, torch.cat([texts, rows]), torch.cat([nothing, hidden])
            )
        whole, without = torch.split(value_of_duels(duels, self.of), [len(texts), len(rows)])
        return scored("occlusion", sitting, seat, torch.split(whole[rows] - without, number))
