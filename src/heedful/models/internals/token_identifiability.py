"""Token identifiability and hidden token attribution (Brunner et al., 2020)."""

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor, autograd

from heedful.core.batch import Batch
from heedful.models.internals.effective_attention import HasAttentionCalls
from heedful.models.internals.hidden_states import StateRecorder, find_attention_layers

TIE_TOLERANCE = 1e-9  # cosines this close are equal: a repeated word


def record_hidden_states(
    subject: HasAttentionCalls, batch: Batch, embedded: Float[Tensor, "B T E"], *, method: str
) -> list[Float[Tensor, "B T D"]]:
    """The input of each layer and the output of the last, in a differentiable pass."""
    recorder = StateRecorder(batch, method, tokens_first=subject.access.tokens_first)
    with (
        recorder.recording(find_attention_layers(subject, method, turned=True)),
        torch.enable_grad(),
    ):
        subject.run(batch, embedded=embedded, keep=False)
    return [*recorder.layer_inputs, recorder.layer_outputs[-1]]


def find_identifiable_tokens(
    states: Float[Tensor, "B T D"],
    vectors: Float[Tensor, "B T D"],
    present: Bool[Tensor, "B T"],
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
