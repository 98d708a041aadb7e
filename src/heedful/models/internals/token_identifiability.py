"""The states of every layer, and how much of each input is in them (Brunner et al., 2020)."""

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor, autograd

from heedful.core.batch import Batch
from heedful.models.attention_access.access import model_lock
from heedful.models.internals.effective_attention import HasAttentionCalls
from heedful.models.internals.hidden_states import StateRecorder, find_attention_layers

TIE_TOLERANCE = 1e-9  # cosines this near are the same: a word that is written twice


def record_hidden_states(
    subject: HasAttentionCalls, batch: Batch, embedded: Float[Tensor, "B T E"], *, method: str
) -> list[Float[Tensor, "B T D"]]:
    """What enters each layer, and what leaves the last, by one pass that autograd can follow."""
    watch = StateRecorder(batch, method, tokens_first=subject.access.tokens_first)
    layers = find_attention_layers(subject, method, turned=True)
    with model_lock(subject.model), watch.on(layers), torch.enable_grad():
        subject.run(batch, embedded=embedded, keep=False)
    return [*watch.entered, watch.left[-1]]


def find_identifiable_tokens(
    states: Float[Tensor, "B T D"],
    vectors: Float[Tensor, "B T D"],
    present: Bool[Tensor, "B T"],
) -> Bool[Tensor, "B T"]:
    """Whether a state points more to its own token's vector than to any other's of its text.

    Vectors that are equal are one word; a state of zeros points nowhere.
    """
    near = pairwise_cosine(states, vectors).masked_fill(~present[:, None], -torch.inf)
    own = near.diagonal(dim1=1, dim2=2)
    return (own >= near.amax(-1) - TIE_TOLERANCE) & (states != 0).any(-1)


def count_equal_tokens(
    vectors: Float[Tensor, "B T D"], present: Bool[Tensor, "B T"]
) -> Float64[Tensor, "B T"]:
    """How many of a text's tokens point where this one does, itself among them."""
    return (
        (pairwise_cosine(vectors, vectors) >= 1 - TIE_TOLERANCE)
        .logical_and(present[:, None])
        .double()
        .sum(-1)
    )


def pairwise_cosine(
    one: Float[Tensor, "B T D"], other: Float[Tensor, "B S D"]
) -> Float64[Tensor, "B T S"]:
    """The cosine of every two of them; 0 with one of zeros."""
    there, here = (torch.nn.functional.normalize(part.double(), dim=-1) for part in (one, other))
    return there @ here.mT


def hidden_token_attribution(
    states: Float[Tensor, "B T D"],
    leaf: Float[Tensor, "B T E"],
    *,
    tokens: Int[Tensor, "B J"],
    directions: Float64[Tensor, "B P D"],
) -> Float64[Tensor, "B J T"]:
    """c_ij = ‖∂e_j/∂x_i‖ of all tokens i to the states of some tokens j; each j's sum to 1.

    By orthonormal directions v drawn at random, ‖∂e/∂x‖² = D/P Σ ‖∂⟨v, e⟩/∂x‖² on the average, and
    exactly where there are as many directions as dimensions. A backward pass for each j and v.
    """
    texts = torch.arange(len(states), device=states.device)
    found = torch.zeros(*tokens.shape, leaf.shape[1], dtype=torch.float64)
    for place in range(tokens.shape[1]):
        chosen = texts, tokens[:, place].to(states.device)
        for direction in directions.unbind(1):
            with torch.enable_grad():
                value = (states[chosen] * direction.to(states)).sum()
                (slope,) = autograd.grad(value, leaf, retain_graph=True)
            found[:, place] += slope.double().square().sum(-1).cpu()
    sizes = found.sqrt()
    total = sizes.sum(-1, keepdim=True)
    return sizes / total.masked_fill(total == 0, torch.nan)
