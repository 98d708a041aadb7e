"""Fit the parameters of a network to sets of words of a rule."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.planted.influence.kind import InfluenceSetting
from heedful.planted.influence.trained.rule import Rule, TrainingSets, draw_sets

SetsLoss = Callable[[TrainingSets], Float[Tensor, ""]]


@dataclass(frozen=True)
class FitPlan:
    """How a network is fitted: token ids around a text, sets, batches, steps, learning rate."""

    start: int
    end: int
    steps: int
    rate: float
    sets: int = 6000
    batch: int = 64


def fit_parameters(
    setting: InfluenceSetting,
    rule: Rule,
    parameters: Iterable[nn.Parameter],
    loss: SetsLoss,
    plan: FitPlan,
) -> None:
    """Minimise the loss with Adam; the learning rate falls to 0 over the second half."""
    draw, chosen = setting.draw("steps"), [*parameters]
    sets = draw_sets(rule, setting, plan.sets, start=plan.start, end=plan.end)
    optimiser = torch.optim.Adam(
        [one.requires_grad_(True) for one in chosen], plan.rate, fused=True
    )
    for step in range(plan.steps):
        optimiser.param_groups[0]["lr"] = plan.rate * min(1.0, 2.0 * (1.0 - step / plan.steps))
        some = sets.select(torch.from_numpy(draw.integers(plan.sets, size=plan.batch)))
        optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(loss(some))
        nn.utils.clip_grad_norm_(chosen, 1.0)
        optimiser.step()
    for one in chosen:
        one.requires_grad_(False)
