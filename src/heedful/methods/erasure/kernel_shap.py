"""Kernel SHAP (Lundberg & Lee, 2017): Shapley values by a weighted regression on coalitions."""

from dataclasses import dataclass

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from heedful.core.values import Explanation
from heedful.methods.base import methods
from heedful.methods.erasure.coalitions import (
    FEW_SAMPLES,
    Coalitions,
    CoalitionValues,
    Players,
    Samples,
    explain_by_coalitions,
)
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.target import TargetValue

EIGENVALUE_TOLERANCE = 1e-10  # of the largest; smaller ones are taken as 0


@methods.register(
    "kernel_shap", kind="saliency", signed=True, slow=True, erases="many", quick=FEW_SAMPLES
)
@dataclass(frozen=True)
class KernelShap:
    """Shapley values, estimated from `samples` coalitions; exact if those are all coalitions.

    Their sum is exactly v(x) − v(all players masked). With too few coalitions to separate the
    players (samples below about twice their number), the undetermined rest is shared equally.
    """

    samples: Samples = 1000
    of: TargetValue = "probability"
    players: Players = "tokens"

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        coalitions = Coalitions(tuple(target.tolist()), self.samples, self.players)
        return explain_by_coalitions("kernel_shap", context, coalitions, self._solve)

    def _solve(self, text: CoalitionValues) -> Float64[Tensor, "M"]:
        weights = text.weights(shapley_mass(text.players))
        return constrained_least_squares(text.visible.double(), text.values(self.of), weights)


def shapley_mass(players: int) -> Float64[Tensor, "K"]:
    """The mass of the Shapley kernel on coalitions of size 0 … players, up to a factor.

    The two ends have infinite mass; they are constraints of the regression instead.
    """
    size = torch.arange(players + 1, dtype=torch.float64)
    mass = 1.0 / (size * (players - size))
    mass[0] = mass[-1] = 0.0
    return mass


def constrained_least_squares(
    visible: Float64[Tensor, "N M"], values: Float64[Tensor, "N"], weights: Float64[Tensor, "N"]
) -> Float64[Tensor, "M"]:
    """argmin_φ Σ w (v − v(∅) − zφ)² with Σ φ = v(all) − v(∅); the first row is all, the last ∅.

    φ is the equal share plus a deviation that sums to 0, so each row z can be centred; of all
    deviations that fit equally well the pseudo-inverse gives the smallest.
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
