"""Where does attention part from influence: in the weighting or in the mixing?"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.checks.attention.mechanism.layer_contributions import (
    LAYER_MEASURES,
    compute_contributions,
    measure_layer_contributions,
)
from heedful.checks.base import Findings, checks, to_measurement
from heedful.core.errors import NotApplicable
from heedful.core.records import Claim
from heedful.core.values import LinearDecoder
from heedful.methods.erasure.leave_one_out import LeaveOneOut
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import HasLayers
from heedful.numerics.tensor.ranking import dense_ranks, kendall


@checks.register("mechanism")
@dataclass(frozen=True)
class Mechanism:
    """Where does attention part from influence: in the weighting or in the mixing?

    With a linear decoder α_t s_t is what state t adds to the output. `tau_weighting` ranks tokens
    by α against ‖α s‖: what is lost there is the fault of the weights, which do not see how much a
    state has to say. `tau_mixing` ranks ‖α s‖ against leave-one-out: what is lost there is the
    fault of the encoder, whose states no longer stand for their words (and, where a deleted word
    had much weight, of the softmax that hands it on). `conicity`, the mean cosine of the states
    with their mean, says how alike the states are (Mohankumar et al., 2020).

    In a transformer a token's contribution to the layer under audit takes the place of ‖α s‖, by
    ALTI, or by value zeroing where that is refused and `zeroing` is not turned off (see
    `layer_contributions`). `tau_unrolled` is then its agreement with leave-one-out, `tau_mixing`
    that of the contribution followed down through the layers; all three also layer by layer.
    """

    zeroing: bool = True
    claim: ClassVar[Claim | None] = None
    measures: ClassVar[tuple[str, ...]] = ("tau_weighting", "tau_mixing", "conicity")
    head_measures: ClassVar[tuple[str, ...]] = ("tau_unrolled",)
    beside: ClassVar[tuple[str, ...]] = ()

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
        return Findings(tuple(measured), missing)

    def _of_layers(self, context: BatchContext, columns: dict[str, Tensor]) -> Findings:
        measured = [to_measurement(name, column) for name, column in columns.items()]
        try:
            layers = compute_contributions(context, zeroing=self.zeroing)
        except NotApplicable as reason:
            return Findings(tuple(measured), dict.fromkeys(LAYER_MEASURES, str(reason)))
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
