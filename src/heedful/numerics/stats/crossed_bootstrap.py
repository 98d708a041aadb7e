"""Intervals over two random factors: texts, and the seeds of the models that read them.

Resampling texts alone would treat the few trained models as all there are. Here texts and seeds are
resampled independently and crossed (Owen, 2007): the interval covers another set of seeds on
another sample of texts. With S seeds the part due to them is too small by about (S − 1)/S, as in
any bootstrap of few.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from jaxtyping import Float64, Int64

from heedful.core.records import Estimate
from heedful.core.rng import generator
from heedful.numerics.stats.bootstrap import RESAMPLES, make_estimate, percentile_interval
from heedful.numerics.stats.clusters import ClusterIds, cluster_codes

SeedTable = Float64[np.ndarray, "S n"]  # one row per seed, one column per text
SeedAverage = Callable[[SeedTable], Float64[np.ndarray, "n"]]


def mean_over_seeds(table: SeedTable) -> Float64[np.ndarray, "n"]:
    """The mean of each text over the seeds."""
    return np.asarray(table.mean(0))


def median_over_seeds(table: SeedTable) -> Float64[np.ndarray, "n"]:
    """The median of each text over the seeds, as Wiegreffe & Pinter plot it."""
    return np.asarray(np.median(table, axis=0))


def resample_crossed(
    tables: Mapping[str, SeedTable],
    clusters: ClusterIds | None = None,
    *,
    centre: SeedAverage = mean_over_seeds,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, Float64[np.ndarray, "resamples"]]:
    """The mean over texts of each table in each resample.

    All tables share the resampled texts, so that differences are paired; the seeds of each table
    are resampled separately. Texts with one id in `clusters` are drawn together. A text that is
    undefined for any of the drawn seeds is left out.

    >>> same = {"a": np.array([[1.0, 0.0]]), "b": np.array([[1.0, 0.0]])}
    >>> draws = resample_crossed(same, resamples=100)
    >>> bool((draws["a"] == draws["b"]).all())
    True
    """
    draws = {name: np.full(resamples, np.nan) for name in tables}
    codes = cluster_codes(next(iter(tables.values())).shape[1], clusters)
    orders = {name: np.lexsort((*table, codes)) for name, table in tables.items()}
    sorted_tables = {name: table[:, orders[name]] for name, table in tables.items()}
    times_of = {name: codes[order] for name, order in orders.items()}
    seeds_of = {name: len(table) for name, table in tables.items()}
    count = int(codes.max(initial=-1)) + 1
    for number, (drawn, seeds) in enumerate(
        _draw_texts_and_seeds(count, seeds_of, resamples, seed)
    ):
        for name, table in sorted_tables.items():
            chosen = table if len(table) == 1 else table[seeds[name]]
            values, texts = centre(chosen), drawn[times_of[name]]
            known = ~np.isnan(values)
            if total := texts[known].sum():
                draws[name][number] = float(values[known] @ texts[known]) / total
    return draws


def _draw_texts_and_seeds(
    count: int, seeds_of: Mapping[str, int], resamples: int, seed: int
) -> Iterator[tuple[Float64[np.ndarray, "C"], dict[str, Int64[np.ndarray, "S"]]]]:
    """How often each cluster of texts is drawn, and which seeds."""
    of_texts = generator(seed, "bootstrap")
    of_seeds = {name: generator(seed, f"bootstrap of seeds, {name}") for name in seeds_of}
    for _ in range(resamples):
        times = (
            np.bincount(of_texts.integers(count, size=count), minlength=count)
            if count
            else np.zeros(0)
        )
        chosen = {name: of_seeds[name].integers(many, size=many) for name, many in seeds_of.items()}
        yield times.astype(np.float64), chosen


def estimate_from_draws(
    value: float,
    draws: Float64[np.ndarray, "R"],
    *,
    n: int,
    units: int | None = None,
    level: float = 0.95,
) -> Estimate:
    """A value of n texts with the percentile interval of its draws.

    `units` is the number of clusters that are drawn, if not each text is one. There is no interval
    for fewer than two.
    """
    low, high = percentile_interval(draws[:, None], level, n=n if units is None else units)
    return make_estimate(value, low[0], high[0], n, units=units)


def below_margin_p(draws: Float64[np.ndarray, "R"], margin: float, *, n: int) -> float:
    """The p-value of "the difference is at least the margin", from its resamples over n texts.

    (1 + draws beyond) / (1 + draws), so it is never 0; an undefined draw counts as beyond. If all
    texts agree, resamples do not vary; yet n texts may by chance miss a share `margin` of texts
    that differ, so p is at least (1 − margin)ⁿ. The larger of this for the draws and for −draws
    tests equivalence (Schuirmann, 1987).

    >>> below_margin_p(np.zeros(99), 0.01, n=1000)
    0.01
    >>> round(below_margin_p(np.zeros(99), 0.01, n=100), 2)
    0.37
    """
    beyond = int((~(draws < margin)).sum())
    return max((1.0 - margin) ** n, (1 + beyond) / (len(draws) + 1))
