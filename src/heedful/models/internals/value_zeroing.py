"""Layers with one value taken out: how far each state turns without it (Mohebbi et al., 2023)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.errors import NotApplicable
from heedful.models.attention_access.recorder import Call
from heedful.models.internals.hidden_states import Watch, layers_around
from heedful.models.transformer.last_layer_replay import Replayed

METHOD = "value_zeroing"
NEAR = 1e-4  # how far a layer may turn that is given its own states again


def zeroed_values(
    subject: Replayed, batch: Batch, *, max_batch_tokens: int
) -> list[Float[Tensor, "B T T"]]:
    """For each layer 1 − cos(state, state without the value of key k), row by position.

    All layers at once: variant k attends to nothing at key k in every layer, and each layer is
    given the states that entered it in the untouched pass. One more variant keeps every key: it
    must give the states of the untouched pass.
    """
    layers = layers_around(subject, METHOD)
    entered, left = _states(subject, batch, layers)
    rows, keys = _variants(batch)
    length = batch.ids.shape[1]
    changes = [one.new_zeros(len(batch), length, length + 1) for one in left]
    size = max(1, max_batch_tokens // length)
    for some, key in zip(torch.split(rows, size), torch.split(keys, size), strict=True):
        given = [one[some] for one in entered]
        _, without = _states(subject, batch.chosen(some), layers, keys=key, given=given)
        for change, own, other in zip(changes, left, without, strict=True):
            cosine = torch.cosine_similarity(own[some], other, dim=-1)
            change[some, :, key] = (1 - cosine).clamp(min=0)
    _require_untouched(changes, batch)
    return [change[..., :-1] for change in changes]


def _variants(batch: Batch) -> tuple[Int[Tensor, "N"], Int[Tensor, "N"]]:
    """Every text with each key it has, and once with the key past the last: none."""
    whole = torch.ones(len(batch), 1, dtype=torch.bool)
    rows, keys = torch.cat([batch.present, whole], dim=1).nonzero(as_tuple=True)
    return rows, keys


def _require_untouched(changes: list[Tensor], batch: Batch) -> None:
    gap = max(float(change[..., -1][batch.present].abs().max()) for change in changes)
    if not gap <= NEAR:
        raise NotApplicable(
            f"{METHOD} is refused: a layer given its own states again does not give what it "
            f"gave (1 − cosine {gap:.2g})."
        )


def _states(
    subject: Replayed,
    batch: Batch,
    layers: list[nn.Module],
    *,
    keys: Int[Tensor, "N"] | None = None,
    given: list[Tensor] | None = None,
) -> tuple[list[Tensor], list[Tensor]]:
    """What enters and leaves each layer, with a key's weights zeroed and states put in if said."""
    watch = Watch(batch, METHOD, given=given)

    def zero(call: Call) -> Tensor | None:
        if keys is None:
            return None
        columns = torch.arange(call.weights.shape[-1])
        return call.weights * (columns != keys[:, None]).to(call.weights)[:, None, None]

    with watch.on(layers), torch.no_grad():
        subject.run(batch, zero, keep=False)
    return watch.entered, watch.left
