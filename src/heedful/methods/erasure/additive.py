"""Additive explanations of coalition values: LIME, Kernel SHAP and exact Shapley values."""

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
    Samples,
    explain_by_coalitions,
    player_counts,
    player_index,
)
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.target import TargetValue

FEW_SAMPLES = {"samples": 200}  # for --quick
RIDGE = 1.0  # the penalty of LIME
WIDTH = 25.0  # of LIME's kernel; distances range from 0 to 100
EIGENVALUE_TOLERANCE = 1e-10  # of the largest; smaller ones are taken as 0


@methods.register("lime", kind="saliency", signed=True, slow=True, erases="many", quick=FEW_SAMPLES)
@dataclass(frozen=True)
class Lime:
    """Weights of a ridge regression of the value on which players are visible.

    As in the `lime` package (Ribeiro et al., 2016), sizes are uniform, a coalition has the weight
    exp(−½ (100 d / 25)²) with d its cosine distance from the whole text, the whole text is added
    with weight 1, the penalty is 1, and the intercept is not penalised. Unlike there, words are
    masked by the subject's mask embedding, not deleted; coalitions are sampled by size and in
    pairs, which the weights correct for; and no features are selected, since every token gets a
    score.
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


@methods.register(
    "kernel_shap", kind="saliency", signed=True, slow=True, erases="many", quick=FEW_SAMPLES
)
@dataclass(frozen=True)
class KernelShap:
    """Shapley values, estimated from `samples` coalitions; exact if those are all coalitions.

    A weighted regression (Lundberg & Lee, 2017). The scores sum exactly to v(x) − v(all players
    masked). With too few coalitions to separate the players (samples below about twice their
    number), the undetermined rest is shared equally.
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


@methods.register("shapley", kind="saliency", signed=True, slow=True, erases="many")
@dataclass(frozen=True)
class Shapley:
    """φ_i = Σ_S |S|! (M − |S| − 1)! / M! · (v(S ∪ i) − v(S)), the mean over all orders of players.

    Shapley (1953). Takes 2^M passes, so texts have at most `most_players`; batches with longer
    texts are refused.
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
