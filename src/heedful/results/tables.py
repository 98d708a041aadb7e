"""Rows that lie in many files, read one file at a time, and the columns gathered from them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float64, Int64
from numpy.typing import NDArray

TableReader = Callable[[Sequence[str] | None], pa.Table]


@dataclass(frozen=True, eq=False)
class PartitionedTable:
    """Readers of tables with the same columns; only the table being looked at is in memory."""

    readers: tuple[TableReader, ...]

    @classmethod
    def of(cls, table: pa.Table) -> "PartitionedTable":
        """One table that is in memory already."""
        return cls((lambda columns: table if columns is None else table.select(list(columns)),))

    def read(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The tables one after the other, with the given columns or with all."""
        return (read(columns) for read in self.readers)

    def whole(self) -> pa.Table:
        """All rows as one table: for those who mean to hold them."""
        return pa.concat_tables(self.read())


@dataclass(frozen=True, eq=False)
class MeasuredValues:
    """One array per check and measure, a place for each instance in order.

    NaN where a value is undefined or was not measured; `partial` names the measures that some
    instance lacks or has twice.
    """

    instances: Int64[np.ndarray, "n"]
    predicted: NDArray[Any]  # class names
    label: NDArray[Any]
    values: Mapping[str, Mapping[str, Float64[np.ndarray, "n"]]]
    partial: tuple[str, ...] = ()

    def column(self, check: str, measure: str) -> Float64[np.ndarray, "n"]:
        """One value per instance; all NaN where nobody measured it."""
        found = self.values.get(check, {}).get(measure)
        return np.full(len(self.instances), np.nan) if found is None else found


def gather_measures(tables: PartitionedTable) -> MeasuredValues:
    """Single instances' plain measurements: rows of a setting and of the whole run stand apart."""
    seen: list[tuple[NDArray[np.int64], NDArray[Any], NDArray[Any]]] = []
    parts: dict[tuple[str, str], list[tuple[NDArray[np.int64], NDArray[np.float64]]]] = {}
    for table in tables.read():
        plain = table.filter(
            pc.and_(pc.is_null(table["setting"]), pc.greater(table["instance"], -1))
        )
        instances, first = np.unique(plain["instance"].to_numpy(), return_index=True)
        whose = plain.select(["predicted", "label"]).take(pa.array(first))
        seen.append((instances, _class_names(whose["predicted"]), _class_names(whose["label"])))
        for kind, rows in _split_by_measure(plain):
            values = rows["value"].cast(pa.float64()).to_numpy()
            parts.setdefault(kind, []).append((rows["instance"].to_numpy(), values))
    return _align_by_instance(seen, parts)


def gather_settings(
    tables: PartitionedTable, check: str, measure: str
) -> dict[str, Float64[np.ndarray, "n"]]:
    """One measure's values by setting, in the order of the rows; undefined ones are NaN."""
    return gather_settings_of_measures(tables, check, (measure,))[measure]


def gather_settings_of_measures(
    tables: PartitionedTable, check: str, measures: Sequence[str]
) -> dict[str, dict[str, Float64[np.ndarray, "n"]]]:
    """The same of several measures, by one reading of the rows."""
    parts: dict[tuple[str, str], list[NDArray[np.float64]]] = {}
    wanted = pa.array(measures, pa.string())
    for table in tables.read(["check", "measure", "setting", "value"]):
        here = pc.and_(pc.equal(table["check"], check), pc.is_in(table["measure"], wanted))
        rows = table.filter(pc.and_(here, pc.is_valid(table["setting"])))
        coded = [rows[name].combine_chunks().dictionary_encode() for name in ("measure", "setting")]
        one, other = (each.indices.to_numpy() for each in coded)
        names, settings = (each.dictionary.to_pylist() for each in coded)
        values = rows["value"].cast(pa.float64()).to_numpy()
        for first, second in dict.fromkeys(zip(one.tolist(), other.tolist(), strict=True)):
            chosen = values[(one == first) & (other == second)]
            parts.setdefault((names[first], settings[second]), []).append(chosen)
    found: dict[str, dict[str, NDArray[np.float64]]] = {measure: {} for measure in measures}
    for (measure, setting), pieces in parts.items():
        found[measure][setting] = np.concatenate(pieces)
    return found


def _class_names(column: pa.ChunkedArray) -> NDArray[Any]:
    """Class names as Python strings, each of them once in memory."""
    coded = column.fill_null("").combine_chunks().dictionary_encode()
    names = np.array([*coded.dictionary.to_pylist(), ""], dtype=object)
    found: NDArray[Any] = names[coded.indices.to_numpy()]
    return found


def _split_by_measure(rows: pa.Table) -> Iterator[tuple[tuple[str, str], pa.Table]]:
    kinds = rows.select(["check", "measure"]).group_by(["check", "measure"], use_threads=False)
    for kind in kinds.aggregate([]).to_pylist():
        check, measure = kind["check"], kind["measure"]
        here = pc.and_(pc.equal(rows["check"], check), pc.equal(rows["measure"], measure))
        yield (check, measure), rows.select(["instance", "value"]).filter(here)


def _align_by_instance(
    seen: list[tuple[NDArray[np.int64], NDArray[Any], NDArray[Any]]],
    parts: dict[tuple[str, str], list[tuple[NDArray[np.int64], NDArray[np.float64]]]],
) -> MeasuredValues:
    if not seen:
        nothing = np.empty(0, dtype=object)
        return MeasuredValues(np.empty(0, dtype=np.int64), nothing, nothing, {})
    every, predicted, label = (np.concatenate(one) for one in zip(*seen, strict=True))
    instances, first = np.unique(every, return_index=True)
    values: dict[str, dict[str, NDArray[np.float64]]] = {}
    partial = []
    for (check, measure), pieces in parts.items():
        column = np.full(len(instances), np.nan)
        for whose, found in pieces:
            column[np.searchsorted(instances, whose)] = found
        values.setdefault(check, {})[measure] = column
        whose = np.sort(np.concatenate([one for one, _ in pieces]))
        if not np.array_equal(whose, instances):
            partial.append(f"{check}.{measure}")
    return MeasuredValues(instances, predicted[first], label[first], values, tuple(partial))
