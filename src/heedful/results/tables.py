"""Measurements in many files, read one file at a time, and columns gathered from them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float64, Int64
from numpy.typing import NDArray

from heedful.core.errors import RunError
from heedful.core.records import KEY_COLUMNS, WORD_SCORES, MeasureKey

TableReader = Callable[[Sequence[str] | None], pa.Table]
TextValues = Float64[np.ndarray, "n"]
SeedTable = Float64[np.ndarray, "_ _"]  # one row per seed, one column per text
KEY_FIELDS = ("check", "measure", *KEY_COLUMNS)
MEASUREMENT_SCHEMA = pa.schema(
    {
        "instance": pa.int64(),
        **dict.fromkeys(("predicted", "label", "check", "measure", "method"), pa.string()),
        **dict.fromkeys(("layer", "head", "seed"), pa.int64()),
        "setting": pa.string(),
        "value": pa.float64(),
    }
)
TEXT_SCHEMA = pa.schema(
    {
        "instance": pa.int64(),
        **dict.fromkeys(("predicted", "label"), pa.string()),
        "probability": pa.float64(),
        "words": pa.list_(pa.string()),
        **dict.fromkeys(WORD_SCORES, pa.list_(pa.float64())),
        "question": pa.string(),  # null in runs that are older than this column
    }
)
TEXT_ID_SCHEMA = pa.schema(
    {"instance": pa.int64(), **dict.fromkeys(("content", "cluster"), pa.string())}
)
MAP_SCHEMA = pa.schema(
    {
        **dict.fromkeys(("instance", "layer", "head"), pa.int64()),
        **dict.fromkeys(("queries", "keys"), pa.list_(pa.string())),
        "weights": pa.list_(pa.float64()),
    }
)
Pieces = list[tuple[NDArray[np.int64], NDArray[np.float64]]]


@dataclass(frozen=True, eq=False)
class PartitionedTable:
    """Tables with the same columns; only the table being read is in memory."""

    readers: tuple[TableReader, ...]

    @classmethod
    def of(cls, table: pa.Table) -> "PartitionedTable":
        """One table that is in memory already."""
        return cls((lambda columns: table if columns is None else table.select(list(columns)),))

    def read(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The tables one after the other, with the given columns or with all."""
        return (read(columns) for read in self.readers)

    def whole(self) -> pa.Table:
        """All rows as one table."""
        return pa.concat_tables(self.read())


@dataclass(frozen=True, eq=False)
class MeasurementColumns:
    """One value per text and key, texts in order of their instance.

    NaN where a value is undefined or was not measured. `partial` names the measures, with or
    without a method, that some text lacks.
    """

    instances: Int64[np.ndarray, "n"]
    predicted: NDArray[Any]  # class names
    label: NDArray[Any]
    values: Mapping[MeasureKey, TextValues]
    partial: tuple[str, ...] = ()

    def column(self, check: str, measure: str, **keys: Any) -> TextValues:
        """The values of a measure under exactly these keys; all NaN where it was not measured."""
        found = self.values.get(MeasureKey(check, measure, **keys))
        return np.full(len(self.instances), np.nan) if found is None else found

    def of_check(self, check: str) -> dict[MeasureKey, TextValues]:
        """All columns of one check."""
        return {key: one for key, one in self.values.items() if key.check == check}

    def at(self, instances: Int64[np.ndarray, "m"]) -> "MeasurementColumns":
        """The columns of some texts, which must be among these, in the order given."""
        places = np.searchsorted(self.instances, instances)
        values = {key: one[places] for key, one in self.values.items()}
        return MeasurementColumns(
            instances, self.predicted[places], self.label[places], values, self.partial
        )

    @cached_property
    def seeds(self) -> dict[MeasureKey, list[MeasureKey]]:
        """For each key that was measured under several seeds, its keys with a seed."""
        found: dict[MeasureKey, list[MeasureKey]] = {}
        for key in self.values:
            if key.seed is not None:
                found.setdefault(key._replace(seed=None), []).append(key)
        return {key: rows for key, rows in found.items() if len(rows) > 1}

    def by_seed(self, key: MeasureKey) -> SeedTable:
        """The values of a key under each seed, one row per seed, columns aligned by text."""
        return np.stack([self.values[one] for one in self.seeds[key]])


def gather_columns(tables: PartitionedTable) -> MeasurementColumns:
    """Read measurements table by table; rows about the data set as a whole are left out."""
    parts: dict[MeasureKey, Pieces] = {}
    classes: list[tuple[NDArray[np.int64], NDArray[Any], NDArray[Any]]] = []
    for table in tables.read(["instance", "predicted", "label", *KEY_FIELDS, "value"]):
        rows = table.filter(pc.greater(table["instance"], -1))
        codes, keys = _encode_keys(rows)
        instances = rows["instance"].to_numpy()
        values = rows["value"].cast(pa.float64()).to_numpy()
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(len(keys) + 1))
        for key, start, end in zip(keys, ends[:-1], ends[1:], strict=True):
            chosen = order[start:end]
            parts.setdefault(key, []).append((instances[chosen], values[chosen]))
        known, first = np.unique(instances, return_index=True)
        named = rows.select(["predicted", "label"]).take(pa.array(first))
        classes.append((known, _class_names(named["predicted"]), _class_names(named["label"])))
    return _arrange(classes, parts)


def _encode_keys(table: pa.Table) -> tuple[NDArray[np.int64], list[MeasureKey]]:
    """The code of each row's key, and the keys in the order of their first row."""
    mixed = np.zeros(len(table), dtype=np.int64)
    names: list[list[Any]] = []
    for field in KEY_FIELDS:
        coded = table[field].combine_chunks().dictionary_encode(null_encoding="encode")
        known = coded.dictionary.to_pylist()
        mixed = mixed * max(1, len(known)) + coded.indices.to_numpy()
        names.append(known)
    found, first, codes = np.unique(mixed, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.argsort(order)
    return place[codes], [_decode_key(int(one), names) for one in found[order]]


def _decode_key(mixed: int, names: list[list[Any]]) -> MeasureKey:
    parts: list[Any] = []
    for known in reversed(names):
        mixed, place = divmod(mixed, len(known))
        parts.append(known[place])
    check, measure, *rest = reversed(parts)
    return MeasureKey(check or "", measure or "", *rest)


def _class_names(column: pa.ChunkedArray) -> NDArray[Any]:
    """Class names as Python strings, each of them once in memory."""
    coded = column.fill_null("").combine_chunks().dictionary_encode()
    names = np.array([*coded.dictionary.to_pylist(), ""], dtype=object)
    found: NDArray[Any] = names[coded.indices.to_numpy()]
    return found


def _arrange(
    classes: list[tuple[NDArray[np.int64], NDArray[Any], NDArray[Any]]],
    parts: Mapping[MeasureKey, Pieces],
) -> MeasurementColumns:
    if not classes:
        nothing = np.empty(0, dtype=object)
        return MeasurementColumns(np.empty(0, dtype=np.int64), nothing, nothing, {})
    every, predicted, label = (np.concatenate(one) for one in zip(*classes, strict=True))
    instances, first = np.unique(every, return_index=True)
    values: dict[MeasureKey, NDArray[np.float64]] = {}
    partial: dict[str, None] = {}
    for key, pieces in parts.items():
        whose, found = (np.concatenate(one) for one in zip(*pieces, strict=True))
        if len(np.unique(whose)) < len(whose):
            raise RunError(f"{key} was measured twice on a text; the run folder is damaged.")
        column = np.full(len(instances), np.nan)
        column[np.searchsorted(instances, whose)] = np.where(np.isfinite(found), found, np.nan)
        values[key] = column
        if len(whose) < len(instances) and key._replace(method=None).plain:
            partial[str(key)] = None
    return MeasurementColumns(instances, predicted[first], label[first], values, tuple(partial))


def import_pandas() -> Any:
    """The pandas package, or the error that says how to install it."""
    try:
        import pandas
    except ImportError:
        raise RunError("to_dataframe needs pandas: pip install pandas.") from None
    return pandas
