"""LIME (Ribeiro et al., 2016): a linear model of the output near the text."""

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

RIDGE = 1.0
WIDTH = 25.0  # of the kernel; distances range from 0 to 100


@methods.register("lime", kind="saliency", signed=True, slow=True, erases="many", quick=FEW_SAMPLES)
@dataclass(frozen=True)
class Lime:
    """Weights of a ridge regression of the value on which players are visible.

    As in the `lime` package, sizes are uniform, a coalition has the weight exp(−½ (100 d / 25)²)
    with d its cosine distance from the whole text, the whole text is added with weight 1, the
    penalty is 1, and the intercept is not penalised. Unlike there, words are masked by the
    subject's mask embedding, not deleted; coalitions are sampled by size and in pairs, which the
    weights correct for; and no features are selected, since every token gets a score.
    """

    samples: Samples = 1000
    of: TargetValue = "probability"
    players: Players = "tokens"

    def __call__(self, context: BatchContext, target: Int[Tensor, "B"]) -> Explanation:
        coalitions = Coalitions(tuple(target.tolist()), self.samples, self.players)
        return explain_by_coalitions("lime", context, coalitions, self._fit)

    def _fit(self, text: CoalitionValues) -> Float64[Tensor, "M"]:
        weights = text.weights(lime_mass(text.players, self.samples))
        return weighted_ridge(text.visible.double(), text.values(self.of), weights)


def lime_mass(players: int, samples: int) -> Float64[Tensor, "K"]:
    """The total weight of coalitions of size 0 … players among so many samples."""
    size = torch.arange(players + 1, dtype=torch.float64)
    far = 100.0 * (1.0 - (size / players).sqrt())
    mass = (-0.5 * (far / WIDTH).square()).exp() * (samples - 1) / players
    mass[-1] = 1.0  # the whole text is added once, not sampled
    return mass


def weighted_ridge(
    x: Float64[Tensor, "N M"], y: Float64[Tensor, "N"], weights: Float64[Tensor, "N"]
) -> Float64[Tensor, "M"]:
    """argmin_β min_c Σ w (y − c − xβ)² + ‖β‖²: the intercept c is removed by centring."""
    share = weights / weights.sum()
    x, y = x - share @ x, y - share @ y
    gram = (weights[:, None] * x).T @ x + RIDGE * torch.eye(x.shape[1], dtype=x.dtype)
    coefficients: Tensor = torch.linalg.solve(gram, x.T @ (weights * y))
    return coefficients
