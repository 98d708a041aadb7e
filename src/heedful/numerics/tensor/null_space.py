"""The part of attention that affects the output of a head (Brunner et al., 2020).

A head maps a row a of weights to a T, where row k of T is the value carried by key k. The part of a
in the left null space of T adds nothing to this output.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float64
from torch import Tensor


class NullSpaceSplit(NamedTuple):
    """A split of rows: `effective` affects the output of T, `unseen` does not.

    `free` is the part of `unseen` that can be removed without changing the sum of the row, so that
    it stays a distribution: the part in the null space of [T, 1].
    """

    effective: Float64[Tensor, "*H Q K"]
    unseen: Float64[Tensor, "*H Q K"]
    free: Float64[Tensor, "*H Q K"]


def split_null_space(
    rows: Float64[Tensor, "*H Q K"], carried: Float64[Tensor, "*H K D"], *, tolerance: float
) -> NullSpaceSplit:
    """a = a U Uᵀ + rest, where the columns of U are an orthonormal basis of those of T.

    U Uᵀ = 1 − N Nᵀ for any basis N of the left null space. Singular values up to `tolerance` of the
    largest count as 0.

    >>> row, same = torch.tensor([[0.75, 0.25]]).double(), torch.ones(2, 1).double()
    >>> parts = split_null_space(row, same, tolerance=1e-9)
    >>> parts.effective.round(decimals=3).tolist(), parts.unseen.round(decimals=3).tolist()
    ([[0.5, 0.5]], [[0.25, -0.25]])
    """
    basis, sizes, _ = torch.linalg.svd(carried, full_matrices=False)
    basis = basis * (sizes > tolerance * sizes.amax(-1, keepdim=True))[..., None, :]
    effective = rows @ basis @ basis.mT
    ones = torch.ones_like(carried[..., :1])
    rest = ones - basis @ (basis.mT @ ones)  # the part of the sum outside the columns of T
    size = rest.square().sum(-2, keepdim=True).sqrt()
    small = tolerance * ones.shape[-2] ** 0.5
    direction = torch.where(size > small, rest / size.clamp(min=1e-300), 0)
    unseen = rows - effective
    return NullSpaceSplit(effective, unseen, unseen - unseen @ direction @ direction.mT)


def norm_share(
    part: Float64[Tensor, "*N K"], whole: Float64[Tensor, "*N K"]
) -> Float64[Tensor, "*N"]:
    """‖part‖² / ‖whole‖², in [0, 1] for an orthogonal part; NaN where the whole is 0.

    >>> norm_share(torch.tensor([3.0]).double(), torch.tensor([5.0]).double())
    tensor(0.3600, dtype=torch.float64)
    """
    size = whole.square().sum(-1)
    return part.square().sum(-1) / size.masked_fill(size == 0, torch.nan)
