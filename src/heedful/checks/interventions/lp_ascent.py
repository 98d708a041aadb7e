"""Adversarial attention by linear programs, for outputs of any kind and any number of classes.

JSD from the model's own attention is convex in the weights, so its largest value lies on the
boundary of the allowed set. Near any weights both JSD and the output are nearly linear: a linear
program finds the best weights under this linearisation, and the next round linearises there. Only
weights whose decoded output stays within ε count.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated

import torch
from annotated_types import Ge, Le
from jaxtyping import Bool, Float, Float64
from torch import Tensor, autograd

from heedful.checks.interventions.base import interventions
from heedful.core.errors import NotApplicable
from heedful.core.settings import LARGEST_COUNT, Ceiling, PositiveFraction, Repeats, check_on_init
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.distributions import jsd, jsd_to_point, tvd
from heedful.numerics.tensor.linear_programs import LinearProgram, solve_in_balls

EPSILON_MARGIN = 1e-6  # relative: what is found stays this far inside ε
MIN_WEIGHT = 1e-3  # the least weight in a gradient of JSD, which is infinite at 0
PAIR_SHARES = 32  # points that are tried between two weights


@interventions.register("ascent")
@check_on_init
@dataclass(frozen=True)
class Ascent:
    """The farthest attention in JSD that linear programs find within `epsilon` in TVD.

    It tries all weight on one word, two of the `lightest` words together, and `rounds` of linear
    programs from several weights. The model's own attention always counts. The result is a lower
    bound of what exists.
    """

    epsilon: PositiveFraction = 0.05
    rounds: Repeats = 3
    lightest: Annotated[int, Ge(2), Le(LARGEST_COUNT), Ceiling()] = 8

    def __call__(self, context: BatchContext) -> Float[Tensor, "K B T"]:
        if context.forward.rows is not None:
            raise NotApplicable("it has many rows of weights, and the linear program moves one")
        found = _BestSoFar(context, self.epsilon)
        if bool(context.batch.mask.any()):
            found.try_points()
            found.try_pairs(self.lightest)
            for goal in found.goals():
                self._climb(found, found.own, goal)
            self._climb(found, found.best, None)
        return found.best[None]

    def _climb(
        self, found: "_BestSoFar", here: Float[Tensor, "B T"], goal: Float[Tensor, "B T"] | None
    ) -> None:
        """Solve one linear program after another, first towards the goal, the last along JSD.

        Weights that go too far are kept as the next starting point, which brings them back.
        """
        for left in reversed(range(self.rounds)):
            wanted = goal if goal is not None and left else _jsd_gradient(here, found.own)
            here = found.linear_best(here, wanted)
            found.try_points_towards(here)


class _BestSoFar:
    """The farthest weights found so far within ε."""

    def __init__(self, context: BatchContext, epsilon: float) -> None:
        self.context, self.epsilon = context, epsilon * (1 - EPSILON_MARGIN)
        self.own: Float[Tensor, "B T"] = context.forward.attention
        self.mask: Bool[Tensor, "B T"] = context.batch.mask
        self.before: Float64[Tensor, "B C"] = context.forward.probabilities.double()
        self.best = self.own
        self.away: Float[Tensor, B] = torch.zeros_like(self.own[:, 0])

    def consider(self, tried: Float[Tensor, "K B T"]) -> None:
        """Keep the farthest whose decoded output lies within ε."""
        with torch.no_grad():
            output = self.context.decode(tried).double().softmax(-1)
        near = tvd(output, self.before) <= self.epsilon
        away, which = jsd(tried, self.own).masked_fill(~near, -1.0).max(0)
        better = (away > self.away) & self.mask.any(-1)
        chosen = tried[which, torch.arange(len(self.own))]
        self.best = torch.where(better[:, None], chosen, self.best)
        self.away = torch.where(better, away, self.away)

    def try_points(self) -> None:
        """All weight on one word, for every word."""
        order = self._by_weight()
        for places in torch.split(order[:, : int(self.mask.sum(-1).max())], PAIR_SHARES, dim=1):
            self.consider(self._points(places.T))

    def try_pairs(self, lightest: int) -> None:
        """Two of the lightest words, at several shares."""
        order = self._by_weight()[:, :lightest]
        share = torch.linspace(0, 1, PAIR_SHARES + 2)[1:-1].to(self.own)[:, None, None]
        for one, other in combinations(range(order.shape[1]), 2):
            ends = self._points(order[:, [one, other]].T)
            self.consider(share * ends[:1] + (1 - share) * ends[1:])

    def goals(self) -> Iterator[Float[Tensor, "B T"]]:
        """Directions from the model's own weights, where the gradient of JSD is zero.

        The distance of each single word, an upper bound of JSD between words; and each of the two
        lightest words.
        """
        yield jsd_to_point(self.own)
        yield from self._points(self._by_weight()[:, :2].T)

    def try_points_towards(self, there: Float[Tensor, "B T"]) -> None:
        """Some weights, and points between them and the best so far."""
        share = torch.linspace(0, 1, PAIR_SHARES + 1)[1:].to(self.own)[:, None, None]
        self.consider(share * there + (1 - share) * self.best)

    def linear_best(
        self, here: Float[Tensor, "B T"], goal: Float[Tensor, "B T"]
    ) -> Float[Tensor, "B T"]:
        """The best weights under the linearisation at `here`; `here` where it finds none."""
        output, slopes = self._linearise(here)
        rest = self.before - output + torch.einsum("bt,btc->bc", here.double(), slopes)
        result = here.clone()
        farthest = jsd_to_point(self.own.masked_fill(~self.mask, 1.0).amin(-1))
        asked, programs = [], []
        for text, words in enumerate(self.mask):
            if self.away[text] < farthest[text] * (1 - EPSILON_MARGIN):
                classes = self.before[text] + output[text] > 0  # others are not allowed
                seen = slopes[text][words][:, classes].numpy()
                wanted = goal[text, words].double().numpy()
                programs.append(LinearProgram(wanted, seen, rest[text, classes].numpy()))
                asked.append(text)
        answers = solve_in_balls(programs, epsilon=self.epsilon)
        for text, found in zip(asked, answers, strict=True):
            if found is not None:
                result[text, self.mask[text]] = torch.from_numpy(found).to(result)
        return result

    def _linearise(
        self, here: Float[Tensor, "B T"]
    ) -> tuple[Float64[Tensor, "B C"], Float64[Tensor, "B T C"]]:
        """The class probabilities at some weights, and their gradients."""
        with torch.enable_grad():
            leaf = here.clone().requires_grad_()
            p = self.context.decode(leaf).softmax(-1)
            slopes = [autograd.grad(one.sum(), leaf, retain_graph=True)[0] for one in p.unbind(-1)]
        return p.detach().double(), torch.stack(slopes, dim=-1).double()

    def _by_weight(self) -> Tensor:
        """Words by weight, ascending."""
        return self.own.masked_fill(~self.mask, 2.0).argsort(-1)

    def _points(self, places: Tensor) -> Float[Tensor, "K B T"]:
        """All weight on one position each; on the lightest word where it is not a word."""
        light = self._by_weight()[:, 0]
        word = self.mask.gather(1, places.T).T
        places = torch.where(word, places, light)
        return torch.nn.functional.one_hot(places, self.own.shape[1]).to(self.own)


def _jsd_gradient(here: Float[Tensor, "B T"], own: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """∂JSD(α, q)/∂α = ½ log 2α/(α + q), with α at least `MIN_WEIGHT`."""
    weights = here.clamp(min=MIN_WEIGHT)
    return 0.5 * torch.log(2 * weights / (weights + own))
