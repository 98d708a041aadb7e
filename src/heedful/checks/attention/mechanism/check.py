"""Where do attention and influence diverge: in the weights or in the encoder's mixing?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.checks.base import Findings, missing_of, rank_agreement, to_measurement
from heedful.core.errors import NotApplicable
from heedful.core.records import Measurement
from heedful.core.values import LinearDecoder
from heedful.methods.attention.layer_stack import require_layers
from heedful.methods.attention.vector_based import value_zeroing_changes
from heedful.methods.erasure.leave_one_out import LeaveOneOut
from heedful.models.batch_context import BatchContext
from heedful.models.internals.alti_globenc import contributions_by_layer
from heedful.models.protocols import HasLayers
from heedful.numerics.tensor.vector_parts import normalise_rows

LAYER_MEASURES = ("tau_weighting", "tau_mixing", "tau_unrolled")
NOT_LINEAR = "Only a linear decoder says what each state adds; this one is not linear."


@dataclass(frozen=True)
class Mechanism:
    """Where do attention and influence diverge: in the weights or in the encoder's mixing?

    With a linear decoder α_t s_t is what state t adds to the output. `tau_weighting` compares the
    ranking by α with that by ‖α s‖: a loss there is due to the weights, which do not reflect how
    much a state contributes. `tau_mixing` compares ‖α s‖ with leave-one-out: a loss there is due
    to the encoder, whose states no longer stand for their own words (and, where a deleted word had
    much weight, to the softmax that redistributes it). `conicity`, the mean cosine of the states
    with their mean, measures how alike the states are (Mohankumar et al., 2020).

    In a transformer a token's contribution to the audited layer (values, residual and norm
    included) replaces ‖α s‖, by ALTI, or by value zeroing where ALTI is refused and `zeroing` is
    on. `tau_unrolled` is then its agreement with leave-one-out, `tau_mixing` that of the
    contribution traced through the layers below, where a position no longer stands for its own
    token; all three are also measured layer by layer.
    """

    zeroing: bool = True

    def __call__(self, context: BatchContext) -> Findings:
        mask, own = context.batch.mask, context.forward.attention
        columns = {"conicity": conicity(context.forward.states, mask)}
        if isinstance(context.subject, HasLayers) and context.forward.maps:
            return self._of_layers(context, columns)
        decoder = context.decode
        if not isinstance(decoder, LinearDecoder):
            return Findings.from_columns(columns, dict.fromkeys(LAYER_MEASURES[:2], NOT_LINEAR))
        leave = LeaveOneOut(of="output")(context, context.predicted).scores
        tau = rank_agreement(torch.stack([own, own * decoder.influence, leave], dim=1), mask)
        columns |= {"tau_weighting": tau[:, 0, 1], "tau_mixing": tau[:, 1, 2]}
        return Findings.from_columns(columns)

    def _of_layers(self, context: BatchContext, columns: dict[str, Tensor]) -> Findings:
        plain = Findings.from_columns(columns)
        try:
            layers = compute_contributions(context, zeroing=self.zeroing)
        except NotApplicable as reason:
            missing = missing_of(dict.fromkeys(LAYER_MEASURES, str(reason)))
            return Findings(plain.measurements, missing)
        leave = LeaveOneOut(of="output")(context, context.predicted).scores
        found = measure_layer_contributions(context, layers, leave)
        return Findings((*plain.measurements, *found))


def conicity(states: Float[Tensor, "B T D"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B"]:
    """Mean cosine between a text's states and their mean, in [−1, 1]; NaN where it has none.

    A state of zeros, as a ReLU may leave, points nowhere and counts as 0.
    """
    real = states * mask[..., None]
    middle = real.sum(1, keepdim=True) / mask.sum(-1)[:, None, None].clamp(min=1)
    cosine = torch.cosine_similarity(real, middle, dim=-1)
    return (cosine * mask).sum(-1) / mask.sum(-1).to(states.dtype)


def compute_contributions(context: BatchContext, *, zeroing: bool) -> list[Float[Tensor, "B T T"]]:
    """Each layer's contributions, rows summing to 1: by ALTI in one pass, or by value zeroing.

    The latter takes a variant per token, as leave-one-out does.
    """
    try:
        return [normalise_rows(one) for one in context.cached(contributions_by_layer, "alti")]
    except NotApplicable as reason:
        if not zeroing or context.forward.decoder_maps:
            raise
        try:
            return context.cached(value_zeroing_changes)
        except NotApplicable as other:
            raise NotApplicable(f"{reason} {other}") from None


def measure_layer_contributions(
    context: BatchContext, layers: Sequence[Float[Tensor, "B T T"]], leave: Float[Tensor, "B T"]
) -> Iterator[Measurement]:
    """The three τ of the layers under audit, then of every layer."""
    read = require_layers(context, "mechanism").row_at_position
    alone = [read(context.batch, one) for one in layers]
    rolled, down = layers[0], [alone[0]]
    for layer in layers[1:]:
        rolled = layer @ rolled
        down.append(read(context.batch, rolled))
    scope = getattr(context.subject, "scope", None)
    audited = [n for n in range(len(layers)) if scope is None or scope.includes_layer(n)]
    own = torch.stack([alone[number] for number in audited]).mean(0)
    rows = [context.forward.attention, own, down[audited[-1]], leave]
    yield from _taus(rows, context.batch.mask, None)
    for number, weights in enumerate(context.layer_rows):
        rows = [weights.mean(1), alone[number], down[number], leave]
        yield from _taus(rows, context.batch.mask, number)


def _taus(
    rows: Sequence[Float[Tensor, "B T"]], mask: Bool[Tensor, "B T"], layer: int | None
) -> Iterator[Measurement]:
    """Weights, contributions, traced contributions and leave-one-out, pair by pair."""
    scores = torch.stack([one.double() for one in rows], dim=1) * mask[:, None]
    tau = rank_agreement(scores, mask)
    for measure, (one, other) in zip(LAYER_MEASURES, ((0, 1), (2, 3), (1, 3)), strict=True):
        yield to_measurement(measure, tau[:, one, other], layer=layer)
