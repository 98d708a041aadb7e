"""Attention through all layers: rollout and flow (Abnar & Zuidema, 2020), and relevance rules
(Chefer et al., ICCV 2021).

A row is a position, a column an input token. Layers are given from the first to the last, and the
product runs from the last to the first: only so does row p say what lies behind position p.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow
from torch import Tensor

WHOLE = 2**30  # scipy's flow is of whole numbers: a capacity of 1 is this many


def with_residual(
    weights: Float[Tensor, "B T T"], *, residual: float, normalise: bool
) -> Float[Tensor, "B T T"]:
    """(1 − residual) · weights + residual · I, the rows divided by their sums where asked.

    >>> with_residual(torch.tensor([[[0.2, 0.8], [0.6, 0.4]]]), residual=0.5, normalise=False)
    tensor([[[0.6000, 0.4000],
             [0.3000, 0.7000]]])
    """
    one = torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)
    mixed = (1 - residual) * weights + residual * one
    return mixed / _sums(mixed) if normalise else mixed


def beyond_itself(
    layers: Sequence[Float[Tensor, "B T T"]], *, normalise: bool
) -> Float[Tensor, "B T T"]:
    """The product of I + Ā over the layers, less what came by the identities alone.

    Rows of I + Ā are divided by their sums where asked.

    >>> once = torch.tensor([[[0.0, 1.0], [0.0, 0.0]]])
    >>> beyond_itself([once, once], normalise=True)
    tensor([[[0.0000, 0.7500],
             [0.0000, 0.0000]]])
    """
    one = torch.eye(layers[0].shape[-1], dtype=layers[0].dtype, device=layers[0].device)
    whole = [layer + one for layer in layers]
    sums = [_sums(layer) if normalise else torch.ones_like(layer[..., :1]) for layer in whole]
    alone = [one / total for total in sums]
    return product([x / total for x, total in zip(whole, sums, strict=True)]) - product(alone)


def product(layers: Sequence[Float[Tensor, "B T T"]]) -> Float[Tensor, "B T T"]:
    """The last layer times … times the first."""
    rolled = layers[0]
    for layer in layers[1:]:
        rolled = layer @ rolled
    return rolled


def rolled_across(
    text: Float[Tensor, "B K K"],
    within: Sequence[Float[Tensor, "B Q Q"]],
    across: Sequence[Float[Tensor, "B Q K"]],
    *,
    residual: float,
) -> Float[Tensor, "B Q K"]:
    """An encoder's rollout carried on through the layers of its decoder.

    `within` has the residual in it; what a row lacks to 1 lies behind it in the decoder's own
    tokens.
    """
    rolled = torch.zeros_like(across[0])
    for own, cross in zip(within, across, strict=True):
        rolled = residual * (own @ rolled) + (1 - residual) * (cross @ text)
    return rolled


def relevance(layers: Sequence[Float[Tensor, "B T T"]]) -> Float[Tensor, "B T T"]:
    """Rule 6: R ← R + Ā R from R = I, which is the product of I + Ā over the layers."""
    found = torch.eye(layers[0].shape[-1], dtype=layers[0].dtype, device=layers[0].device)
    found = found.expand_as(layers[0])
    for layer in layers:
        found = found + layer @ found
    return found


def relevance_across(
    text: Float[Tensor, "B K K"],
    within: Sequence[Float[Tensor, "B Q Q"]],
    across: Sequence[Float[Tensor, "B Q K"]],
) -> Float[Tensor, "B Q K"]:
    """Rules 6, 7 and 10: relevance of the encoder's tokens to the decoder's positions."""
    own = torch.eye(within[0].shape[-1], dtype=text.dtype, device=text.device)
    own = own.expand_as(within[0])
    found, sure = torch.zeros_like(across[0]), _self_normalised(text)
    for inside, cross in zip(within, across, strict=True):
        own, found = own + inside @ own, found + inside @ found
        found = found + _self_normalised(own).transpose(-1, -2) @ cross @ sure
    return found


def max_flow(
    edges: Sequence[tuple[int, int, NDArray[np.float64]]], source: int, sinks: Sequence[int]
) -> NDArray[np.float64]:
    """The most that can flow from a node to each of the sinks, each taken alone.

    `edges` are blocks: node a + i leads to node b + j with capacity matrix[i, j].
    """
    heads, tails, capacities = [], [], []
    for a, b, matrix in edges:
        rows, columns = np.nonzero(matrix)
        heads.append(a + rows)
        tails.append(b + columns)
        capacities.append(matrix[rows, columns])
    # what leaves a node bounds the flow: scaled by it no sum leaves the range of whole numbers
    most = max(float(matrix.sum(-1).max()) for _, _, matrix in edges)
    scale = WHOLE / max(most, 1.0)
    whole = np.floor(np.concatenate(capacities) * scale).astype(np.int32)
    places = (np.concatenate(heads), np.concatenate(tails))
    size = int(max(one.max() for one in places)) + 1
    graph = coo_array((whole, places), shape=(size, size)).tocsr()
    graph.indices, graph.indptr = graph.indices.astype(np.int32), graph.indptr.astype(np.int32)
    flows = [maximum_flow(graph, source, sink).flow_value for sink in sinks]
    return np.array(flows) / scale


def _self_normalised(relevance: Float[Tensor, "B T T"]) -> Float[Tensor, "B T T"]:
    """Rules 8 and 9: what is beyond the identity, with rows that sum to 1, and the identity."""
    one = torch.eye(relevance.shape[-1], dtype=relevance.dtype, device=relevance.device)
    beyond = relevance - one
    return beyond / _sums(beyond) + one


def _sums(matrix: Float[Tensor, "B Q K"]) -> Float[Tensor, "B Q 1"]:
    """The sums of rows; 1 where a row is empty."""
    total = matrix.sum(-1, keepdim=True)
    return torch.where(total > 0, total, torch.ones_like(total))
