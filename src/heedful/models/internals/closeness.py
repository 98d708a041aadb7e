"""Equality up to rounding: computed tensors are compared with the model's own."""

from torch import Tensor

from heedful.core.errors import NotApplicable

TOLERANCE = 1e-4  # largest difference, relative to the largest magnitude


def is_close(
    made: Tensor,
    wanted: Tensor,
    *,
    tolerance: float = TOLERANCE,
    scale: Tensor | None = None,
    floor: float = 1.0,
) -> bool:
    """max|made − wanted| ≤ tolerance · max(floor, max|scale|); `scale` is `wanted` by default.

    >>> is_close(Tensor([1.0, 20.001]), Tensor([1.0, 20.0]))
    True
    >>> is_close(Tensor([float("nan")]), Tensor([float("nan")]))
    False
    """
    size = float((wanted if scale is None else scale).abs().max())
    return float((made - wanted).abs().max()) <= tolerance * max(floor, size)


def require_close(
    made: Tensor,
    wanted: Tensor,
    what: str,
    *,
    tolerance: float = TOLERANCE,
    scale: Tensor | None = None,
    floor: float = 1.0,
) -> None:
    """Raise NotApplicable unless `is_close`; `what` is the message, without its full stop."""
    if not is_close(made, wanted, tolerance=tolerance, scale=scale, floor=floor):
        raise NotApplicable(f"{what} (largest difference {(made - wanted).abs().max():.2g}).")
