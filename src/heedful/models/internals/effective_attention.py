"""What of a head's attention can matter behind it, layer by layer (Brunner et al., 2020).

Key k of head h carries T_k = (x_k W_V + b) W_O,h: its value behind the map that follows the heads.
The rows under audit are taken apart by the left null space of T, over the keys that each of them
may see. That the parts without it give the head's very output is seen at run time, or refused.
"""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from heedful.core.batch import Batch
from heedful.core.errors import NotApplicable
from heedful.models.attention_access.recorder import AttentionCall
from heedful.models.batch_context import BatchContext
from heedful.models.internals.attention_blocks import AttentionBlock, find_attention_blocks
from heedful.models.transformer.last_layer_replay import ReplayableSubject
from heedful.numerics.tensor.null_space import NullSpaceSplit, norm_share, split_null_space

METHOD = "effective_attention"
DOUBLE_RANK_TOLERANCE, SINGLE_RANK_TOLERANCE = (
    1e-10,
    1e-6,
)  # share of the largest singular value up to which one counts as none


@runtime_checkable
class HasAttentionCalls(ReplayableSubject, Protocol):
    """A subject whose attentions can be heard one by one."""

    def audited(self, call: AttentionCall, batch: Batch) -> bool: ...

    def full_precision(self) -> Any: ...


@dataclass(frozen=True, eq=False)
class LayerEffectiveAttention:
    """A layer's attention at the positions that are read; other rows are zero.

    Shares are of the squared length of a head's row, the mean over the positions read; `keys` are
    those that a position may see, for each dimension of a head.
    """

    effective: Float64[Tensor, "B H Q K"]
    unseen: Float64[Tensor, "B H"]
    free: Float64[Tensor, "B H"]
    keys: Float64[Tensor, "B"]


@dataclass(frozen=True)
class AttentionBlocksComputation:
    """The attention blocks of every layer over the text, with what each key carries."""

    def __call__(self, context: BatchContext) -> list[AttentionBlock]:
        subject, batch = context.subject, context.batch
        if not isinstance(subject, HasAttentionCalls):
            raise NotApplicable(f"{METHOD} needs the values that heads mix; they are not shown.")
        return find_attention_blocks(
            subject.full_precision(),
            batch,
            lambda call: subject.audited(call, batch),
            embedded=context.embedded.detach(),
            method=METHOD,
        )


@dataclass(frozen=True)
class EffectiveAttentionComputation:
    """The attention of one layer, taken apart."""

    layer: int

    def __call__(self, context: BatchContext) -> LayerEffectiveAttention:
        block, batch, subject = (
            context.cached(AttentionBlocksComputation())[self.layer],
            context.batch,
            context.subject,
        )
        where = subject.position(batch) if isinstance(subject, HasAttentionCalls) else None
        weights, values, matrix = _values_and_output_map(block, batch)
        reduced = torch.linalg.qr(matrix.mT).R.mT  # the same products of rows, in fewer dimensions
        tolerance = rank_tolerance(block.output)
        found = torch.zeros_like(weights)
        shares: list[Tensor] = []
        for text in range(len(batch)):
            apart = []
            for queries, keys in _group_queries_by_keys(weights[text], batch, text, where):
                rows = weights[text][:, queries][:, :, keys]
                mine = values[text][:, keys]
                parts = split_null_space(rows, mine @ reduced, tolerance=tolerance)
                _require_same_output(parts, rows, mine @ matrix, tolerance=tolerance)
                found[text, :, queries[:, None], keys] = parts.effective.to(found)
                per_key = torch.full_like(rows[..., 0], len(keys) / values.shape[-1])
                apart.append(
                    torch.stack(
                        [norm_share(parts.unseen, rows), norm_share(parts.free, rows), per_key]
                    )
                )
            shares.append(torch.cat(apart, dim=-1).mean(-1))
        unseen, free, per_key = torch.stack(shares, dim=1)
        return LayerEffectiveAttention(found, unseen, free, per_key[:, 0])


def rank_tolerance(computed: Tensor) -> float:
    """How small a singular value may be, by the precision of what it was computed from."""
    return DOUBLE_RANK_TOLERANCE if computed.dtype == torch.float64 else SINGLE_RANK_TOLERANCE


def _values_and_output_map(
    block: AttentionBlock, batch: Batch
) -> tuple[Tensor, Tensor, Float64[Tensor, "H d D"]]:
    """Weights, values and what the map behind the heads makes of each head's, in float64."""
    output_projection: Any = block.output_projection
    values = block.call.values
    if values is None:
        raise RuntimeError("A block was made without values.")
    heads, width = values.shape[1], values.shape[3]
    with torch.no_grad():
        each = torch.eye(heads * width).to(output_projection.weight)
        bias = output_projection(torch.zeros_like(each[None, :1]))[0, 0].double()
        matrix = output_projection(each[None])[0].double() - bias
    matrix, weights = matrix.unflatten(0, (heads, width)), block.call.weights.detach().double()
    values = values.detach().double()
    whole = torch.einsum("bhqk,bhkd,hde->bqe", weights, values, matrix) + bias
    block.require_reconstruction(whole.to(block.output), batch, METHOD)
    return weights, values, matrix


def _group_queries_by_keys(
    weights: Float64[Tensor, "H Q K"], batch: Batch, text: int, where: Int[Tensor, "B"] | None
) -> list[tuple[Int[Tensor, "q"], Int[Tensor, "k"]]]:
    """The positions that are read, those together that may see the same keys, and these keys."""
    if where is not None:
        queries = where[text : text + 1].to(weights.device)
    else:
        queries = batch.present[text].nonzero().squeeze(-1).to(weights.device)
    open_to: Bool[Tensor, "q K"] = (weights[:, queries] > 0).any(0)
    open_to = open_to & batch.present[text].to(weights.device)
    kinds, which = torch.unique(open_to, dim=0, return_inverse=True)
    return [
        (queries[which == number], kind.nonzero().squeeze(-1)) for number, kind in enumerate(kinds)
    ]


def _require_same_output(
    parts: NullSpaceSplit,
    rows: Float64[Tensor, "H q k"],
    carried: Float64[Tensor, "H k D"],
    *,
    tolerance: float,
) -> None:
    """A_eff T = A T, or nothing is said of what has no effect."""
    own: Float[Tensor, "H q D"] = rows @ carried
    gap = float((parts.effective @ carried - own).abs().max())
    if not gap <= 100 * tolerance * max(1.0, float(carried.abs().max())):
        raise NotApplicable(
            f"{METHOD} is refused: without the part that should have no effect a head gives out "
            f"something else (difference {gap:.2g})."
        )
