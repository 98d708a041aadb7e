"""Layers with one value taken out: how far each state turns without it (Mohebbi et al., 2023)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.errors import NotApplicable
from heedful.models.attention_access.access import model_lock
from heedful.models.attention_access.recorder import AttentionCall
from heedful.models.internals.hidden_states import StateRecorder, find_attention_layers
from heedful.models.transformer.last_layer_replay import ReplayableSubject

METHOD = "value_zeroing"
COSINE_TOLERANCE = 1e-4  # how far a layer may turn that is given its own states again


def compute_value_zeroing(
    subject: ReplayableSubject, batch: Batch, *, max_batch_tokens: int
) -> list[Float[Tensor, "B T T"]]:
    """For each layer 1 − cos(state, state without the value of key k), row by position.

    All layers at once: variant k attends to nothing at key k in every layer, and each layer is
    given the states that entered it in the untouched pass. One more variant keeps every key: it
    must give the states of the untouched pass.
    """
    layers = find_attention_layers(subject, METHOD)
    entered, left = _record_states(subject, batch, layers)
    rows, keys = _zeroed_key_variants(batch)
    length = batch.ids.shape[1]
    changes = [one.new_zeros(len(batch), length, length + 1) for one in left]
    size = max(1, max_batch_tokens // length)
    for some, key in zip(torch.split(rows, size), torch.split(keys, size), strict=True):
        given = [one[some] for one in entered]
        _, without = _record_states(subject, batch.select(some), layers, keys=key, given=given)
        for change, own, other in zip(changes, left, without, strict=True):
            cosine = torch.cosine_similarity(own[some], other, dim=-1)
            change[some, :, key] = (1 - cosine).clamp(min=0)
    _require_unchanged(changes, batch)
    return [change[..., :-1] for change in changes]


def _zeroed_key_variants(batch: Batch) -> tuple[Int[Tensor, "N"], Int[Tensor, "N"]]:
    """Every text with each key it has, and once with the key past the last: none."""
    whole = torch.ones(len(batch), 1, dtype=torch.bool)
    rows, keys = torch.cat([batch.present, whole], dim=1).nonzero(as_tuple=True)
    return rows, keys


def _require_unchanged(changes: list[Tensor], batch: Batch) -> None:
    gap = max(float(change[..., -1][batch.present].abs().max()) for change in changes)
    if not gap <= COSINE_TOLERANCE:
        raise NotApplicable(
            f"{METHOD} is refused: a layer given its own states again does not give what it "
            f"gave (1 − cosine {gap:.2g})."
        )


def _record_states(
    subject: ReplayableSubject,
    batch: Batch,
    layers: list[nn.Module],
    *,
    keys: Int[Tensor, "N"] | None = None,
    given: list[Tensor] | None = None,
) -> tuple[list[Tensor], list[Tensor]]:
    """What enters and leaves each layer, with a key's weights zeroed and states put in if said."""
    watch = StateRecorder(batch, METHOD, given=given)

    def zero(call: AttentionCall) -> Tensor | None:
        if keys is None:
            return None
        columns = torch.arange(call.weights.shape[-1])
        return call.weights * (columns != keys[:, None]).to(call.weights)[:, None, None]

    with model_lock(subject.model), watch.on(layers), torch.no_grad():
        subject.run(batch, zero, keep=False)
    return watch.entered, watch.left
