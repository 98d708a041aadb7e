"""What tokens contribute to each layer, directly and traced through the layers below.

Three rankings of the words at the audited position: the weights of a layer; what each token
contributes to the state there, values, residual and norm included; and the same traced through the
layers below, where a position no longer stands for its own token. The first two differ by the
weighting, the second and third by the mixing; all are compared with leave-one-out.
"""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.checks.base import to_measurement
from heedful.core.errors import NotApplicable
from heedful.core.records import Measurement
from heedful.methods.attention.layer_stack import require_layers
from heedful.methods.attention.vector_based import value_zeroing_changes
from heedful.models.batch_context import BatchContext
from heedful.models.internals.alti_globenc import ContributionsComputation
from heedful.numerics.tensor.ranking import dense_ranks, kendall
from heedful.numerics.tensor.vector_parts import normalise_rows

LAYER_MEASURES = ("tau_weighting", "tau_mixing", "tau_unrolled")


def compute_contributions(context: BatchContext, *, zeroing: bool) -> list[Float[Tensor, "B T T"]]:
    """Each layer's contributions, rows summing to 1: by ALTI in one pass, or by value zeroing.

    The latter takes a variant per token, as leave-one-out does.
    """
    try:
        return [normalise_rows(one) for one in context.cached(ContributionsComputation("alti"))]
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
    audited = [number for number in range(len(layers)) if _holds(context, number)]
    own = torch.stack([alone[number] for number in audited]).mean(0)
    rows = [context.forward.attention, own, down[audited[-1]], leave]
    yield from _taus(rows, context.batch.mask, None)
    for number, weights in enumerate(context.layer_rows):
        rows = [weights.mean(1), alone[number], down[number], leave]
        yield from _taus(rows, context.batch.mask, number)


def _holds(context: BatchContext, layer: int) -> bool:
    scope = getattr(context.subject, "scope", None)
    return scope is None or scope.includes_layer(layer)


def _taus(
    rows: Sequence[Float[Tensor, "B T"]], mask: Bool[Tensor, "B T"], layer: int | None
) -> Iterator[Measurement]:
    """Weights, contributions, traced contributions and leave-one-out, pair by pair."""
    scores = torch.stack([one.double() for one in rows], dim=1) * mask[:, None]
    tau = kendall(dense_ranks(scores, mask[:, None].expand_as(scores)), mask).tau
    for measure, (one, other) in zip(LAYER_MEASURES, ((0, 1), (2, 3), (1, 3)), strict=True):
        yield to_measurement(measure, tau[:, one, other], layer=layer)
