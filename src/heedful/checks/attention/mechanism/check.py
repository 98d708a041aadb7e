"""Where do attention and influence diverge: in the weights or in the encoder's mixing?"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.checks.attention.mechanism.layer_contributions import (
    LAYER_MEASURES,
    compute_contributions,
    measure_layer_contributions,
)
from heedful.checks.base import Findings, missing_of, to_measurement
from heedful.core.errors import NotApplicable
from heedful.core.values import LinearDecoder
from heedful.methods.erasure.leave_one_out import LeaveOneOut
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import HasLayers
from heedful.numerics.tensor.ranking import dense_ranks, kendall


@dataclass(frozen=True)
class Mechanism:
    """Where do attention and influence diverge: in the weights or in the encoder's mixing?

    With a linear decoder α_t s_t is what state t adds to the output. `tau_weighting` compares the
    ranking by α with that by ‖α s‖: a loss there is due to the weights, which do not reflect how
    much a state contributes. `tau_mixing` compares ‖α s‖ with leave-one-out: a loss there is due
    to the encoder, whose states no longer stand for their own words (and, where a deleted word had
    much weight, to the softmax that redistributes it). `conicity`, the mean cosine of the states
    with their mean, measures how alike the states are (Mohankumar et al., 2020).

    In a transformer a token's contribution to the audited layer replaces ‖α s‖, by ALTI, or by
    value zeroing where ALTI is refused and `zeroing` is on (see `layer_contributions`).
    `tau_unrolled` is then its agreement with leave-one-out, `tau_mixing` that of the contribution
    traced through the layers below; all three are also measured layer by layer.
    """

    zeroing: bool = True

    def __call__(self, context: BatchContext) -> Findings:
        mask, own = context.batch.mask, context.forward.attention
        columns = {"conicity": conicity(context.forward.states, mask)}
        if isinstance(context.subject, HasLayers) and context.forward.maps:
            return self._of_layers(context, columns)
        missing = {}
        decoder = context.decode
        if isinstance(decoder, LinearDecoder):
            leave = LeaveOneOut(of="output")(context, context.predicted).scores
            rows = torch.stack([own, own * decoder.influence, leave], dim=1)
            ranks = dense_ranks(rows, mask[:, None].expand_as(rows))
            tau = kendall(ranks, mask).tau
            columns |= {"tau_weighting": tau[:, 0, 1], "tau_mixing": tau[:, 1, 2]}
        else:
            reason = "Only a linear decoder says what each state adds; this one is not linear."
            missing = dict.fromkeys(("tau_weighting", "tau_mixing"), reason)
        measured = (to_measurement(name, column) for name, column in columns.items())
        return Findings(tuple(measured), missing_of(missing))

    def _of_layers(self, context: BatchContext, columns: dict[str, Tensor]) -> Findings:
        measured = [to_measurement(name, column) for name, column in columns.items()]
        try:
            layers = compute_contributions(context, zeroing=self.zeroing)
        except NotApplicable as reason:
            reasons = dict.fromkeys(LAYER_MEASURES, str(reason))
            return Findings(tuple(measured), missing_of(reasons))
        leave = LeaveOneOut(of="output")(context, context.predicted).scores
        return Findings((*measured, *measure_layer_contributions(context, layers, leave)))


def conicity(states: Float[Tensor, "B T D"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B"]:
    """Mean cosine between a text's states and their mean, in [−1, 1]; NaN where it has none.

    A state of zeros, as a ReLU may leave, points nowhere and counts as 0.
    """
    real = states * mask[..., None]
    middle = real.sum(1, keepdim=True) / mask.sum(-1)[:, None, None].clamp(min=1)
    cosine = torch.cosine_similarity(real, middle, dim=-1)
    return (cosine * mask).sum(-1) / mask.sum(-1).to(states.dtype)
