"""Published numbers, from CSV files that give the source of each, and ours beside them."""

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from heedful.core.records import Estimate
from heedful.studies.cell_results import CellResults, StudyResults
from heedful.studies.estimates import (
    STATISTICS,
    UNIT_RANGE,
    WEIGHT_BINS,
    estimate_if_defined,
    join_run_estimates,
    t_interval_over_seeds,
    value_range,
)
from heedful.studies.grid import OWN_ATTENTION, describe_model
from heedful.studies.study import ModelSpec

PUBLISHED_FOLDER = Path(__file__).parent / "published"
SOURCES = {
    "repo": "read in the authors' result files",
    "svg": "digitised from the authors' plots, ± 0.01",
    "seed": "read in notes on the paper",
    "recalled": "recalled, not verified",
}


@dataclass(frozen=True, slots=True)
class NumberKey:
    """What a number describes; `of_class` restricts it to texts predicted as that class."""

    texts: str
    model: ModelSpec
    measure: str
    statistic: str
    of_class: str = "all"


@dataclass(frozen=True, slots=True)
class PublishedNumber:
    """A published number and its source, a key of `SOURCES`."""

    value: float
    source: str


@dataclass(frozen=True)
class PublishedNumbers:
    """The published numbers of one study."""

    figures: Mapping[NumberKey, PublishedNumber]

    @classmethod
    def of(
        cls, study: str, renamed: Mapping[ModelSpec, ModelSpec] | None = None
    ) -> "PublishedNumbers":
        """Read the numbers of a study; a study without a file has none.

        `renamed` maps models of the paper to the models of ours that they are compared with.

        >>> key = NumberKey("sst", ("bilstm", "additive"), "agreement.tau_gradient", "mean")
        >>> PublishedNumbers.of("jain-wallace-2019").figures[key]
        PublishedNumber(value=0.351, source='repo')
        """
        path, ours = PUBLISHED_FOLDER / f"{study}.csv", renamed or {}
        if not path.exists():
            return cls({})
        found = {}
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                model = row["encoder"], row["attention"]
                names = (row["measure"], row["statistic"], row["class"])
                key = NumberKey(row["set"], ours.get(model, model), *names)
                found[key] = PublishedNumber(float(row["value"]), row["source"])
        return cls(found)


SIGNIFICANCE_MEASURES = {  # the measure for the share of texts with a significant τ
    "agreement.tau_gradient": "agreement.significant_gradient",
    "agreement.tau_leave_one_out": "agreement.significant_leave_one_out",
    "agreement.tau_gradient_leave_one_out": "agreement.significant_gradient_leave_one_out",
}
CSV_COLUMNS = (
    *("set", "model", "class", "class_name", "measure", "statistic"),
    *("ours", "low", "high", "n", "interval_over", "published", "source", "difference"),
)


@dataclass(frozen=True)
class ReplicatedNumber:
    """One number, ours and the published one; either may be missing."""

    key: NumberKey
    ours: Estimate | None
    over: str
    published: PublishedNumber | None = None
    of_class: str = "all"  # the name of the class; `key` has the paper's number

    @property
    def difference(self) -> float:
        """Ours minus published."""
        if self.ours is None or self.published is None:
            return nan
        return self.ours.value - self.published.value

    @property
    def theirs(self) -> float | None:
        """The published value."""
        return self.published.value if self.published else None

    @property
    def inside(self) -> bool | None:
        """Whether the published number lies in our interval; None if either is missing."""
        if self.ours is None or self.published is None or isnan(self.ours.low):
            return None
        return self.ours.low <= self.published.value <= self.ours.high


def compare_numbers(results: StudyResults, published: PublishedNumbers) -> list[ReplicatedNumber]:
    """A row for every published number of each model that was run, then our other numbers."""
    rows = []
    for (texts, model), cells in results.items():
        keys = [key for key in published.figures if (key.texts, key.model) == (texts, model)]
        keys += _unpublished_keys(texts, model, published, {*keys})
        for key in keys:
            ours = estimate_number(key, cells)
            if ours is not None or key in published.figures:
                over = "seeds" if len(cells.seeds) > 1 else "texts"
                name = cells.class_names.get(key.of_class, (key.of_class,))[-1]
                rows.append(ReplicatedNumber(key, ours, over, published.figures.get(key), name))
    return rows


def _unpublished_keys(
    texts: str, model: ModelSpec, published: PublishedNumbers, known: set[NumberKey]
) -> Iterator[NumberKey]:
    """The paper's measures and statistics, for a model without published numbers."""
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
    """Our number; None if it was not measured."""
    kind, name = key.measure.split(".", 1)
    if kind == "performance":
        score = t_interval_over_seeds(_performance(cells, name), UNIT_RANGE)
        return None if isnan(score.value) else score
    if key.statistic == "significant":
        if key.measure not in SIGNIFICANCE_MEASURES:
            return None
        shares = cells.table(SIGNIFICANCE_MEASURES[key.measure], key.of_class)
        return estimate_if_defined(shares, STATISTICS["mean"], UNIT_RANGE)
    table, statistic = cells.table(key.measure, key.of_class), key.statistic
    if np.isnan(table).all():
        of_runs = cells.verdict_estimates(key.measure) if key.of_class == "all" else ()
        return join_run_estimates(of_runs, value_range(key.measure))
    if statistic.startswith("median "):
        low, high = WEIGHT_BINS[statistic.removeprefix("median ")]
        height = cells.table("permutation.max_attention")  # the largest weight of each text
        table = np.where((height >= low) & (height < high), table, np.nan)
        statistic = "median"
    return estimate_if_defined(table, STATISTICS[statistic], value_range(key.measure, statistic))


def _performance(cells: CellResults, name: str) -> Float64[np.ndarray, "S"]:
    """A score per seed; "table_1" is F1 for two classes and accuracy otherwise, as in the paper."""
    if name != "table_1":
        return cells.performance(name)
    f1 = cells.performance("f1")
    return cells.performance("accuracy") if np.isnan(f1).all() else f1


def render_csv(rows: list[ReplicatedNumber]) -> str:
    """All rows as CSV; missing values are empty."""
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
