"""Affine stand-ins for the non-linear parts of a network, each exact at the point it is made at.

Each is made from what entered a part and what left it, and is then a map of whatever may enter:
linear in it up to a constant, and at that point the part itself.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.errors import NotApplicable

Nonlinearity = Callable[..., Any]
AffineMap = Callable[..., Tensor]
"""What stands in for a part; it is given what the part would be given."""
NORM_TOLERANCE, HALF_PRECISION_NORM_TOLERANCE = (
    1e-4,
    0.05,
)  # how far a norm may lie from what it must be, as a share of it


def linearise_activation(part: Nonlinearity, entered: Tensor, left: Tensor) -> AffineMap:
    """f(x) as x times the slope f(x)/x; where f(0) is not 0, that is a constant beside it.

    >>> held = of_activation(torch.relu, torch.tensor([2.0, -1.0]), torch.tensor([2.0, 0.0]))
    >>> held(torch.tensor([-5.0, 5.0]))
    tensor([-5.,  0.])
    """
    with torch.no_grad():
        tiny = torch.finfo(entered.dtype).eps ** 0.5
        away = torch.where(entered.abs() < tiny, tiny, entered)
        start = part(torch.zeros_like(entered[:1]))
        slope = (part(away) - start) / away
    return _scale_map(slope, entered, left)


def linearise_norm(part: Nonlinearity, entered: Tensor, left: Tensor) -> AffineMap:
    """A layer norm or RMS norm with its deviation held: c · γ ⊙ (x − mean x) + β, or without mean.

    γ (or 1 + γ), β, and whether there is a mean are read off what it makes of zeros, of ones and of
    ±1; that all this makes up what left the norm is seen, or the norm is refused.
    """
    with torch.no_grad():
        none = torch.zeros_like(entered[:1])
        signs = _alternating_signs(none)
        bias, ones = part(none), part(none + 1)
        gamma = (part(signs) - bias) / signs
        centred = bool((ones - bias).abs().max() <= 1e-3 * (gamma * signs).abs().max())
        read = gamma * (entered - entered.mean(-1, keepdim=True) if centred else entered)
        size = read.square().sum(-1, keepdim=True)
        fit = ((left - bias) * read).sum(-1, keepdim=True) / torch.where(size > 0, size, 1.0)
        _require_norm(part, fit * read, left - bias)
    return _scale_map(fit * gamma, entered, left, centred=centred)


def linearise_product(part: Nonlinearity, factors: Mapping[int | str, Tensor]) -> AffineMap:
    """a · b as half of a · b₀ and half of a₀ · b: neither factor is preferred.

    The two factors are told by their places among what the part is given, or by their names.
    """
    kept = {place: factor.detach() for place, factor in factors.items()}

    def held(*given: Any, **more: Any) -> Tensor:
        halves = []
        for place, factor in kept.items():
            placed, named = list(given), dict(more)
            here: Any = placed if isinstance(place, int) else named
            here[place] = repeat_to_batch(factor, here[place])
            halves.append(part(*placed, **named))
        half: Tensor = (halves[0] + halves[1]) / 2
        return half

    return held


def linearise_softmax(entered: Tensor, left: Tensor, axis: int) -> AffineMap:
    """The tangent s + s ⊙ (d − ⟨s, d⟩) with d = x − x₀; what had no share keeps none."""
    point, share = entered.detach(), left.detach().to(entered.dtype)

    def held(given: Tensor) -> Tensor:
        here, shares = repeat_to_batch(point, given), repeat_to_batch(share, given)
        moved = (given - here).masked_fill(shares == 0, 0.0)
        return shares + shares * (moved - (shares * moved).sum(axis, keepdim=True))

    return held


def repeat_to_batch(kept: Tensor, given: Tensor) -> Tensor:
    """What was kept of some texts, over again for a batch that has them several times."""
    if kept.dim() != given.dim():
        return kept
    times = [
        new // old if old > 1 and new != old and new % old == 0 else 1
        for old, new in zip(kept.shape, given.shape, strict=True)
    ]
    return kept if max(times, default=1) == 1 else kept.repeat(times)


def _scale_map(slope: Tensor, entered: Tensor, left: Tensor, *, centred: bool = False) -> AffineMap:
    def scaled(given: Tensor) -> Tensor:
        steps = given - given.mean(-1, keepdim=True) if centred else given
        return repeat_to_batch(slope, given) * steps

    with torch.no_grad():
        rest = left.detach() - scaled(entered.detach())

    def held(given: Tensor) -> Tensor:
        return scaled(given) + repeat_to_batch(rest, given)

    return held


def _alternating_signs(like: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Numbers along the last axis that add up to 0, none of them 0."""
    width = like.shape[-1]
    row = torch.ones(width, dtype=like.dtype, device=like.device)
    row[1::2] = -1.0
    if width % 2 and width > 1:
        row[-1] = -2.0
        row[-2] = 1.0
    return row.expand_as(like)


def _require_norm(part: Nonlinearity, made: Tensor, wanted: Tensor) -> None:
    fine = wanted.dtype in (torch.float32, torch.float64)
    gap = float((made - wanted).abs().max())
    if not gap <= (NORM_TOLERANCE if fine else HALF_PRECISION_NORM_TOLERANCE) * max(
        float(wanted.abs().max()), 1e-6
    ):
        owner = type(getattr(part, "__self__", part)).__name__
        raise NotApplicable(
            f"{owner} is named a norm, but does not scale what it is given as layer norms and "
            f"RMS norms do (difference {gap:.2g}); it cannot be made linear."
        )
