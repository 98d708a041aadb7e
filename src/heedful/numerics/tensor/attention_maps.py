"""Attention maps: take, replace and average rows, and combine layers by rollout, rules or flow."""

from collections.abc import Sequence
from functools import reduce

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow
from torch import Tensor

from heedful.numerics.tensor.distributions import normalise_weights, positive_sums

CAPACITY_SCALE = 2**30  # scipy's flow takes integers: this is a capacity of 1


def take_rows(
    weights: Float[Tensor, "B H Q K"],
    present: Bool[Tensor, "B K"],
    position: Int[Tensor, "B"] | None,
    *,
    head: int | None = None,
) -> Float[Tensor, "B R K"]:
    """The rows of the query at one position (all heads, or one), or of all queries in the text.

    >>> weights = torch.tensor([[[[1.0, 0.0], [0.3, 0.7]]]])
    >>> take_rows(weights, torch.ones(1, 2, dtype=torch.bool), torch.tensor([1]))
    tensor([[[0.3000, 0.7000]]])
    """
    chosen = weights if head is None else weights[:, head : head + 1]
    if position is not None:
        texts = torch.arange(len(chosen), device=chosen.device)
        return chosen[texts, :, position.to(chosen.device)]
    inside = present.to(chosen.device)[:, None, :, None]
    return (chosen * inside).flatten(1, 2)


def place_rows(
    weights: Float[Tensor, "B H Q K"],
    rows: Float[Tensor, "B R K"],
    present: Bool[Tensor, "B K"],
    position: Int[Tensor, "B"] | None,
    *,
    head: int | None = None,
) -> Float[Tensor, "B H Q K"]:
    """The map with the given rows at the places that `take_rows` reads; all else is unchanged."""
    if position is not None:
        queries = torch.arange(weights.shape[2], device=weights.device)
        here, spread = queries == position.to(weights.device)[:, None], rows[:, :, None, :]
    else:
        here = present.to(weights.device)
        spread = rows.reshape(len(rows), -1, *weights.shape[2:])
    chosen = here[:, None, :, None]
    if head is not None:
        which = torch.arange(weights.shape[1], device=weights.device) == head
        chosen = chosen & which[None, :, None, None]
    return torch.where(chosen, spread, weights)


def read_rows(rows: Float[Tensor, "*K R T"], mask: Bool[Tensor, "*#K T"]) -> Float[Tensor, "*K T"]:
    """The sum of the rows over the words of the text, normalised to a distribution.

    Weight on special tokens and on sinks is left out. A text whose words get no weight has zeros.

    >>> rows = torch.tensor([[0.5, 0.2, 0.3], [0.5, 0.4, 0.1]])
    >>> read_rows(rows, torch.tensor([False, True, True]))
    tensor([0.0000, 0.6000, 0.4000])
    """
    return normalise_weights(rows.sum(-2) * mask)


def add_residual(
    weights: Float[Tensor, "B T T"], *, residual: float, normalise: bool
) -> Float[Tensor, "B T T"]:
    """(1 − residual) · weights + residual · I, with rows divided by their sums if `normalise`.

    >>> add_residual(torch.tensor([[[0.2, 0.8], [0.6, 0.4]]]), residual=0.5, normalise=False)
    tensor([[[0.6000, 0.4000],
             [0.3000, 0.7000]]])
    """
    mixed = (1 - residual) * weights + residual * _identity(weights)
    return normalise_weights(mixed) if normalise else mixed


def product_beyond_identity(
    layers: Sequence[Float[Tensor, "B T T"]], *, normalise: bool
) -> Float[Tensor, "B T T"]:
    """The product of I + Ā over the layers, minus the product of the identity parts.

    Rows of I + Ā are divided by their sums if `normalise`.

    >>> once = torch.tensor([[[0.0, 1.0], [0.0, 0.0]]])
    >>> product_beyond_identity([once, once], normalise=True)
    tensor([[[0.0000, 0.7500],
             [0.0000, 0.0000]]])
    """
    identity = _identity(layers[0])
    whole = [layer + identity for layer in layers]
    sums = [positive_sums(x) if normalise else torch.ones_like(x[..., :1]) for x in whole]
    product = multiply_layers([x / total for x, total in zip(whole, sums, strict=True)])
    return product - multiply_layers([identity / total for total in sums])


def multiply_layers(layers: Sequence[Float[Tensor, "B T T"]]) -> Float[Tensor, "B T T"]:
    """The last layer times … times the first."""
    return reduce(lambda rolled, layer: layer @ rolled, layers)


def cross_rollout(
    text: Float[Tensor, "B K K"],
    within: Sequence[Float[Tensor, "B Q Q"]],
    across: Sequence[Float[Tensor, "B Q K"]],
    *,
    residual: float,
) -> Float[Tensor, "B Q K"]:
    """The rollout of an encoder, continued through the layers of its decoder.

    `within` includes the residual; the mass that a row lacks to 1 is on tokens of the decoder.
    """
    rolled = torch.zeros_like(across[0])
    for own, cross in zip(within, across, strict=True):
        rolled = residual * (own @ rolled) + (1 - residual) * (cross @ text)
    return rolled


def accumulate_relevance(layers: Sequence[Float[Tensor, "B T T"]]) -> Float[Tensor, "B T T"]:
    """Rule 6: R ← R + Ā R starting from R = I, which is the product of I + Ā over the layers."""
    relevance = _identity(layers[0]).expand_as(layers[0])
    for layer in layers:
        relevance = relevance + layer @ relevance
    return relevance


def accumulate_cross_relevance(
    text: Float[Tensor, "B K K"],
    within: Sequence[Float[Tensor, "B Q Q"]],
    across: Sequence[Float[Tensor, "B Q K"]],
) -> Float[Tensor, "B Q K"]:
    """Rules 6, 7 and 10: relevance of the encoder's tokens to the decoder's positions."""
    own = _identity(within[0]).to(text).expand_as(within[0])
    relevance, encoder = torch.zeros_like(across[0]), _self_normalised(text)
    for inside, cross in zip(within, across, strict=True):
        own, relevance = own + inside @ own, relevance + inside @ relevance
        relevance = relevance + _self_normalised(own).transpose(-1, -2) @ cross @ encoder
    return relevance


def max_flow(
    edges: Sequence[tuple[int, int, NDArray[np.float64]]], source: int, sinks: Sequence[int]
) -> NDArray[np.float64]:
    """The maximum flow from a node to each of the sinks, one at a time.

    `edges` are blocks (a, b, matrix): the edge from node a + i to node b + j has capacity
    matrix[i, j].
    """
    heads, tails, capacities = [], [], []
    for a, b, matrix in edges:
        rows, columns = np.nonzero(matrix)
        heads.append(a + rows)
        tails.append(b + columns)
        capacities.append(matrix[rows, columns])
    # the outflow of a node bounds the flow: scaled by it, no sum overflows
    most = max(float(matrix.sum(-1).max()) for _, _, matrix in edges)
    scale = CAPACITY_SCALE / max(most, 1.0)
    scaled = np.floor(np.concatenate(capacities) * scale).astype(np.int32)
    places = (np.concatenate(heads), np.concatenate(tails))
    size = int(max(nodes.max() for nodes in places)) + 1
    graph = coo_array((scaled, places), shape=(size, size)).tocsr()
    graph.indices, graph.indptr = graph.indices.astype(np.int32), graph.indptr.astype(np.int32)
    flows = [maximum_flow(graph, source, sink).flow_value for sink in sinks]
    return np.array(flows) / scale


def _self_normalised(relevance: Float[Tensor, "B T T"]) -> Float[Tensor, "B T T"]:
    """Rules 8 and 9: the part beyond the identity, with rows normalised, plus the identity."""
    identity = _identity(relevance)
    return normalise_weights(relevance - identity) + identity


def _identity(like: Float[Tensor, "B T T"]) -> Float[Tensor, "T T"]:
    return torch.eye(like.shape[-1], dtype=like.dtype, device=like.device)
