"""What a report is made from: the records of one run, and their columns."""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float64, Int64

from heedful.core.records import Verdict

DIRECTION_SIGNS = range(0x202A, 0x202F), range(0x2066, 0x206A)


@dataclass(frozen=True, eq=False)
class Records:
    """All that a run folder holds; `texts` is None where the run kept no words."""

    verdict: Verdict
    manifest: Mapping[str, Any]
    measurements: pa.Table
    texts: pa.Table | None = None
    plan: str = ""

    @cached_property
    def rows(self) -> pa.Table:
        """Measurements of single instances, without those that a setting tells apart."""
        table = self.measurements
        return table.filter(
            pc.and_(pc.is_null(table["setting"]), pc.greater(table["instance"], -1))
        )

    @cached_property
    def instances(self) -> Int64[np.ndarray, "n"]:
        """Every instance that was measured, in order."""
        return np.unique(self.rows["instance"].to_numpy())

    @cached_property
    def predicted(self) -> list[str]:
        """The predicted class of each instance."""
        return self._first_of("predicted")

    @cached_property
    def label(self) -> list[str]:
        """The label in the data of each instance."""
        return self._first_of("label")

    @cached_property
    def measured_texts(self) -> pa.Table | None:
        """The words of the instances that were measured: a run may keep those of others too."""
        if self.texts is None:
            return None
        return self.texts.filter(pc.is_in(self.texts["instance"], pa.array(self.instances)))

    def column(self, check: str, measure: str) -> Float64[np.ndarray, "n"]:
        """One value per instance; NaN where it is undefined or was not measured."""
        rows = self.rows
        here = pc.and_(pc.equal(rows["check"], check), pc.equal(rows["measure"], measure))
        found = rows.filter(here)
        values = np.full(len(self.instances), np.nan)
        places = np.searchsorted(self.instances, found["instance"].to_numpy())
        values[places] = found["value"].cast(pa.float64()).to_numpy()
        return values

    def _first_of(self, name: str) -> list[str]:
        _, first = np.unique(self.rows["instance"].to_numpy(), return_index=True)
        return [visible(one or "") for one in self.rows[name].take(pa.array(first)).to_pylist()]


def visible(text: str) -> str:
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
