"""Kernel SHAP (Lundberg & Lee, 2017): Shapley values by a weighted regression on coalitions."""

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

EIGENVALUE_TOLERANCE = 1e-10  # of the largest eigenvalue: below this the coalitions do not tell


@methods.register("kernel_shap")
@dataclass(frozen=True)
class KernelShap:
    """Shapley values, estimated from `samples` coalitions; exact where those are all there are.

    Their sum is v(x) − v(everything hidden), exactly. Where there are too few coalitions to tell
    players apart (samples below about twice their number), what is left open is shared evenly.
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
        return explain_by_coalitions("kernel_shap", context, coalitions, self._solved)

    def _solved(self, game: CoalitionValues) -> Float64[Tensor, "M"]:
        weights = game.weights(shapley_mass(game.players))
        return constrained_least_squares(game.visible.double(), game.values(self.of), weights)


def shapley_mass(players: int) -> Float64[Tensor, "K"]:
    """The mass of the Shapley kernel on coalitions of size 0 … players, up to a factor.

    The two ends would have all of it; they are met exactly instead.
    """
    size = torch.arange(players + 1, dtype=torch.float64)
    mass = 1.0 / (size * (players - size))
    mass[0] = mass[-1] = 0.0
    return mass


def constrained_least_squares(
    visible: Float64[Tensor, "N M"], values: Float64[Tensor, "N"], weights: Float64[Tensor, "N"]
) -> Float64[Tensor, "M"]:
    """argmin_φ Σ w (v − v(∅) − zφ)² with Σ φ = v(all) − v(∅); the first row is all, the last ∅.

    φ is the even share plus a deviation that adds up to 0: so each row z can be centred, and of
    all deviations that fit equally well the pseudo-inverse takes the smallest.
    """
    share = visible.mean(-1)
    whole, nothing = values[0], values[-1]
    centred = visible - share[:, None]
    left = values - nothing - share * (whole - nothing)
    weighted = weights[:, None] * centred
    inverse: Tensor = torch.linalg.pinv(
        weighted.T @ centred, rtol=EIGENVALUE_TOLERANCE, hermitian=True
    )
    return (whole - nothing) / visible.shape[1] + inverse @ (weighted.T @ left)
