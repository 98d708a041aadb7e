"""Contributions of the parts of a vector: by proximity (ALTI) and by norm (GlobEnc).

The part of position q from token k is Σ_h α[h, q, k] · added[k, h], plus the residual of the
position where k = q. `added`, `residual` and the weights already include the layer norms: a norm
with a fixed scale is linear.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.numerics.tensor.distributions import normalise_weights


@dataclass(frozen=True, eq=False)
class VectorParts:
    """The parts of the vector at every position, never computed for all pairs of tokens at once."""

    weights: Float[Tensor, "B H Q K"]
    added: Float[Tensor, "B K H D"]
    residual: Float[Tensor, "B Q D"]
    bias: Float[Tensor, "B Q D"]

    def total(self) -> Float[Tensor, "B Q D"]:
        """The sum of all parts and the bias."""
        keys = self.weights.permute(0, 2, 3, 1).flatten(2)  # keys and heads flattened
        mixed = keys @ self.added.flatten(1, 2)
        return mixed + self.residual + self.bias

    def key_parts(self, size: int) -> Iterator[Float[Tensor, "B S Q D"]]:
        """The parts of every position, for `size` tokens at a time."""
        weights = self.weights.permute(0, 3, 2, 1).contiguous()
        for some in torch.split(torch.arange(weights.shape[1]), size):
            parts = weights[:, some] @ self.added[:, some]
            parts[:, some - some[0], some] += self.residual[:, some]
            yield parts

    def norms(self) -> Float[Tensor, "B Q K"]:
        """‖part‖₂ of each pair, as a quadratic form in the weights of the heads."""
        alike = torch.einsum("bkhd,bkgd->bkhg", self.added, self.added)
        square = torch.einsum("bhqk,bkhg,bgqk->bqk", self.weights, alike, self.weights)
        own = self.weights.diagonal(dim1=2, dim2=3)  # (B, H, Q)
        cross = torch.einsum("bhq,bqhd,bqd->bq", own, self.added, self.residual)
        square = square + torch.diag_embed(2 * cross + self.residual.square().sum(-1))
        return square.clamp(min=0).sqrt()

    def nearness(self, whole: Float[Tensor, "B Q D"], *, vectors: int) -> Float[Tensor, "B Q K"]:
        """max(0, ‖y‖₁ − ‖y − part‖₁): how much closer the part is to the whole y than 0 is.

        At most about `vectors` parts are computed at once.
        """
        size = max(1, vectors // whole[..., 0].numel())
        far = whole.abs().sum(-1, keepdim=True)
        left = [parts.sub_(whole[:, None]).abs_().sum(-1) for parts in self.key_parts(size)]
        nearer = (far - torch.cat(left, dim=1).transpose(1, 2)).clamp(min=0)
        # only the tokens that a position attends to contribute to it, and the position itself
        own = torch.eye(self.weights.shape[-1], dtype=torch.bool, device=self.weights.device)
        return nearer * ((self.weights != 0).any(1) | own)


def normalise_rows(contributions: Float[Tensor, "B Q K"]) -> Float[Tensor, "B Q K"]:
    """Rows that sum to 1; a position without contributions is its own.

    >>> normalise_rows(torch.tensor([[[1.0, 3.0], [0.0, 0.0]]]))
    tensor([[[0.2500, 0.7500],
             [0.0000, 1.0000]]])
    """
    own = torch.eye(contributions.shape[-1]).to(contributions)
    defined = contributions.sum(-1, keepdim=True) > 0
    return torch.where(defined, normalise_weights(contributions), own)
