"""What noise adds to stakes and maxima, and what is left without it; no torch."""

import numpy as np
from jaxtyping import Float64

Sums = Float64[np.ndarray, "R"]


def remove_noise(drawn: Sums, half: Sums) -> Sums:
    """√(2 D² − H²): a sum without noise, from all orders (D) and from half of them (H).

    For normal m and noise D² = c (τ² + σ²) and H² = c (τ² + 2σ²), whether the sum is of |m_i − m_j|
    over pairs or of the largest m above the mean, so that what is left is c τ². 0 where nothing
    was drawn; NaN where the sums are noise.

    >>> remove_noise(np.array([1.0, 1.0, 0.0]), np.array([1.0, 1.1, 0.0])).round(3)
    array([1.   , 0.889, 0.   ])
    """
    left = 2 * drawn**2 - half**2
    with np.errstate(invalid="ignore"):
        found: Sums = np.where(drawn > 0, np.sqrt(np.where(left > 0, left, np.nan)), 0.0)
    return found
