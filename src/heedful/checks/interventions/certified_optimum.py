"""Adversarial attention found exactly, and upper bounds on what any search can find."""

from dataclasses import dataclass
from itertools import combinations

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.checks.interventions.base import interventions
from heedful.core.errors import NotApplicable
from heedful.core.settings import PositiveFraction, check_on_init
from heedful.core.values import LinearDecoder
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.distributions import jsd_to_point
from heedful.numerics.tensor.linear_programs import farthest_in_slab, log_odds_bounds

# relative: the exact adversary stays this far inside ε, bounds this far outside
FLOAT64_SLACK = 1e-9
FLOAT32_SLACK = 1e-4  # the same for models in float32, whose attention is rounded to it


@interventions.register("certified")
@check_on_init
@dataclass(frozen=True)
class CertifiedAdversary:
    """The farthest attention in JSD whose output differs by at most `epsilon` in TVD: an optimum.

    For two classes and a linear decoder only; `heedful.numerics.tensor.linear_programs`
    says why it is exact.
    """

    epsilon: PositiveFraction = 0.05

    def __call__(self, context: BatchContext) -> Float[Tensor, "K B T"]:
        decoder, classes = context.decode, len(context.subject.labels)
        if not isinstance(decoder, LinearDecoder):
            raise NotApplicable("its decoder is not linear in the attended states")
        if classes != 2:
            raise NotApplicable(f"it has {classes} classes; exact only for two")
        p = context.forward.probabilities.double()
        own, mask = context.forward.attention, context.batch.mask
        slack = FLOAT64_SLACK if own.dtype == torch.float64 else FLOAT32_SLACK
        low, high = log_odds_bounds(p[:, 1], p[:, 0], self.epsilon * (1 - slack))
        farthest = farthest_in_slab(own, decoder.difference(1, 0), mask, low=low, high=high)
        found = (farthest.jsd > 0)[:, None]  # one word, say: its own attention is all there is
        return torch.where(found, farthest.attention(own.shape[1]).to(own), own)[None]


def jsd_bound(context: BatchContext, *, epsilon: float) -> Float[Tensor, "B"]:
    """No attention with output within ε lies farther than this from the model's own.

    For any decoder: the point on the least weighted token, J(min α). For a linear one with more
    than two classes also the smallest exact optimum over class pairs: staying within ε confines the
    log-odds of each pair to a slab.
    """
    own, mask = context.forward.attention, context.batch.mask
    bound = jsd_to_point(own.masked_fill(~mask, 1.0).amin(-1))
    decoder = context.decode
    if isinstance(decoder, LinearDecoder) and len(context.subject.labels) > 2:
        p = context.forward.probabilities.double()
        for one, other in combinations(range(p.shape[1]), 2):
            low, high = log_odds_bounds(p[:, one], p[:, other], epsilon * (1 + FLOAT64_SLACK))
            s = decoder.difference(one, other)
            bound = torch.minimum(bound, farthest_in_slab(own, s, mask, low=low, high=high).jsd)
    return bound.clamp(min=0.0)  # a text without words has no vertex at all
