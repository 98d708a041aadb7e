"""How far points lie from a crowd, beside how far those of the crowd lie from each other."""

import torch
from jaxtyping import Bool, Float64
from torch import Tensor

EQUAL_DISTANCE = 1e-6  # of the largest distance: those that differ by less are equal


def nearest_distance(
    points: Float64[Tensor, "M D"], reference: Float64[Tensor, "N D"], others: Bool[Tensor, "M N"]
) -> Float64[Tensor, "M"]:
    """The distance of each point to the nearest of those in the crowd that are others.

    >>> crowd = torch.tensor([[0.0], [3.0]]).double()
    >>> nearest(crowd, crowd, ~torch.eye(2).bool())
    tensor([3., 3.], dtype=torch.float64)
    """
    # not by products: those cancel where points are near each other, and only such matter
    apart = torch.cdist(points, reference, compute_mode="donot_use_mm_for_euclid_dist")
    return apart.masked_fill(~others, torch.inf).amin(-1)


def share_nearer(
    distance: Float64[Tensor, "M"], usual: Float64[Tensor, "N"]
) -> Float64[Tensor, "M"]:
    """The share of the usual distances that are smaller, ties half; NaN stays.

    >>> share_nearer(torch.tensor([2.0]).double(), torch.tensor([1.0, 2.0, 3.0, 4.0]).double())
    tensor([0.3750], dtype=torch.float64)
    """
    near = EQUAL_DISTANCE * usual.max()
    gap = distance[:, None] - usual
    share = torch.where(gap.abs() <= near, 0.5, (gap > 0).double()).mean(-1)
    return share.masked_fill(distance.isnan(), torch.nan)
