"""Inside attention blocks: what each key adds to the output, and what changes without its value.

No family is special-cased. The output projection is found as the module whose input is the output
of the heads; what the keys add must sum to the output of that module, else the block is refused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.errors import NotApplicable
from heedful.models.attention_access.access import model_lock
from heedful.models.attention_access.layer_hooks import forward_hooks
from heedful.models.attention_access.recorder import AttentionCall, active_recorder
from heedful.models.internals.closeness import require_close
from heedful.models.internals.hidden_states import StateRecorder, find_attention_layers
from heedful.models.protocols import HasAttentionCalls

COSINE_TOLERANCE = 1e-4  # largest 1 − cosine of a layer that is given its own states again


@dataclass(frozen=True, eq=False)
class AttentionBlock:
    """An attention, the output projection behind its heads, and the output of the block."""

    call: AttentionCall
    values: Float[Tensor, "B H K d"]
    output_projection: Callable[[Tensor], Tensor]
    output: Float[Tensor, "B Q D"]

    def contribution_norms(
        self, batch: Batch, *, head: int | None = None
    ) -> Float[Tensor, "B Q K"]:
        """‖Σ_h α_h f_h(x_k)‖ of each key for each query, of all heads or of one.

        Its square is a quadratic form in the weights of the heads, so that no vector per pair of
        tokens is formed.
        """
        weights = self.call.weights
        added, bias = self.projected_values()
        whole = torch.einsum("bhqk,bkhd->bqd", weights, added) + bias
        self.require_reconstruction(whole, batch)
        if head is not None:
            weights, added = weights[:, head : head + 1], added[:, :, head : head + 1]
        products = torch.einsum("bkhd,bkgd->bkhg", added, added)
        return torch.einsum("bhqk,bkhg,bgqk->bqk", weights, products, weights).clamp(min=0).sqrt()

    def projected_values(self) -> tuple[Float[Tensor, "B K H D"], Float[Tensor, "D"]]:
        """f_h(x_k), the projected value of each key in each head; the projection's bias."""
        matrix, bias = self.output_map(self.values.dtype)
        return torch.einsum("bhkw,hwd->bkhd", self.values, matrix), bias

    def output_map(self, dtype: torch.dtype) -> tuple[Float[Tensor, "H d D"], Float[Tensor, "D"]]:
        """The matrix by which each head's values are projected, and the bias of the projection."""
        heads, width = self.values.shape[1], self.values.shape[3]
        each = torch.eye(heads * width + 1, heads * width).to(self.values)  # the last row is zero
        with torch.no_grad():
            projected = self.output_projection(each[None])[0].to(dtype)
        return (projected[:-1] - projected[-1]).reshape(heads, width, -1), projected[-1]

    def require_reconstruction(
        self, whole: Float[Tensor, "B Q D"], batch: Batch, method: str = "attention_norm"
    ) -> None:
        """Raise NotApplicable unless the sum over the keys is the output of the block."""
        made, wanted = whole, self.output
        if whole.shape[1] == batch.ids.shape[1]:
            made, wanted = whole[batch.present], self.output[batch.present]
        message = f"{method} is refused: what the keys add is not the output of {self.call.module}"
        require_close(made, wanted, message, scale=self.output)


def find_attention_blocks(
    subject: HasAttentionCalls,
    batch: Batch,
    wanted: Callable[[AttentionCall], bool],
    *,
    embedded: Float[Tensor, "B T E"] | None = None,
    method: str = "attention_norm",
) -> list[AttentionBlock]:
    """The blocks of the wanted attentions, in their order in the pass.

    The pass starts from `embedded`, by default from the texts; `method` is named in errors.
    """
    blocks: dict[int, AttentionBlock] = {}

    def match(module: nn.Module, args: tuple[Any, ...], _: object, output: Any) -> None:
        recorder = active_recorder.get()
        if recorder is None or not recorder.calls or not args or not isinstance(args[0], Tensor):
            return
        call = recorder.calls[-1]
        if call.order in blocks or not wanted(call):
            return
        if (block := match_attention_block(call, module, args[0], output)) is not None:
            blocks[call.order] = block

    linear = [one for one in subject.model.modules() if is_linear_map(one)]
    with model_lock(subject.model), forward_hooks(linear, leave=match), torch.no_grad():
        _, recorder = subject.run(batch, embedded=embedded)
    orders = [call.order for call in recorder.calls if wanted(call)]
    if missing := [order for order in orders if order not in blocks]:
        raise NotApplicable(
            f"{method} needs the values of the heads and a linear map behind them; "
            f"{subject.access.modules[missing[0]]} exposes none."
        )
    return [blocks[order] for order in orders]


def match_attention_block(
    call: AttentionCall, module: nn.Module, given: Tensor, output: Tensor
) -> AttentionBlock | None:
    """The block, if the input of the module is the output of the attention's heads, else None."""
    if call.values is None:
        return None
    mixed = (call.weights @ call.values).transpose(1, 2).flatten(2)
    if given.numel() != mixed.numel() or not torch.allclose(given.reshape(mixed.shape), mixed):
        return None
    return AttentionBlock(call, call.values, module, output.reshape(*mixed.shape[:2], -1))


def is_linear_map(module: nn.Module) -> bool:
    """Whether a module has one weight matrix and is not an embedding table."""
    weight = getattr(module, "weight", None)
    return isinstance(weight, Tensor) and weight.dim() == 2 and not isinstance(module, nn.Embedding)


def compute_value_zeroing(
    subject: HasAttentionCalls, batch: Batch, *, max_batch_tokens: int
) -> list[Float[Tensor, "B T T"]]:
    """For each layer, 1 − cos(state of position t, same state without the value of key k).

    Value zeroing (Mohebbi et al., 2023), in all layers at once: variant k has no weight on key k
    in any layer, and each layer is given its input of the unmodified pass. One more variant keeps
    every key and must reproduce the states of the unmodified pass.
    """
    layers = find_attention_layers(subject, "value_zeroing")
    inputs, outputs = _record_states(subject, batch, layers)
    # every text without each of its keys, and once unmodified: without the key past the last
    none = torch.ones(len(batch), 1, dtype=torch.bool)
    rows, keys = torch.cat([batch.present, none], dim=1).nonzero(as_tuple=True)
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
        "value_zeroing is refused: a layer given its own states again does not reproduce its output"
    )
    require_close(rest, torch.zeros_like(rest), message, tolerance=COSINE_TOLERANCE)
    return [change[..., :-1] for change in changes]


def _record_states(
    subject: HasAttentionCalls,
    batch: Batch,
    layers: list[nn.Module],
    *,
    keys: Int[Tensor, "N"] | None = None,
    given: list[Tensor] | None = None,
) -> tuple[list[Tensor], list[Tensor]]:
    """Inputs and outputs of the layers, optionally with zeroed keys and given inputs."""
    watch = StateRecorder(batch, "value_zeroing", given=given)

    def zero(call: AttentionCall) -> Tensor | None:
        if keys is None:
            return None
        columns = torch.arange(call.weights.shape[-1])
        return call.weights * (columns != keys[:, None]).to(call.weights)[:, None, None]

    with model_lock(subject.model), watch.recording(layers), torch.no_grad():
        subject.run(batch, zero, keep=False)
    return watch.layer_inputs, watch.layer_outputs
