"""What of attention can matter at all, and whose states it looks at? (Brunner et al., 2020)"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float64, Int
from torch import Tensor

from heedful.checks.base import Findings, checks, measurement
from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.records import Claim, Measurement
from heedful.core.rng import generator, uniform_keys
from heedful.models.batch_context import Sitting
from heedful.models.internals.effective_attention import Inside, SeenIn
from heedful.models.internals.token_identifiability import (
    contributions,
    equals,
    identified,
    layer_states,
)
from heedful.numerics.tensor.distributions import positions_first

NAME = "identifiability"
WEIGHTS = ("no_effect_share", "no_effect_share_distribution", "keys_per_dimension")
TOKENS = ("token_identified", "identified_by_chance")
OWN = ("own_share", "own_largest")
ONE = "This is asked of layers and heads; the model has one attention, over states of its own."
UNHEARD = "This is asked of heads one by one, which needs a transformers model; this is another."


@checks.register(NAME)
@dataclass(frozen=True)
class Identifiability:
    """What of attention can matter at all, and whose states does it look at?

    `no_effect_share` is ‖a N Nᵀ‖² / ‖a‖² of a head's row a, where N spans the left null space of
    what the keys carry; `…_distribution` the same where the row must keep its sum;
    `keys_per_dimension` says how cheap that is. `token_identified` is the share of words whose
    state, as it enters the layer, points to its own word vector rather than to another token's;
    `own_share` the word's own part in that state, ‖∂e_j/∂x_j‖ / Σ_i ‖∂e_j/∂x_i‖, and
    `own_largest` whether no other part is larger, of `tokens` words drawn from each text by
    `projections` random directions. Under settings: every layer and head, and the output.
    """

    tokens: int = 2
    projections: int = 4
    claim: ClassVar[Claim | None] = None
    usual: ClassVar[bool] = False  # backward passes for every word, direction and layer
    of_heads: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if self.tokens < 0 or self.projections < 1:
            raise ConfigError(
                "tokens must be at least 0 and projections at least 1, not "
                f"{self.tokens} and {self.projections}."
            )

    @property
    def measures(self) -> tuple[str, ...]:
        """Of weights, of states, and of what is in them where that is asked for."""
        return (*WEIGHTS, *TOKENS, *(OWN if self.tokens else ()))

    def __call__(self, sitting: Sitting) -> Findings:
        subject = sitting.subject
        if not isinstance(subject, Inside) or not sitting.forward.maps:
            reason = UNHEARD if sitting.forward.maps else ONE
            return Findings((), dict.fromkeys(self.measures, reason))
        found: list[Measurement] = []
        missing: dict[str, str] = {}
        try:
            found += _weights(sitting, subject)
        except NotApplicable as reason:
            missing |= dict.fromkeys(WEIGHTS, str(reason))
        try:
            leaf, states = sitting.embedded, _states(sitting, subject)
        except NotApplicable as reason:
            return Findings(tuple(found), missing | dict.fromkeys(self.measures[3:], str(reason)))
        if leaf.shape[-1] == states[0].shape[-1]:
            found += _identified(sitting, subject, states)
        else:
            missing |= dict.fromkeys(
                TOKENS,
                f"Word vectors of {leaf.shape[-1]} dimensions cannot be compared with states of "
                f"{states[0].shape[-1]}.",
            )
        if self.tokens:
            found += self._own(sitting, subject, states)
        return Findings(tuple(found), missing)

    def _own(
        self, sitting: Sitting, subject: Inside, states: list[Tensor]
    ) -> Iterator[Measurement]:
        tokens = _drawn(sitting, self.tokens)
        directions = _directions(sitting, self.projections, states[0].shape[-1])
        asked = torch.arange(tokens.shape[1]) < sitting.batch.mask.sum(-1, keepdim=True)
        columns: list[tuple[Tensor, Tensor]] = []
        for layer in states:
            parts = contributions(layer, sitting.embedded, tokens=tokens, directions=directions)
            own = parts.gather(-1, tokens[..., None]).squeeze(-1)
            first = (own >= parts.amax(-1)).double()
            columns.append((_mean(own, asked), _mean(first, asked)))
        for place, name in enumerate(OWN):
            yield from _by_layer(subject, name, [one[place] for one in columns], output=True)


def _states(sitting: Sitting, subject: Inside) -> list[Tensor]:
    if sitting.forward.decoder_maps:
        raise NotApplicable(
            "States are followed through one stack of layers; an encoder–decoder has two."
        )
    return layer_states(subject, sitting.batch, sitting.embedded, method=NAME)


def _weights(sitting: Sitting, subject: Inside) -> Iterator[Measurement]:
    layers = [sitting.once(SeenIn(layer)) for layer in range(len(sitting.forward.maps))]
    head = subject.scope.head
    heads = slice(None) if head is None else slice(head, head + 1)
    shares = {WEIGHTS[0]: [one.unseen for one in layers], WEIGHTS[1]: [one.free for one in layers]}
    for name, columns in shares.items():
        held = [one[:, heads] for layer, one in enumerate(columns) if subject.scope.holds(layer)]
        yield measurement(name, torch.stack(held).mean((0, 2)))
        for layer, one in enumerate(columns):
            yield measurement(name, one.mean(1), f"layer {layer}")
            for number in range(one.shape[1]):
                yield measurement(name, one[:, number], f"layer {layer}, head {number}")
    yield from _by_layer(subject, WEIGHTS[2], [one.keys for one in layers])


def _identified(sitting: Sitting, subject: Inside, states: list[Tensor]) -> Iterator[Measurement]:
    """Of every layer: which words' states point to their own vectors, and what chance would do."""
    batch, vectors = sitting.batch, sitting.embedded.detach()
    present = batch.present.to(vectors.device)
    columns = [
        _mean(identified(one.detach(), vectors, present).double().cpu(), batch.mask)
        for one in states
    ]
    yield from _by_layer(subject, TOKENS[0], columns, output=True)
    count = batch.present.sum(-1, keepdim=True)
    yield measurement(TOKENS[1], _mean(equals(vectors, present).cpu() / count, batch.mask))


def _by_layer(
    subject: Inside, name: str, columns: list[Tensor], *, output: bool = False
) -> Iterator[Measurement]:
    """What the scope holds of the layers, then each of them; the last is the output where said."""
    layers = columns[:-1] if output else columns
    held = [one for layer, one in enumerate(layers) if subject.scope.holds(layer)]
    yield measurement(name, torch.stack(held).mean(0))
    for layer, one in enumerate(layers):
        yield measurement(name, one, f"layer {layer}")
    if output:
        yield measurement(name, columns[-1], "output")


def _mean(values: Float64[Tensor, "B T"], inside: Tensor) -> Float64[Tensor, "B"]:
    """The mean over some of the tokens; NaN where there is none."""
    return (values.nan_to_num(0.0) * inside).sum(-1) / inside.sum(-1).double()


def _drawn(sitting: Sitting, count: int) -> Int[Tensor, "B J"]:
    """Places of words of each text, by its own draw, those that count before any that do not."""
    mask = sitting.batch.mask
    lengths = mask.sum(-1).tolist()
    keys = uniform_keys(
        sitting.seed, f"{NAME}, words", sitting.batch.instances, draws=1, lengths=lengths
    )
    order = torch.from_numpy(keys[:, 0]).argsort(dim=-1, stable=True)[:, :count]
    return positions_first(mask).gather(1, order)


def _directions(sitting: Sitting, count: int, width: int) -> Float64[Tensor, "B P D"]:
    """Orthonormal directions of each text, by its own draw."""
    made = []
    for instance in sitting.batch.instances:
        noise = generator(sitting.seed, f"{NAME}, directions", instance)
        drawn = noise.standard_normal((width, min(count, width)))
        made.append(np.linalg.qr(drawn).Q.T)
    return torch.from_numpy(np.stack(made))
