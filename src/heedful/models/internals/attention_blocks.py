"""Inside the attention blocks of a transformer: what each key adds to what a block gives out.

No family is asked for by name. The map behind the heads is found as the module that is given their
outputs, and what the keys add must make up what that module gave: seen at run time, or refused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.errors import NotApplicable
from heedful.models.attention_access.access import model_lock
from heedful.models.attention_access.layer_hooks import removing_hooks
from heedful.models.attention_access.recorder import AttentionCall, active_recorder
from heedful.models.transformer.last_layer_replay import ReplayableSubject

RECONSTRUCTION_TOLERANCE = (
    1e-4  # how far what is put together again may lie from the model's own, as a share of it
)


@dataclass(frozen=True, eq=False)
class AttentionBlock:
    """An attention, the map behind its heads, and what that gave out."""

    call: AttentionCall
    output_projection: Callable[[Tensor], Tensor]
    output: Float[Tensor, "B Q D"]

    def part_sizes(self, batch: Batch, *, head: int | None = None) -> Float[Tensor, "B Q K"]:
        """‖Σ_h α_h f_h(x_k)‖ of each key for each query, of all heads or of one.

        The square of it is a quadratic form in the weights of the heads, so that no vector per
        pair of tokens is ever formed.
        """
        weights = self.call.weights
        added, bias = self.added()
        whole = torch.einsum("bhqk,bkhd->bqd", weights, added) + bias
        self.require_reconstruction(whole, batch)
        if head is not None:
            weights, added = weights[:, head : head + 1], added[:, :, head : head + 1]
        alike = torch.einsum("bkhd,bkgd->bkhg", added, added)
        return torch.einsum("bhqk,bkhg,bgqk->bqk", weights, alike, weights).clamp(min=0).sqrt()

    def added(self) -> tuple[Float[Tensor, "B K H D"], Float[Tensor, "D"]]:
        """f_h(x_k): the value of each key in each head behind the map, less the map's bias."""
        values = self.call.values
        if values is None:
            raise RuntimeError("A block was made without values.")
        _, heads, _, width = values.shape
        each = torch.eye(heads * width).to(values)  # what the map makes of each place on its own
        with torch.no_grad():
            made = self.output_projection(torch.cat([each, torch.zeros_like(each[:1])])[None])[0]
        matrix = (made[:-1] - made[-1]).reshape(heads, width, -1)
        return torch.einsum("bhkw,hwd->bkhd", values, matrix), made[-1]

    def require_reconstruction(
        self, whole: Float[Tensor, "B Q D"], batch: Batch, method: str = "attention_norm"
    ) -> None:
        same = whole.shape[1] == batch.ids.shape[1]
        gaps = (whole - self.output).abs().amax(-1)
        gap = float(gaps[batch.present].max() if same else gaps.max())
        if not gap <= RECONSTRUCTION_TOLERANCE * max(1.0, float(self.output.abs().max())):
            raise NotApplicable(
                f"{method} is refused: what the keys add does not make up the output of "
                f"{self.call.module} (difference {gap:.2g})."
            )


def find_attention_blocks(
    subject: ReplayableSubject,
    batch: Batch,
    asked: Callable[[AttentionCall], bool],
    *,
    embedded: Float[Tensor, "B T E"] | None = None,
    method: str = "attention_norm",
) -> list[AttentionBlock]:
    """The blocks of the attentions asked for, in their order in the pass.

    The pass starts from the vectors given, or from the words; `method` is who asks.
    """
    found: dict[int, AttentionBlock] = {}

    def seen(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        recorder = active_recorder.get()
        if recorder is None or not recorder.calls or not args or not isinstance(args[0], Tensor):
            return
        call, given = recorder.calls[-1], args[0]
        if call.order in found or call.values is None or not asked(call):
            return
        if (block := match_attention_block(call, module, given, output)) is not None:
            found[call.order] = block

    matrices = [one for one in subject.model.modules() if is_linear_map(one)]
    with (
        model_lock(subject.model),
        removing_hooks([one.register_forward_hook(seen) for one in matrices]),
        torch.no_grad(),
    ):
        _, recorder = subject.run(batch, embedded=embedded)
    orders = [call.order for call in recorder.calls if asked(call)]
    if missing := [order for order in orders if order not in found]:
        raise NotApplicable(
            f"{method} needs the vectors that heads mix and a linear map behind them; none is "
            f"seen in {subject.access.modules[missing[0]]}."
        )
    return [found[order] for order in orders]


def match_attention_block(
    call: AttentionCall, module: nn.Module, given: Tensor, output: Tensor
) -> AttentionBlock | None:
    """The block, if what the module was given is what the heads of the attention gave out."""
    if call.values is None:
        return None
    mixed = (call.weights @ call.values).transpose(1, 2).flatten(2)
    if given.numel() != mixed.numel() or not torch.allclose(given.reshape(mixed.shape), mixed):
        return None
    return AttentionBlock(call, module, output.reshape(*mixed.shape[:2], -1))


def is_linear_map(module: nn.Module) -> bool:
    """Whether a module is a linear map: it has one matrix, and looks nothing up."""
    weight = getattr(module, "weight", None)
    return isinstance(weight, Tensor) and weight.dim() == 2 and not isinstance(module, nn.Embedding)
