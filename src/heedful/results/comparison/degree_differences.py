"""The difference of two degrees: of places between shuffled attention and the gradient."""

import numpy as np
from jaxtyping import Float64

from heedful.core.records import Estimate
from heedful.numerics.stats.bootstrap import bootstrap_means, percentile_interval, place_and_gap
from heedful.numerics.stats.crossed_bootstrap import estimate_from_draws
from heedful.numerics.stats.permutation_tests import relabelled_means, swapped_means, two_sided_p
from heedful.results.comparison.columns import MeasureKey, MeasurementColumns
from heedful.results.comparison.mean_differences import ResamplingSettings
from heedful.results.comparison.records import DEGREE_KEY, Difference

DEGREE_MEASURES = tuple(
    MeasureKey("agreement", name)
    for name in (
        "tau_leave_one_out",
        "tau_shuffled_leave_one_out",
        "tau_gradient_leave_one_out",
    )
)
TauColumns = Float64[np.ndarray, "_ 3"]


def has_degree(side: MeasurementColumns) -> bool:
    """Whether the run has what a degree is made of."""
    return all(part in side.values for part in DEGREE_MEASURES)


def degree_difference(
    first: MeasurementColumns, second: MeasurementColumns, draw: ResamplingSettings
) -> tuple[Difference | None, str]:
    """The second degree less the first, by the same resamples of the same texts.

    None and the reason where a degree means nothing: its ends are not told apart.
    """
    one, other = (
        np.stack([side.values[part] for part in DEGREE_MEASURES], axis=1)
        for side in (first, second)
    )
    gone = [np.isnan(side).any(1) for side in (one, other)]
    kept = [~(gone[0] | gone[1])] * 2 if draw.paired else [~lost for lost in gone]
    one, other = one[kept[0]], other[kept[1]]
    if min(len(one), len(other)) < 2:
        return None, "too few texts have a degree on both sides"
    sides = [
        _resample_places(values, seed, draw)
        for values, seed in zip((one, other), _seeds(draw), strict=True)
    ]
    counts = len(one), len(other)
    for which, (_, gap), n in zip(("first", "second"), sides, counts, strict=True):
        if not percentile_interval(gap[1:, None], draw.level, n=n)[0][0] > 0:
            return None, (
                f"in the {which} gradient and leave-one-out agree no better than chance, so its "
                "degree means nothing"
            )
    apart = sides[1][0] - sides[0][0]
    n = len(one) if draw.paired else len(one) + len(other)
    return (
        Difference(
            DEGREE_KEY,
            _estimate(sides[0][0], len(one), draw),
            _estimate(sides[1][0], len(other), draw),
            _estimate(apart, n, draw),
            p=_p(one, other, float(apart[0]), draw),
            undefined=(int(gone[0].sum()), int(gone[1].sum())),
        ),
        "",
    )


def _seeds(draw: ResamplingSettings) -> tuple[int, int]:
    return draw.seed, draw.seed if draw.paired else draw.other


def _resample_places(
    values: TauColumns, seed: int, draw: ResamplingSettings
) -> tuple[np.ndarray, np.ndarray]:
    """Places and gaps: of the sample itself first, then of its resamples."""
    drawn = bootstrap_means(values, resamples=draw.resamples, seed=seed)
    found = place_and_gap(np.vstack((values.mean(0, keepdims=True), drawn)))
    return found[:, 0], found[:, 1]


def _estimate(found: np.ndarray, n: int, draw: ResamplingSettings) -> Estimate:
    return estimate_from_draws(float(found[0]), found[1:], n=n, level=draw.level)


def _p(one: TauColumns, other: TauColumns, own: float, draw: ResamplingSettings) -> float:
    exchanged = swapped_means if draw.paired else relabelled_means
    first, second = exchanged(one, other, resamples=draw.permutations, seed=draw.seed)
    apart = place_and_gap(second)[:, :1] - place_and_gap(first)[:, :1]
    return float(two_sided_p(np.array([own]), apart)[0])
