"""Every measurement of a run as a column over its texts, those of a setting too."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from jaxtyping import Float64, Int64
from numpy.typing import NDArray

from heedful.core.errors import RunError
from heedful.results.tables import PartitionedTable

KEY_FIELDS = ("check", "measure", "setting")
SEED_PATTERN = re.compile(r"seed -?\d+")
SeedRows = Float64[np.ndarray, "_ _"]  # one row per seed, one column per text


class MeasureKey(NamedTuple):
    """What was measured; `setting` is None for the measure as it stands in the verdict."""

    check: str
    measure: str
    setting: str | None = None

    def __str__(self) -> str:
        setting = f"[{self.setting}]" if self.setting is not None else ""
        return f"{self.check}.{self.measure}{setting}" if self.check else self.measure + setting


@dataclass(frozen=True, eq=False)
class MeasurementColumns:
    """One value per text and key; NaN where it is undefined, infinite or was not measured."""

    instances: Int64[np.ndarray, "n"]
    values: Mapping[MeasureKey, Float64[np.ndarray, "n"]]

    def at(self, instances: Int64[np.ndarray, "m"]) -> "MeasurementColumns":
        """Those of some texts, which must be among these, in their order."""
        places = np.searchsorted(self.instances, instances)
        return MeasurementColumns(instances, {key: one[places] for key, one in self.values.items()})

    @cached_property
    def seeds(self) -> dict[MeasureKey, list[MeasureKey]]:
        """The measures that have rows for several seeds, and the keys of these."""
        found: dict[MeasureKey, list[MeasureKey]] = {}
        for key in self.values:
            if key.setting is not None and SEED_PATTERN.fullmatch(key.setting):
                found.setdefault(MeasureKey(key.check, key.measure), []).append(key)
        return {key: rows for key, rows in found.items() if len(rows) > 1}

    def of_seeds(self, key: MeasureKey) -> SeedRows:
        """A measure's rows, one for each seed."""
        return np.stack([self.values[one] for one in self.seeds[key]])


def gather_columns(tables: PartitionedTable) -> MeasurementColumns:
    """Read a run's measurements table by table; rows of the data set as a whole stand apart."""
    parts: dict[MeasureKey, list[tuple[NDArray[np.int64], NDArray[np.float64]]]] = {}
    for table in tables.read(["instance", *KEY_FIELDS, "value"]):
        codes, keys = _encode_keys(table)
        instances = table["instance"].to_numpy()
        values = table["value"].cast(pa.float64()).to_numpy()
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(len(keys) + 1))
        for key, start, end in zip(keys, ends[:-1], ends[1:], strict=True):
            rows = order[start:end]
            rows = rows[instances[rows] >= 0]
            parts.setdefault(key, []).append((instances[rows], values[rows]))
    whose = [one for pieces in parts.values() for one, _ in pieces]
    every = np.unique(np.concatenate([*whose, np.empty(0, dtype=np.int64)]))
    return MeasurementColumns(
        every, {key: _column(key, pieces, every) for key, pieces in parts.items()}
    )


def _encode_keys(table: pa.Table) -> tuple[NDArray[np.int64], list[MeasureKey]]:
    """The number of each row's key, and the keys in the order in which they first come."""
    mixed = np.zeros(len(table), dtype=np.int64)
    words = []
    for name in KEY_FIELDS:
        coded = table[name].combine_chunks().dictionary_encode(null_encoding="encode")
        names = coded.dictionary.to_pylist()
        mixed = mixed * len(names) + coded.indices.to_numpy()
        words.append(names)
    found, first, codes = np.unique(mixed, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place[codes], [_key(int(one), words) for one in found[order]]


def _key(mixed: int, words: list[list[str | None]]) -> MeasureKey:
    rest, setting = divmod(mixed, len(words[2]))
    check, measure = divmod(rest, len(words[1]))
    return MeasureKey(words[0][check] or "", words[1][measure] or "", words[2][setting])


def _column(
    key: MeasureKey,
    pieces: list[tuple[NDArray[np.int64], NDArray[np.float64]]],
    every: Int64[np.ndarray, "n"],
) -> Float64[np.ndarray, "n"]:
    instances, values = (np.concatenate(one) for one in zip(*pieces, strict=True))
    if len(np.unique(instances)) < len(instances):
        raise RunError(f"{key} was measured twice on a text; the run folder is damaged.")
    column = np.full(len(every), np.nan)
    column[np.searchsorted(every, instances)] = np.where(np.isfinite(values), values, np.nan)
    return column
