"""Rows of attention maps: take those under audit out, put others in, read them as one."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow
from torch import Tensor


def take_rows(
    weights: Float[Tensor, "B H Q K"],
    present: Bool[Tensor, "B K"],
    position: Int[Tensor, "B"] | None,
    *,
    head: int | None = None,
) -> Float[Tensor, "B R K"]:
    """The rows of one position's query (of each head, or of one), or of every query in the text.

    >>> weights = torch.tensor([[[[1.0, 0.0], [0.3, 0.7]]]])
    >>> take_rows(weights, torch.ones(1, 2, dtype=torch.bool), torch.tensor([1]))
    tensor([[[0.3000, 0.7000]]])
    """
    chosen = weights if head is None else weights[:, head : head + 1]
    if position is not None:
        return chosen[
            torch.arange(len(chosen), device=chosen.device), :, position.to(chosen.device)
        ]
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
    """The map with the given rows where `take_rows` would find its own; all else as it was."""
    count = weights.shape[1] if head is None else 1
    if position is not None:
        here = torch.zeros(len(weights), weights.shape[2], dtype=torch.bool, device=weights.device)
        here[torch.arange(len(weights)), position] = True
        spread = rows[:, :, None, :]
    else:
        here = present.to(weights.device)
        spread = rows.reshape(len(rows), count, *weights.shape[2:])
    chosen = here[:, None, :, None]
    if head is not None:
        which = torch.arange(weights.shape[1], device=weights.device) == head
        chosen = chosen & which[None, :, None, None]
    return torch.where(chosen, spread, weights)


def read_rows(rows: Float[Tensor, "*K R T"], mask: Bool[Tensor, "*#K T"]) -> Float[Tensor, "*K T"]:
    """What rows say together: their mean over the words of the text, as a distribution of its own.

    Weight on special tokens and on sinks is left out. A text whose words get none has zeros.

    >>> rows = torch.tensor([[0.5, 0.2, 0.3], [0.5, 0.4, 0.1]])
    >>> read_rows(rows, torch.tensor([False, True, True]))
    tensor([0.0000, 0.6000, 0.4000])
    """
    words = rows.sum(-2) * mask
    total = words.sum(-1, keepdim=True)
    return words / torch.where(total > 0, total, torch.ones_like(total))


CAPACITY_SCALE = 2**30  # scipy's flow is of whole numbers: a capacity of 1 is this many


def add_residual(
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


def product_beyond_identity(
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
    return multiply_layers(
        [x / total for x, total in zip(whole, sums, strict=True)]
    ) - multiply_layers(alone)


def multiply_layers(layers: Sequence[Float[Tensor, "B T T"]]) -> Float[Tensor, "B T T"]:
    """The last layer times … times the first."""
    rolled = layers[0]
    for layer in layers[1:]:
        rolled = layer @ rolled
    return rolled


def cross_rollout(
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


def accumulate_relevance(layers: Sequence[Float[Tensor, "B T T"]]) -> Float[Tensor, "B T T"]:
    """Rule 6: R ← R + Ā R from R = I, which is the product of I + Ā over the layers."""
    found = torch.eye(layers[0].shape[-1], dtype=layers[0].dtype, device=layers[0].device)
    found = found.expand_as(layers[0])
    for layer in layers:
        found = found + layer @ found
    return found


def accumulate_cross_relevance(
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
    scale = CAPACITY_SCALE / max(most, 1.0)
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
