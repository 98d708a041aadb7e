"""Which part of attention can affect the output? (Brunner et al., 2020)"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float64, Int
from torch import Tensor

from heedful.checks.base import Findings, missing_of, to_measurement
from heedful.checks.draws import draw_uniform
from heedful.core.errors import NotApplicable
from heedful.core.records import Measurement
from heedful.core.rng import generator
from heedful.core.settings import NonNegativeInt, Repeats, check_on_init
from heedful.models.batch_context import BatchContext
from heedful.models.internals.identifiability import (
    compute_effective_attention,
    count_equal_tokens,
    find_identifiable_tokens,
    hidden_token_attribution,
    record_hidden_states,
)
from heedful.models.protocols import HasAttentionCalls
from heedful.numerics.tensor.distributions import positions_first

NAME = "identifiability"
WEIGHT_MEASURES = ("no_effect_share", "no_effect_share_distribution", "keys_per_dimension")
TOKEN_MEASURES = ("token_identified", "identified_by_chance")
OWN_PART_MEASURES = ("own_share", "own_largest")
NO_LAYERS = "This check needs layers and heads; the model has one attention over its own states."
NOT_A_TRANSFORMER = "This check reads single heads, which needs a transformers model."


@check_on_init
@dataclass(frozen=True)
class Identifiability:
    """Which part of attention can affect the output, and do states still represent their word?

    `no_effect_share` is ‖a N Nᵀ‖² / ‖a‖² of a head's row a, where N spans the left null space of
    the values; `…_distribution` is the same for rows that must keep their sum; the more
    `keys_per_dimension`, the larger it must be. `token_identified` is the share of words whose
    state, as it enters the layer, is nearest to its own word vector; `own_share` the word's own
    part in that state, ‖∂e_j/∂x_j‖ / Σ_i ‖∂e_j/∂x_i‖, and `own_largest` whether no other part is
    larger, for `tokens` words drawn from each text and `projections` random directions. All are
    also measured by layer, the first two by head, and the last three at the output.
    """

    tokens: NonNegativeInt = 2
    projections: Repeats = 4

    def __call__(self, context: BatchContext) -> Findings:
        subject = context.subject
        if not isinstance(subject, HasAttentionCalls) or not context.forward.maps:
            reason = NOT_A_TRANSFORMER if context.forward.maps else NO_LAYERS
            every = (*WEIGHT_MEASURES, *TOKEN_MEASURES, *self._own_measures)
            return Findings((), missing_of(dict.fromkeys(every, reason)))
        found: list[Measurement] = []
        missing: dict[str, str] = {}
        try:
            found += _weights(context, subject)
        except NotApplicable as reason:
            missing |= dict.fromkeys(WEIGHT_MEASURES, str(reason))
        try:
            leaf, states = context.embedded, _states(context, subject)
        except NotApplicable as reason:
            missing |= dict.fromkeys((*TOKEN_MEASURES, *self._own_measures), str(reason))
            return Findings(tuple(found), missing_of(missing))
        if leaf.shape[-1] == states[0].shape[-1]:
            found += _identified(context, subject, states)
        else:
            missing |= dict.fromkeys(
                TOKEN_MEASURES,
                f"Word vectors of {leaf.shape[-1]} dimensions cannot be compared with states of "
                f"{states[0].shape[-1]}.",
            )
        if self.tokens:
            found += self._own(context, subject, states)
        return Findings(tuple(found), missing_of(missing))

    @property
    def _own_measures(self) -> tuple[str, ...]:
        return OWN_PART_MEASURES if self.tokens else ()

    def _own(
        self, context: BatchContext, subject: HasAttentionCalls, states: list[Tensor]
    ) -> Iterator[Measurement]:
        tokens = _draw_words(context, self.tokens)
        directions = _draw_directions(context, self.projections, states[0].shape[-1])
        asked = torch.arange(tokens.shape[1]) < context.batch.mask.sum(-1, keepdim=True)
        columns: list[tuple[Tensor, Tensor]] = []
        for layer in states:
            parts = hidden_token_attribution(
                layer, context.embedded, tokens=tokens, directions=directions
            )
            own = parts.gather(-1, tokens[..., None]).squeeze(-1)
            first = (own >= parts.amax(-1)).double()
            columns.append((_mean(own, asked), _mean(first, asked)))
        for place, name in enumerate(OWN_PART_MEASURES):
            yield from _by_layer(subject, name, [one[place] for one in columns], output=True)


def _states(context: BatchContext, subject: HasAttentionCalls) -> list[Tensor]:
    if context.forward.decoder_maps:
        raise NotApplicable(
            "States are followed through one stack of layers; an encoder–decoder has two."
        )
    return record_hidden_states(subject, context.batch, context.embedded, method=NAME)


def _weights(context: BatchContext, subject: HasAttentionCalls) -> Iterator[Measurement]:
    depth = len(context.forward.maps)
    layers = [context.cached(compute_effective_attention, layer) for layer in range(depth)]
    head = subject.scope.head
    heads = slice(None) if head is None else slice(head, head + 1)
    shares = {
        WEIGHT_MEASURES[0]: [one.unseen for one in layers],
        WEIGHT_MEASURES[1]: [one.free for one in layers],
    }
    for name, columns in shares.items():
        held = [one[:, heads] for n, one in enumerate(columns) if subject.scope.includes_layer(n)]
        yield to_measurement(name, torch.stack(held).mean((0, 2)))
        for layer, one in enumerate(columns):
            yield to_measurement(name, one.mean(1), layer=layer)
            for number in range(one.shape[1]):
                yield to_measurement(name, one[:, number], layer=layer, head=number)
    yield from _by_layer(subject, WEIGHT_MEASURES[2], [one.keys for one in layers])


def _identified(
    context: BatchContext, subject: HasAttentionCalls, states: list[Tensor]
) -> Iterator[Measurement]:
    """Of every layer: which words' states point to their own vectors, and what chance would do."""
    batch, vectors = context.batch, context.embedded.detach()
    present = batch.present.to(vectors.device)
    columns = [
        _mean(find_identifiable_tokens(one.detach(), vectors, present).double().cpu(), batch.mask)
        for one in states
    ]
    yield from _by_layer(subject, TOKEN_MEASURES[0], columns, output=True)
    count = batch.present.sum(-1, keepdim=True)
    yield to_measurement(
        TOKEN_MEASURES[1], _mean(count_equal_tokens(vectors, present).cpu() / count, batch.mask)
    )


def _by_layer(
    subject: HasAttentionCalls, name: str, columns: list[Tensor], *, output: bool = False
) -> Iterator[Measurement]:
    """The mean over the audited layers, then each layer; the last column may be the output."""
    layers = columns[:-1] if output else columns
    held = [one for layer, one in enumerate(layers) if subject.scope.includes_layer(layer)]
    yield to_measurement(name, torch.stack(held).mean(0))
    for layer, one in enumerate(layers):
        yield to_measurement(name, one, layer=layer)
    if output:
        yield to_measurement(name, columns[-1], "output")


def _mean(values: Float64[Tensor, "B T"], inside: Tensor) -> Float64[Tensor, "B"]:
    """The mean over some of the tokens; NaN where there is none."""
    return (values.nan_to_num(0.0) * inside).sum(-1) / inside.sum(-1).double()


def _draw_words(context: BatchContext, count: int) -> Int[Tensor, "B J"]:
    """Places of words of each text, by its own draw, those that count before any that do not."""
    mask = context.batch.mask
    lengths = mask.sum(-1).tolist()
    keys = draw_uniform(context, f"{NAME}, words", draws=1, lengths=lengths)
    order = keys[:, 0].argsort(dim=-1, stable=True)[:, :count]
    return positions_first(mask).gather(1, order)


def _draw_directions(context: BatchContext, count: int, width: int) -> Float64[Tensor, "B P D"]:
    """Orthonormal directions of each text, by its own draw."""
    made = []
    for text in context.batch.content:
        noise = generator(context.seed, f"{NAME}, directions", text)
        drawn = noise.standard_normal((width, min(count, width)))
        made.append(np.linalg.qr(drawn).Q.T)
    return torch.from_numpy(np.stack(made))
