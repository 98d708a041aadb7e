"""Exact Shapley values (Shapley, 1953), for short texts."""

from dataclasses import dataclass
from math import comb
from typing import ClassVar

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from heedful.core.errors import NotApplicable
from heedful.core.values import Explanation
from heedful.methods.base import methods
from heedful.methods.erasure.coalitions import (
    Coalitions,
    CoalitionValues,
    Players,
    explain_by_coalitions,
    player_counts,
    player_index,
)
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.target import TargetValue


@methods.register("shapley", kind="saliency", signed=True, slow=True, erases="many")
@dataclass(frozen=True)
class Shapley:
    """φ_i = Σ_S |S|! (M − |S| − 1)! / M! · (v(S ∪ i) − v(S)), the mean over all orders of players.

    Takes 2^M passes, so texts have at most `most_players`; batches with longer texts are refused.
    """

    of: TargetValue = "probability"
    players: Players = "tokens"
    most_players: ClassVar[int] = 12

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        longest = max(player_counts(player_index(context.batch, self.players)))
        if longest > self.most_players:
            raise NotApplicable(
                f"Exact Shapley values of {longest} {self.players} would take {2**longest:,} "
                f"passes; a text may have at most {self.most_players}. Use kernel_shap."
            )
        everything = Coalitions(tuple(target.tolist()), 2**self.most_players, self.players)
        return explain_by_coalitions("shapley", context, everything, self._solve)

    def _solve(self, text: CoalitionValues) -> Float64[Tensor, "M"]:
        return shapley_values(text.values(self.of).flip(0))


def shapley_values(values: Float64[Tensor, "N"]) -> Float64[Tensor, "M"]:
    """Shapley values from the values of all 2^M coalitions; i is in coalition n if bit i of n is 1.

    >>> shapley_values(torch.tensor([0.0, 1.0, 2.0, 7.0], dtype=torch.float64))
    tensor([3., 4.], dtype=torch.float64)
    """
    players = len(values).bit_length() - 1
    number = torch.arange(len(values))
    size = (number[:, None] >> torch.arange(players) & 1).sum(-1)
    orders = values.new_tensor([1.0 / (players * comb(players - 1, s)) for s in range(players)])
    scores = []
    for player in range(players):
        without = number[number >> player & 1 == 0]
        added = values[without + 2**player] - values[without]
        scores.append((orders[size[without]] * added).sum())
    return torch.stack(scores)
