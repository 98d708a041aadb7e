"""The table of a study: every published number with ours beside it, and ours that have none."""

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan, nan

import numpy as np
from jaxtyping import Float64

from heedful.core.records import Estimate
from heedful.studies.published_numbers import NumberKey, PublishedNumber, PublishedNumbers
from heedful.studies.results.cell_results import CellResults, SeedTable
from heedful.studies.results.estimates import (
    STATISTICS,
    UNBOUNDED,
    UNIT_RANGE,
    WEIGHT_BINS,
    Statistic,
    ValueRange,
    estimate_statistic,
    t_interval_over_seeds,
    value_range,
)
from heedful.studies.run.grid import OWN_ATTENTION, describe_model
from heedful.studies.study import ModelSpec

SIGNIFICANCE_MEASURES = {  # the share of texts whose τ is significant is a measure of its own here
    "agreement.tau_gradient": "agreement.significant_gradient",
    "agreement.tau_leave_one_out": "agreement.significant_leave_one_out",
    "agreement.tau_gradient_leave_one_out": "agreement.significant_gradient_leave_one_out",
}
CSV_COLUMNS = (
    "set",
    "model",
    "class",
    "class_name",
    "measure",
    "statistic",
    "ours",
    "low",
    "high",
    "n",
    "interval_over",
    "published",
    "source",
    "difference",
)


@dataclass(frozen=True)
class ReplicatedNumber:
    """One number, ours and theirs; either may be missing."""

    key: NumberKey
    ours: Estimate | None
    over: str
    published: PublishedNumber | None = None
    of_class: str = "all"  # by name, where the paper has a number

    @property
    def difference(self) -> float:
        """Ours less theirs."""
        if self.ours is None or self.published is None:
            return nan
        return self.ours.value - self.published.value

    @property
    def inside(self) -> bool | None:
        """Whether the published number lies in our interval; None where that cannot be said."""
        if self.ours is None or self.published is None or isnan(self.ours.low):
            return None
        return self.ours.low <= self.published.value <= self.ours.high


def compare_numbers(
    made: Mapping[tuple[str, ModelSpec], CellResults], published: PublishedNumbers
) -> list[ReplicatedNumber]:
    """A row for every published number of a model that was run, then ours of transformers."""
    found = []
    for (texts, model), cells in made.items():
        keys = [key for key in published.figures if (key.texts, key.model) == (texts, model)]
        keys += _unpublished_keys(texts, model, published, {*keys})
        for key in keys:
            ours = estimate_number(key, cells)
            if ours is not None or key in published.figures:
                over = "seeds" if len(cells.seeds) > 1 else "texts"
                named = cells.named.get(key.of_class, (key.of_class,))[-1]
                found.append(ReplicatedNumber(key, ours, over, published.figures.get(key), named))
    return found


def _unpublished_keys(
    texts: str, model: ModelSpec, published: PublishedNumbers, known: set[NumberKey]
) -> Iterator[NumberKey]:
    """What the paper tells of its models, asked of one that it does not have."""
    kinds = {
        (key.measure, key.statistic): None
        for key in published.figures
        if key.of_class == "all" and key.measure != "performance.table_1"
    }
    for measure, statistic in kinds:
        key = NumberKey(texts, model, measure, statistic)
        if key not in known and (model[1] == OWN_ATTENTION or not statistic.startswith("median ")):
            yield key


def estimate_number(key: NumberKey, cells: CellResults) -> Estimate | None:
    """Our number; None where it was not measured."""
    kind, name = key.measure.split(".", 1)
    if kind == "performance":
        found = t_interval_over_seeds(_performance(cells, name), UNIT_RANGE)
        return None if isnan(found.value) else found
    if key.statistic == "significant":
        if key.measure not in SIGNIFICANCE_MEASURES:
            return None
        shares = cells.table(SIGNIFICANCE_MEASURES[key.measure], key.of_class)
        return _estimate_if_defined(shares, STATISTICS["mean"], UNIT_RANGE)
    table, statistic = cells.table(key.measure, key.of_class), key.statistic
    if np.isnan(table).all():
        whole = cells.verdict_estimates(key.measure) if key.of_class == "all" else ()
        return _join_run_estimates(whole, key.measure)
    if statistic.startswith("median "):
        table = _in_bin(table, cells, statistic.removeprefix("median "))
        statistic = "median"
    return _estimate_if_defined(table, STATISTICS[statistic], value_range(key.measure, statistic))


def _performance(cells: CellResults, name: str) -> Float64[np.ndarray, "S"]:
    """A score of each seed; that of the paper's first table is F1 where there are two classes."""
    if name != "table_1":
        return cells.performance(name)
    f1 = cells.performance("f1")
    return cells.performance("accuracy") if np.isnan(f1).all() else f1


def _join_run_estimates(found: tuple[Estimate, ...], measure: str) -> Estimate | None:
    """Of measures that have no value for single texts: what the runs say, over seeds if several."""
    if len(found) == 1:
        return found[0]
    values = np.array([one.value for one in found])
    return t_interval_over_seeds(values, value_range(measure)) if found else None


def _in_bin(table: SeedTable, cells: CellResults, name: str) -> SeedTable:
    """Those texts whose largest weight lies in the bin; NaN the others."""
    low, high = WEIGHT_BINS[name]
    height = cells.table("permutation.max_attention")
    return np.where((height >= low) & (height < high), table, np.nan)


def _estimate_if_defined(
    table: SeedTable, statistic: Statistic, within: ValueRange = UNBOUNDED
) -> Estimate | None:
    return None if np.isnan(table).all() else estimate_statistic(table, statistic, within)


def render_csv(rows: list[ReplicatedNumber]) -> str:
    """All rows as CSV; what does not exist is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for row in rows:
        key, ours, theirs = row.key, row.ours, row.published
        numbers = (ours.value, ours.low, ours.high, ours.n) if ours else (nan, nan, nan, 0)
        writer.writerow(
            (key.texts, describe_model(key.model), key.of_class, row.of_class)
            + (key.measure, key.statistic)
            + tuple(map(_format_value, numbers[:3]))
            + (numbers[3], row.over if ours else "")
            + ((_format_value(theirs.value), theirs.source) if theirs else ("", ""))
            + (_format_value(row.difference),)
        )
    return text.getvalue()


def _format_value(value: float) -> str:
    return "" if isnan(value) else f"{value:.6g}"
