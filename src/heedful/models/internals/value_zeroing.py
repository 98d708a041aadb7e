"""Value zeroing: how each state changes without one key's value (Mohebbi et al., 2023)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.models.attention_access.access import model_lock
from heedful.models.attention_access.recorder import AttentionCall
from heedful.models.internals.closeness import require_close
from heedful.models.internals.hidden_states import StateRecorder, find_attention_layers
from heedful.models.protocols import HasAttentionCalls

METHOD = "value_zeroing"
COSINE_TOLERANCE = 1e-4  # largest 1 − cosine of a layer that is given its own states again


def compute_value_zeroing(
    subject: HasAttentionCalls, batch: Batch, *, max_batch_tokens: int
) -> list[Float[Tensor, "B T T"]]:
    """For each layer, 1 − cos(state of position t, same state without the value of key k).

    All layers at once: variant k has no weight on key k in any layer, and each layer is given its
    input of the unmodified pass. One more variant keeps every key and must reproduce the states of
    the unmodified pass.
    """
    layers = find_attention_layers(subject, METHOD)
    inputs, outputs = _record_states(subject, batch, layers)
    rows, keys = _zeroed_key_variants(batch)
    length = batch.ids.shape[1]
    changes = [one.new_zeros(len(batch), length, length + 1) for one in outputs]
    size = max(1, max_batch_tokens // length)
    for some, key in zip(torch.split(rows, size), torch.split(keys, size), strict=True):
        given = [one[some] for one in inputs]
        _, without = _record_states(subject, batch.select(some), layers, keys=key, given=given)
        for change, own, other in zip(changes, outputs, without, strict=True):
            cosine = torch.cosine_similarity(own[some], other, dim=-1)
            change[some, :, key] = (1 - cosine).clamp(min=0)
    rest = torch.stack([change[..., -1][batch.present] for change in changes])
    message = (
        f"{METHOD} is refused: a layer given its own states again does not reproduce its output"
    )
    require_close(rest, torch.zeros_like(rest), message, tolerance=COSINE_TOLERANCE)
    return [change[..., :-1] for change in changes]


def _zeroed_key_variants(batch: Batch) -> tuple[Int[Tensor, "N"], Int[Tensor, "N"]]:
    """Every text with each of its keys, and once with the key past the last, which is none."""
    whole = torch.ones(len(batch), 1, dtype=torch.bool)
    rows, keys = torch.cat([batch.present, whole], dim=1).nonzero(as_tuple=True)
    return rows, keys


def _record_states(
    subject: HasAttentionCalls,
    batch: Batch,
    layers: list[nn.Module],
    *,
    keys: Int[Tensor, "N"] | None = None,
    given: list[Tensor] | None = None,
) -> tuple[list[Tensor], list[Tensor]]:
    """Inputs and outputs of the layers, optionally with zeroed keys and given inputs."""
    watch = StateRecorder(batch, METHOD, given=given)

    def zero(call: AttentionCall) -> Tensor | None:
        if keys is None:
            return None
        columns = torch.arange(call.weights.shape[-1])
        return call.weights * (columns != keys[:, None]).to(call.weights)[:, None, None]

    with model_lock(subject.model), watch.recording(layers), torch.no_grad():
        subject.run(batch, zero, keep=False)
    return watch.layer_inputs, watch.layer_outputs
