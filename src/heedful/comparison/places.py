"""Differences between places on the influence of words, by resamples of the same texts.

Places are ratios of sums over texts (`checks.influence.estimates`), so each is recomputed, ceiling
included, from the sums of every resample.
"""

from collections.abc import Iterator, Mapping

import numpy as np
from jaxtyping import Float64

from heedful.checks.influence.names import INFLUENCE, NAME, PLACES, RANDOM
from heedful.checks.influence.orders import remove_noise
from heedful.comparison.differences import (
    MeansStatistic,
    ResamplingSettings,
    defined_texts,
    is_above_zero,
    statistic_difference,
)
from heedful.comparison.records import Difference
from heedful.core.records import MeasureKey
from heedful.numerics.stats.bootstrap import divide_defined
from heedful.results.tables import MeasurementColumns

PlaceColumns = Float64[np.ndarray, "_ 11"]  # texts of either side; they may differ in number
Means = Float64[np.ndarray, "R 11"]
ABSTAINS = (
    "the most influential words, taken together, change the output no more than random words in "
    "one of them"
)


def place_columns(columns: MeasurementColumns, method: str) -> PlaceColumns:
    """The columns that the places of a method are made of; NaN where a text has no place.

    In order: agreement of pairs; their stakes where orders were drawn, and from half of the orders;
    stakes where every set was run; change of output without the top words, random words, and the
    most influential ones; influence of the top word; and of the most influential one where orders
    were drawn, from half of the orders, and where every set was run.
    """

    def read(measure: str, method: str | None = None, setting: str | None = None) -> np.ndarray:
        return columns.column(NAME, measure, method=method, setting=setting)

    agreed, stakes, most = read("order_sum", method), read("order_weight"), read("gain_most")
    half_stakes, half_most = (
        (read(name, None, "1") + read(name, None, "2")) / 2 for name in ("half_weight", "half_most")
    )
    exact = read("exact") > 0
    changes = (("change_top", method), ("change_top", RANDOM), ("change_top", None, INFLUENCE))
    found = np.stack(
        [
            *(agreed, *_by_drawing(stakes, half_stakes, exact)),
            *(read(*one) for one in (*changes, ("gain_top", method))),
            *_by_drawing(most, half_most, exact),
        ],
        axis=1,
    )
    return np.where(np.isnan(agreed)[:, None], np.nan, np.nan_to_num(found))


def _by_drawing(
    whole: np.ndarray, half: np.ndarray, exact: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values where orders were drawn, from all of them and from half; and where none were."""
    drawn, from_half = (np.where(exact, 0.0, one) for one in (whole, half))
    return drawn, from_half, np.where(exact, whole, 0.0)


def _order(means: Means) -> Float64[np.ndarray, "R"]:
    """Agreement with the influence of words, divided by the most that a ranking can reach."""
    return _by_most(*means[:, :4].T)


def _by_most(
    own: np.ndarray, drawn: np.ndarray, half: np.ndarray, exact: np.ndarray
) -> Float64[np.ndarray, "R"]:
    """A sum over what is possible, which is taken without noise where orders were drawn."""
    return divide_defined(own, exact + remove_noise(drawn, half))


def _gap(means: Means) -> Float64[np.ndarray, "R"]:
    gap: np.ndarray = means[:, 6] - means[:, 5]
    return gap


def _top_set(means: Means) -> Float64[np.ndarray, "R"]:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(_gap(means) > 0, (means[:, 4] - means[:, 5]) / _gap(means), np.nan)


def _top_word(means: Means) -> Float64[np.ndarray, "R"]:
    return _by_most(*means[:, 7:].T)


STATISTICS: Mapping[str, MeansStatistic] = dict(
    zip(PLACES, (_order, _top_set, _top_word), strict=True)
)


def has_places(side: MeasurementColumns, method: str) -> bool:
    """Whether any text has a place of the method."""
    return bool((~np.isnan(side.column(NAME, "order_sum", method=method))).any())


def place_differences(
    first: PlaceColumns,
    second: PlaceColumns,
    keys: Mapping[str, MeasureKey],
    draw: ResamplingSettings,
) -> Iterator[tuple[MeasureKey, Difference | None, str]]:
    """For each place its difference, second less first, or why there is none.

    Args:
        keys: The key of the row of each place.
    """
    sides, undefined = defined_texts(first, second, draw)
    few = min(map(len, sides)) < 2
    pairs = tuple(zip(sides, draw.seeds, strict=True))
    for name, key in keys.items():
        if few:
            yield key, None, "too few texts have a place on both sides"
        elif name == "top_set" and not all(is_above_zero(_gap, *pair, draw) for pair in pairs):
            yield key, None, ABSTAINS
        else:
            yield key, statistic_difference(key, sides, STATISTICS[name], draw, undefined), ""
