"""Numbers with intervals from values by text and seed.

With several seeds the interval is Student's over seeds: the test texts are fixed, the training
varies. With one seed it is a bootstrap over texts, which does not cover the variation of training;
pages show which of the two it is.
"""

from collections.abc import Callable, Sequence
from math import inf, log, nan

import numpy as np
from jaxtyping import Float64
from scipy.stats import t

from heedful.core.records import Estimate
from heedful.core.rng import generator
from heedful.numerics.stats.bootstrap import percentile_interval

TextValues = Float64[np.ndarray, "n"]
StackedValues = Float64[np.ndarray, "*many n"]
Statistic = Callable[[StackedValues], Float64[np.ndarray, "*many"]]
RESAMPLES = 1000
MAX_RESAMPLED_VALUES = 2_000_000  # resampled values in memory at once
LEVEL = 0.95
WEIGHT_BINS = {"0.00-0.25": (0.0, 0.25), "0.25-0.50": (0.25, 0.5), "0.50-0.75": (0.5, 0.75)}
WEIGHT_BINS |= {"0.75-1.00": (0.75, 1.0 + 1e-9)}
ValueRange = tuple[float, float]
UNBOUNDED: ValueRange = (-inf, inf)
UNIT_RANGE: ValueRange = (0.0, 1.0)  # shares and scores
RANK_RANGE: ValueRange = (-1.0, 1.0)
JSD_RANGE: ValueRange = (0.0, log(2.0))  # Jensen–Shannon divergences
RANGES_BY_AFFIX = {  # by prefix of a measure's name, or suffix if it begins with _
    **dict.fromkeys(("tau_", "rank_"), RANK_RANGE),
    **dict.fromkeys(("_jsd", "jsd_seeds", "jsd"), JSD_RANGE),
    **dict.fromkeys(("flip_", "score_", "significant_", "top1_", "fraction_", "mass_"), UNIT_RANGE),
    **dict.fromkeys(("_tvd", "tvd", "leverage", "max_attention", "median_of_"), UNIT_RANGE),
}

DIFFERENCE_WORDS = ("beyond", "minus", "gain", "lost")


def value_range(measure: str, statistic: str = "mean") -> ValueRange:
    """The range of possible values of a statistic of a measure.

    >>> value_range("agreement.tau_gradient"), value_range("agreement.tau_gradient", "sd")
    ((-1.0, 1.0), (0.0, 1.0))
    >>> value_range("necessity.gain")
    (-inf, inf)
    """
    name = measure.rpartition(".")[2]
    if any(word in name for word in DIFFERENCE_WORDS):
        return UNBOUNDED
    if statistic.startswith("share") or statistic == "significant":
        return UNIT_RANGE
    for word, ends in RANGES_BY_AFFIX.items():
        if name.startswith(word) or (word.startswith("_") and name.endswith(word)):
            return (0.0, ends[1]) if statistic == "sd" else ends
    return UNBOUNDED


def t_interval_over_seeds(
    values: Float64[np.ndarray, "S"], within: ValueRange = UNBOUNDED
) -> Estimate:
    """Mean and Student's interval, cut to the range `within`; n is the number of seeds.

    >>> str(t_interval_over_seeds(np.array([0.30, 0.32, 0.34])))
    '0.320 [0.270, 0.370]'
    >>> str(t_interval_over_seeds(np.array([0.94, 0.96, 0.98]), UNIT_RANGE))
    '0.960 [0.910, 1.000]'
    """
    known = values[~np.isnan(values)]
    if not len(known):
        return Estimate(nan, nan, nan, 0)
    mean, n = float(known.mean()), len(known)
    if n < 2:
        return Estimate(mean, nan, nan, n)
    half = float(t.ppf((1 + LEVEL) / 2, n - 1) * known.std(ddof=1) / np.sqrt(n))
    return Estimate(mean, max(mean - half, within[0]), min(mean + half, within[1]), n)


def estimate_statistic(
    table: Float64[np.ndarray, "S n"], statistic: Statistic, within: ValueRange = UNBOUNDED
) -> Estimate:
    """A statistic of texts with an interval over seeds if there are several, else over texts."""
    if len(table) == 1:
        return _estimate_over_texts(table[0], statistic)
    values = np.array([_apply_statistic(statistic, row) for row in table])
    return t_interval_over_seeds(values, within)


def estimate_if_defined(
    table: Float64[np.ndarray, "S n"], statistic: Statistic, within: ValueRange = UNBOUNDED
) -> Estimate | None:
    """As `estimate_statistic`; None if all values are NaN."""
    return None if np.isnan(table).all() else estimate_statistic(table, statistic, within)


def join_run_estimates(
    estimates: Sequence[Estimate], within: ValueRange = UNBOUNDED
) -> Estimate | None:
    """For measures without values by text: the estimate of the run, or the mean over several."""
    if len(estimates) < 2:
        return estimates[0] if estimates else None
    return t_interval_over_seeds(np.array([one.value for one in estimates]), within)


def _estimate_over_texts(column: TextValues, statistic: Statistic) -> Estimate:
    known = column[~np.isnan(column)]
    n, value = len(known), _apply_statistic(statistic, known)
    if n < 2:
        return Estimate(value, nan, nan, n)
    random = generator(0, "texts of a study")
    some = max(1, MAX_RESAMPLED_VALUES // n)
    sizes = [min(some, RESAMPLES - begun) for begun in range(0, RESAMPLES, some)]
    draws = [statistic(known[random.integers(n, size=(size, n))]) for size in sizes]
    low, high = percentile_interval(np.concatenate(draws)[:, None], LEVEL, n=n)
    return Estimate(value, float(low[0]), float(high[0]), n)


def _apply_statistic(statistic: Statistic, column: TextValues) -> float:
    known = column[~np.isnan(column)]
    return float(statistic(known)) if len(known) else nan


def _share_at_least(line: float) -> Statistic:
    return lambda values: np.asarray(np.mean(values >= line, axis=-1))


def mean(values: StackedValues) -> Float64[np.ndarray, "*many"]:
    """The mean over texts."""
    return np.asarray(np.mean(values, axis=-1))


STATISTICS: dict[str, Statistic] = {
    "mean": mean,
    "sd": lambda values: np.asarray(np.std(values, axis=-1)),
    "median": lambda values: np.asarray(np.median(values, axis=-1)),
    "share 0.5": _share_at_least(0.5),
    "share 0.6": _share_at_least(0.6),
}
