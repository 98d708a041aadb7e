"""What a report is made from: the records of one run, and their columns."""

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float64, Int64
from numpy.typing import NDArray

from heedful.core.records import Verdict
from heedful.results.tables import (
    MeasuredValues,
    PartitionedTable,
    gather_measures,
    gather_settings,
    gather_settings_of_measures,
)

DIRECTION_SIGNS = range(0x202A, 0x202F), range(0x2066, 0x206A)


@dataclass(frozen=True, eq=False)
class RunRecords:
    """All that a run folder holds, read file by file; `texts` is None where no words were kept.

    `source` is what the files belong to: a temporary run removes them when nobody holds it.
    """

    verdict: Verdict
    manifest: Mapping[str, Any]
    measurements: PartitionedTable
    texts: PartitionedTable | None = None
    plan: str = ""
    maps: PartitionedTable | None = None
    source: object = None

    @cached_property
    def measured(self) -> MeasuredValues:
        """The measurements of single instances as columns."""
        return gather_measures(self.measurements)

    def by_setting(self, check: str, measure: str) -> dict[str, Float64[np.ndarray, "n"]]:
        """A measure's values for every setting it was taken under (layer, head, λ …)."""
        return gather_settings(self.measurements, check, measure)

    def by_every_setting(
        self, check: str, measures: Sequence[str]
    ) -> dict[str, dict[str, Float64[np.ndarray, "n"]]]:
        """The same of several measures, read once."""
        return gather_settings_of_measures(self.measurements, check, measures)

    @property
    def instances(self) -> Int64[np.ndarray, "n"]:
        """Every instance that was measured, in order."""
        return self.measured.instances

    @cached_property
    def predicted(self) -> list[str]:
        """The predicted class of each instance."""
        return _shown(self.measured.predicted)

    @cached_property
    def label(self) -> list[str]:
        """The label in the data of each instance."""
        return _shown(self.measured.label)

    def column(self, check: str, measure: str) -> Float64[np.ndarray, "n"]:
        """One value per instance; NaN where it is undefined or was not measured."""
        return self.measured.column(check, measure)

    @cached_property
    def lengths(self) -> Float64[np.ndarray, "n"]:
        """The number of words of each instance; NaN where the run kept none of it."""
        lengths = np.full(len(self.instances), np.nan)
        for table in self.texts.read(["instance", "words"]) if self.texts else ():
            counts = pc.list_value_length(table["words"]).to_numpy()
            whose = table["instance"].to_numpy()
            known = np.isin(whose, self.instances)  # a run may keep the words of others too
            lengths[np.searchsorted(self.instances, whose[known])] = counts[known]
        return lengths

    def words_of(self, instances: Collection[int]) -> list[dict[str, Any]]:
        """The words and scores of some instances, in the order of the data."""
        wanted, found = pa.array(sorted(instances), pa.int64()), list[dict[str, Any]]()
        for table in self.texts.read() if self.texts else ():
            found += table.filter(pc.is_in(table["instance"], wanted)).to_pylist()
        return sorted(found, key=lambda row: int(row["instance"]))


def _shown(names: NDArray[Any]) -> list[str]:
    """Class names fit for a page; there are few, so each is looked at once."""
    known = {name: sanitise_text(name) for name in set(names.tolist())}
    return [known[name] for name in names.tolist()]


def sanitise_text(text: str) -> str:
    """Signs that a page cannot hold, or that reorder what stands around them, become U+FFFD.

    Joiners stay: emoji and many scripts are spelled with them.

    >>> visible("a\\x00b\\u202ec")
    'a\ufffdb\ufffdc'
    """
    if text.isprintable():  # nearly always, and much faster than to look at every sign
        return text
    return "".join("\N{REPLACEMENT CHARACTER}" if _unfit(sign) else sign for sign in text)


def _unfit(sign: str) -> bool:
    if unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp"):
        return True
    return any(ord(sign) in signs for signs in DIRECTION_SIGNS)
