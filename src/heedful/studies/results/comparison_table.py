"""The table of a study: every published number with ours beside it, and ours that have none."""

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan, nan

import numpy as np
from jaxtyping import Float64

from heedful.core.records import Estimate
from heedful.studies.published_numbers import Figure, Key, Published
from heedful.studies.results.cell_results import Made, Table
from heedful.studies.results.estimates import (
    ANY,
    BINS,
    SHARE,
    STATISTICS,
    Ends,
    Statistic,
    ends_of,
    estimate,
    over_seeds,
)
from heedful.studies.run.grid import TRANSFORMER, model_name
from heedful.studies.study import Model

SIGNIFICANT = {  # the share of texts whose τ is significant is a measure of its own here
    "agreement.tau_gradient": "agreement.significant_gradient",
    "agreement.tau_leave_one_out": "agreement.significant_leave_one_out",
    "agreement.tau_gradient_leave_one_out": "agreement.significant_gradient_leave_one_out",
}
COLUMNS = (
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
class Row:
    """One number, ours and theirs; either may be missing."""

    key: Key
    ours: Estimate | None
    over: str
    published: Figure | None = None
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


def rows_of(made: Mapping[tuple[str, Model], Made], published: Published) -> list[Row]:
    """A row for every published number of a model that was run, then ours of transformers."""
    found = []
    for (texts, model), cells in made.items():
        keys = [key for key in published.figures if (key.texts, key.model) == (texts, model)]
        keys += _unpublished(texts, model, published, {*keys})
        for key in keys:
            ours = estimate_of(key, cells)
            if ours is not None or key in published.figures:
                over = "seeds" if len(cells.seeds) > 1 else "texts"
                named = cells.named.get(key.of_class, (key.of_class,))[-1]
                found.append(Row(key, ours, over, published.figures.get(key), named))
    return found


def _unpublished(texts: str, model: Model, published: Published, known: set[Key]) -> Iterator[Key]:
    """What the paper tells of its models, asked of one that it does not have."""
    kinds = {
        (key.measure, key.statistic): None
        for key in published.figures
        if key.of_class == "all" and key.measure != "performance.table_1"
    }
    for measure, statistic in kinds:
        key = Key(texts, model, measure, statistic)
        if key not in known and (model[1] == TRANSFORMER or not statistic.startswith("median ")):
            yield key


def estimate_of(key: Key, cells: Made) -> Estimate | None:
    """Our number; None where it was not measured."""
    kind, name = key.measure.split(".", 1)
    if kind == "performance":
        found = over_seeds(_performance(cells, name), SHARE)
        return None if isnan(found.value) else found
    if key.statistic == "significant":
        if key.measure not in SIGNIFICANT:
            return None
        shares = cells.table(SIGNIFICANT[key.measure], key.of_class)
        return _defined(shares, STATISTICS["mean"], SHARE)
    table, statistic = cells.table(key.measure, key.of_class), key.statistic
    if np.isnan(table).all():
        whole = cells.concluded(key.measure) if key.of_class == "all" else ()
        return _concluded(whole, key.measure)
    if statistic.startswith("median "):
        table = _in_bin(table, cells, statistic.removeprefix("median "))
        statistic = "median"
    return _defined(table, STATISTICS[statistic], ends_of(key.measure, statistic))


def _performance(cells: Made, name: str) -> Float64[np.ndarray, "S"]:
    """A score of each seed; that of the paper's first table is F1 where there are two classes."""
    if name != "table_1":
        return cells.performance(name)
    f1 = cells.performance("f1")
    return cells.performance("accuracy") if np.isnan(f1).all() else f1


def _concluded(found: tuple[Estimate, ...], measure: str) -> Estimate | None:
    """Of measures that have no value for single texts: what the runs say, over seeds if several."""
    if len(found) == 1:
        return found[0]
    values = np.array([one.value for one in found])
    return over_seeds(values, ends_of(measure)) if found else None


def _in_bin(table: Table, cells: Made, name: str) -> Table:
    """Those texts whose largest weight lies in the bin; NaN the others."""
    low, high = BINS[name]
    height = cells.table("permutation.max_attention")
    return np.where((height >= low) & (height < high), table, np.nan)


def _defined(table: Table, statistic: Statistic, within: Ends = ANY) -> Estimate | None:
    return None if np.isnan(table).all() else estimate(table, statistic, within)


def csv_of(rows: list[Row]) -> str:
    """All rows as CSV; what does not exist is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        key, ours, theirs = row.key, row.ours, row.published
        numbers = (ours.value, ours.low, ours.high, ours.n) if ours else (nan, nan, nan, 0)
        writer.writerow(
            (key.texts, model_name(key.model), key.of_class, row.of_class)
            + (key.measure, key.statistic)
            + tuple(map(_cell, numbers[:3]))
            + (numbers[3], row.over if ours else "")
            + ((_cell(theirs.value), theirs.source) if theirs else ("", ""))
            + (_cell(row.difference),)
        )
    return text.getvalue()


def _cell(value: float) -> str:
    return "" if isnan(value) else f"{value:.6g}"
