"""Rows in memory: a list of dicts, or a pandas DataFrame."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heedful.data.dataset import NumberedRow, rows_sha256
from heedful.data.sources.row_schema import BadLine

if TYPE_CHECKING:
    import pandas as pd

FRAME_BATCH = 1024


@dataclass(frozen=True, eq=False)
class RowsSource:
    """Dicts from column to value, numbered from 1."""

    rows: tuple[object, ...]
    name: str = "rows in memory"

    def sha256(self) -> str:
        """Hex digest of the rows as canonical JSON."""
        return rows_sha256(self)

    def __iter__(self) -> Iterator[NumberedRow]:
        for number, row in enumerate(self.rows, start=1):
            if isinstance(row, Mapping):
                yield number, {str(column): value for column, value in row.items()}
            else:
                yield number, BadLine("not an object")


@dataclass(frozen=True, eq=False)
class FrameSource:
    """The rows of a pandas DataFrame, numbered from 1; its index is ignored."""

    frame: "pd.DataFrame"
    name: str = "DataFrame in memory"

    def sha256(self) -> str:
        """Hex digest of the rows as canonical JSON."""
        return rows_sha256(self)

    def __iter__(self) -> Iterator[NumberedRow]:
        columns = [str(column) for column in self.frame.columns]
        for start in range(0, len(self.frame), FRAME_BATCH):
            part = self.frame.iloc[start : start + FRAME_BATCH].astype(object)
            # pandas has three missing values (NaN, NA, NaT); rows have one.
            cells = part.where(part.notna(), None).itertuples(index=False, name=None)
            for number, row in enumerate(cells, start=start + 1):
                yield number, dict(zip(columns, row, strict=True))
