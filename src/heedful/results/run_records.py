"""The records of one run, from which reports are made."""

import tomllib
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float64, Int64
from numpy.typing import NDArray

from heedful.core.records import Verdict
from heedful.results.tables import MeasurementColumns, PartitionedTable, TextValues, gather_columns
from heedful.results.text_ids import read_text_ids

DIRECTION_SIGNS = range(0x202A, 0x202F), range(0x2066, 0x206A)


@dataclass(frozen=True, eq=False)
class RunRecords:
    """All that a run folder holds, read file by file; `texts` is None where it kept no words.

    `source` is the run that the files belong to: a temporary run removes them when it is deleted.
    """

    verdict: Verdict
    manifest: Mapping[str, Any]
    measurements: PartitionedTable
    texts: PartitionedTable | None = None
    plan: str = ""
    maps: PartitionedTable | None = None
    source: object = None
    text_ids: PartitionedTable | None = None

    @cached_property
    def columns(self) -> MeasurementColumns:
        """The measurements as one column per key."""
        return gather_columns(self.measurements)

    @property
    def instances(self) -> Int64[np.ndarray, "n"]:
        """Every instance that was measured, in order."""
        return self.columns.instances

    @cached_property
    def predicted(self) -> list[str]:
        """The predicted class of each instance."""
        return _shown(self.columns.predicted)

    @cached_property
    def label(self) -> list[str]:
        """The label in the data of each instance."""
        return _shown(self.columns.label)

    @property
    def level(self) -> float:
        """The level of the intervals."""
        return float(self.manifest.get("level", 0.95))

    def settings(self, check: str) -> Mapping[str, Any]:
        """The settings of a check in the plan, with the plan's ε; empty where no plan was kept."""
        try:
            plan = tomllib.loads(self.plan)
            shared = {"epsilon": plan["epsilon"]} if "epsilon" in plan else {}
            return {**shared, **plan["settings"][check]}
        except (tomllib.TOMLDecodeError, RecursionError, KeyError, TypeError):
            return {}

    def number_setting(self, check: str, name: str) -> float | None:
        """A number among the settings of a check; None where the plan has none."""
        found = self.settings(check).get(name)
        return float(found) if isinstance(found, int | float) else None

    def column(self, check: str, measure: str, **keys: Any) -> TextValues:
        """One value per text; NaN where it is undefined or was not measured."""
        return self.columns.column(check, measure, **keys)

    @cached_property
    def lengths(self) -> TextValues:
        """The number of words of each text; NaN where the run kept no words of it."""
        return text_lengths(self.texts, self.instances)

    @cached_property
    def contents(self) -> NDArray[Any]:
        """What tells texts apart: a digest of each; its number where the run kept none."""
        found = read_text_ids(self.text_ids, self.instances)
        return self.instances if found is None else found.content

    def words_of(self, instances: Collection[int]) -> list[dict[str, Any]]:
        """The words and scores of some instances, in the order of the data."""
        wanted, found = pa.array(sorted(instances), pa.int64()), list[dict[str, Any]]()
        for table in self.texts.read() if self.texts else ():
            found += table.filter(pc.is_in(table["instance"], wanted)).to_pylist()
        return sorted(found, key=lambda row: int(row["instance"]))


def text_lengths(
    texts: PartitionedTable | None, instances: Int64[np.ndarray, "n"]
) -> Float64[np.ndarray, "n"]:
    """The number of words of each text; NaN where no words of it were kept."""
    lengths = np.full(len(instances), np.nan)
    for table in texts.read(["instance", "words"]) if texts else ():
        counts = pc.list_value_length(table["words"]).to_numpy()
        whose = table["instance"].to_numpy()
        known = np.isin(whose, instances)  # a run may keep the words of others too
        lengths[np.searchsorted(instances, whose[known])] = counts[known]
    return lengths


def _shown(names: NDArray[Any]) -> list[str]:
    """Class names fit for a page; there are few, so each is looked at once."""
    known = {name: sanitise_text(name) for name in set(names.tolist())}
    return [known[name] for name in names.tolist()]


def sanitise_text(text: str) -> str:
    """Characters that a page cannot hold, or that reorder the text around them, become U+FFFD.

    Joiners stay: emoji and many scripts are spelled with them.

    >>> sanitise_text("a\\x00b\\u202ec")
    'a\ufffdb\ufffdc'
    """
    if text.isprintable():  # nearly always, and much faster than to look at every sign
        return text
    return "".join("\N{REPLACEMENT CHARACTER}" if _unfit(sign) else sign for sign in text)


def _unfit(sign: str) -> bool:
    reorders = any(ord(sign) in signs for signs in DIRECTION_SIGNS)
    return reorders or unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp")
