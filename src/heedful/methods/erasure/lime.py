"""LIME (Ribeiro et al., 2016): a linear model of the output near the text."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from heedful.core.values import Explanation
from heedful.methods.base import Join, ScoreKind, methods
from heedful.methods.erasure.coalitions import (
    Coalitions,
    CoalitionValues,
    Players,
    explain_by_coalitions,
    require_coalition_settings,
)
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.target import TargetValue

RIDGE = 1.0
WIDTH = 25.0  # of the kernel, where the farthest coalition lies at 100


@methods.register("lime")
@dataclass(frozen=True)
class Lime:
    """Weights of a ridge regression of the value on which players are visible.

    As in the `lime` package: sizes are even, a coalition weighs exp(−½ (100 d / 25)²) with d the
    cosine distance from the whole text, the whole text weighs 1 besides, the penalty is 1, and the
    intercept has none. Other than there, words are hidden by the subject's blank, not taken out of
    the text; coalitions are drawn by size and in pairs, which the weights make good for; and no
    features are selected, since every token gets a score.
    """

    samples: int = 1000
    of: TargetValue = "probability"
    players: Players = "tokens"
    kind: ClassVar[ScoreKind] = "saliency"
    join: ClassVar[Join] = "sum"
    signed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_coalition_settings(self.of, self.players, self.samples)

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        coalitions = Coalitions(tuple(target.tolist()), self.samples, self.players)
        return explain_by_coalitions("lime", context, coalitions, self._fitted)

    def _fitted(self, game: CoalitionValues) -> Float64[Tensor, "M"]:
        weights = game.weights(lime_mass(game.players, self.samples))
        return weighted_ridge(game.visible.double(), game.values(self.of), weights)


def lime_mass(players: int, samples: int) -> Float64[Tensor, "K"]:
    """The weight that coalitions of size 0 … players have together among so many samples."""
    size = torch.arange(players + 1, dtype=torch.float64)
    far = 100.0 * (1.0 - (size / players).sqrt())
    mass = (-0.5 * (far / WIDTH).square()).exp() * (samples - 1) / players
    mass[-1] = 1.0  # the whole text is put in once, not drawn
    return mass


def weighted_ridge(
    x: Float64[Tensor, "N M"], y: Float64[Tensor, "N"], weights: Float64[Tensor, "N"]
) -> Float64[Tensor, "M"]:
    """argmin_β min_c Σ w (y − c − xβ)² + ‖β‖²: the intercept c is centred away."""
    share = weights / weights.sum()
    x, y = x - share @ x, y - share @ y
    gram = (weights[:, None] * x).T @ x + RIDGE * torch.eye(x.shape[1], dtype=x.dtype)
    found: Tensor = torch.linalg.solve(gram, x.T @ (weights * y))
    return found
