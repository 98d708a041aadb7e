"""Effective attention, token identifiability and hidden token attribution (Brunner et al., 2020).

Effective attention is the part of a head's attention that can affect its output. Key k of head h
carries T_k = (x_k W_V + b) W_O,h, its projected value. The audited rows are split by the left null
space of T, over the keys that each row may attend to. The effective part must reproduce the output
of the head; this is checked at run time.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor, autograd

from heedful.core.batch import Batch
from heedful.core.errors import NotApplicable
from heedful.models.attention_access.access import model_lock
from heedful.models.batch_context import BatchContext
from heedful.models.internals.attention_blocks import AttentionBlock, find_attention_blocks
from heedful.models.internals.closeness import require_close
from heedful.models.internals.hidden_states import StateRecorder, find_attention_layers
from heedful.models.protocols import HasAttentionCalls
from heedful.numerics.tensor.null_space import norm_share, split_null_space

METHOD = "effective_attention"
HEAD_DIFFERS = f"{METHOD} is refused: without the part that should have no effect a head differs"
# singular values up to this share of the largest count as 0
DOUBLE_RANK_TOLERANCE, SINGLE_RANK_TOLERANCE = 1e-10, 1e-6
TIE_TOLERANCE = 1e-9  # cosines this close are equal: a repeated word


@dataclass(frozen=True, eq=False)
class LayerEffectiveAttention:
    """A layer's attention at the audited positions; other rows are zero.

    `unseen` and `free` are shares of the squared norm of a head's row, averaged over positions;
    `keys` is the number of keys a position may attend to, per dimension of a head.
    """

    effective: Float64[Tensor, "B H Q K"]
    unseen: Float64[Tensor, "B H"]
    free: Float64[Tensor, "B H"]
    keys: Float64[Tensor, "B"]


def compute_attention_blocks(context: BatchContext) -> list[AttentionBlock]:
    """The attention blocks of all layers."""
    subject, batch, vectors = context.subject, context.batch, context.embedded.detach()
    if not isinstance(subject, HasAttentionCalls):
        raise NotApplicable(
            f"{METHOD} needs the values of the heads, which this model does not expose."
        )
    return find_attention_blocks(
        subject.full_precision(),
        batch,
        lambda call: subject.is_audited(call, batch),
        embedded=vectors,
        method=METHOD,
    )


def compute_effective_attention(context: BatchContext, layer: int) -> LayerEffectiveAttention:
    """The effective attention of one layer."""
    block, batch = context.cached(compute_attention_blocks)[layer], context.batch
    subject = context.subject
    where = subject.position(batch) if isinstance(subject, HasAttentionCalls) else None
    weights, values = block.call.weights.detach().double(), block.values.detach().double()
    matrix, bias = block.output_map(torch.float64)
    whole = torch.einsum("bhqk,bhkd,hde->bqe", weights, values, matrix) + bias
    block.require_reconstruction(whole.to(block.output), batch, METHOD)
    reduced = torch.linalg.qr(matrix.mT).R.mT  # equal inner products, fewer dimensions
    tolerance = rank_tolerance(block.output)
    effective = torch.zeros_like(weights)
    shares: list[Tensor] = []
    for text in range(len(batch)):
        groups = []
        for queries, keys in _group_queries_by_keys(weights[text], batch, text, where):
            rows = weights[text][:, queries][:, :, keys]
            own = values[text][:, keys]
            parts = split_null_space(rows, own @ reduced, tolerance=tolerance)
            carried = own @ matrix
            made, whole = parts.effective @ carried, rows @ carried  # A_eff T = A T
            require_close(made, whole, HEAD_DIFFERS, tolerance=100 * tolerance, scale=carried)
            effective[text, :, queries[:, None], keys] = parts.effective.to(effective)
            per_key = torch.full_like(rows[..., 0], len(keys) / values.shape[-1])
            both = norm_share(parts.unseen, rows), norm_share(parts.free, rows)
            groups.append(torch.stack([*both, per_key]))
        shares.append(torch.cat(groups, dim=-1).mean(-1))
    unseen, free, per_key = torch.stack(shares, dim=1)
    return LayerEffectiveAttention(effective, unseen, free, per_key[:, 0])


def rank_tolerance(computed: Tensor) -> float:
    """The relative rank tolerance for tensors of this precision."""
    return DOUBLE_RANK_TOLERANCE if computed.dtype == torch.float64 else SINGLE_RANK_TOLERANCE


def _group_queries_by_keys(
    weights: Float64[Tensor, "H Q K"], batch: Batch, text: int, where: Int[Tensor, "B"] | None
) -> list[tuple[Int[Tensor, "q"], Int[Tensor, "k"]]]:
    """Groups of audited positions that may attend to the same keys, with these keys."""
    if where is not None:
        queries = where[text : text + 1].to(weights.device)
    else:
        queries = batch.present[text].nonzero().squeeze(-1).to(weights.device)
    open_to: Bool[Tensor, "q K"] = (weights[:, queries] > 0).any(0)
    open_to = open_to & batch.present[text].to(weights.device)
    groups, which = torch.unique(open_to, dim=0, return_inverse=True)
    return [(queries[which == n], keys.nonzero().squeeze(-1)) for n, keys in enumerate(groups)]


def record_hidden_states(
    subject: HasAttentionCalls, batch: Batch, embedded: Float[Tensor, "B T E"], *, method: str
) -> list[Float[Tensor, "B T D"]]:
    """The input of each layer and the output of the last, in a differentiable pass."""
    recorder = StateRecorder(batch, method, tokens_first=subject.access.tokens_first)
    layers = find_attention_layers(subject, method, turned=True)
    with model_lock(subject.model), recorder.recording(layers), torch.enable_grad():
        subject.run(batch, embedded=embedded, keep=False)
    return [*recorder.layer_inputs, recorder.layer_outputs[-1]]


def find_identifiable_tokens(
    states: Float[Tensor, "B T D"], vectors: Float[Tensor, "B T D"], present: Bool[Tensor, "B T"]
) -> Bool[Tensor, "B T"]:
    """Whether a state is closest, by cosine, to its own token's vector among those of its text.

    Equal vectors are one word; a zero state is never identifiable.
    """
    cosine = pairwise_cosine(states, vectors).masked_fill(~present[:, None], -torch.inf)
    own = cosine.diagonal(dim1=1, dim2=2)
    return (own >= cosine.amax(-1) - TIE_TOLERANCE) & (states != 0).any(-1)


def count_equal_tokens(
    vectors: Float[Tensor, "B T D"], present: Bool[Tensor, "B T"]
) -> Float64[Tensor, "B T"]:
    """How many of a text's tokens have the direction of this one, itself included."""
    equal = pairwise_cosine(vectors, vectors) >= 1 - TIE_TOLERANCE
    return equal.logical_and(present[:, None]).double().sum(-1)


def pairwise_cosine(
    one: Float[Tensor, "B T D"], other: Float[Tensor, "B S D"]
) -> Float64[Tensor, "B T S"]:
    """The cosine of every pair of vectors; 0 for zero vectors."""
    left, right = (torch.nn.functional.normalize(part.double(), dim=-1) for part in (one, other))
    return left @ right.mT


def hidden_token_attribution(
    states: Float[Tensor, "B T D"],
    leaf: Float[Tensor, "B T E"],
    *,
    tokens: Int[Tensor, "B J"],
    directions: Float64[Tensor, "B P D"],
) -> Float64[Tensor, "B J T"]:
    """c_ij = ‖∂e_j/∂x_i‖ of all tokens i for the states of some tokens j, normalised per j.

    With P random orthonormal directions v, ‖∂e/∂x‖² = D/P Σ ‖∂⟨v, e⟩/∂x‖² in expectation, and
    exactly if there are as many directions as dimensions. One backward pass per j and v.
    """
    texts = torch.arange(len(states), device=states.device)
    squares = torch.zeros(*tokens.shape, leaf.shape[1], dtype=torch.float64)
    for place in range(tokens.shape[1]):
        chosen = texts, tokens[:, place].to(states.device)
        for direction in directions.unbind(1):
            with torch.enable_grad():
                value = (states[chosen] * direction.to(states)).sum()
                (gradient,) = autograd.grad(value, leaf, retain_graph=True)
            squares[:, place] += gradient.double().square().sum(-1).cpu()
    norms = squares.sqrt()
    total = norms.sum(-1, keepdim=True)
    return norms / total.masked_fill(total == 0, torch.nan)
