"""Clinical notes of MIMIC-III (Johnson et al., 2016), as a table that each user makes.

The notes require a signed agreement; heedful neither ships nor downloads them.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from heedful.data.dataset import NumberedRow
from heedful.data.readers.base import SINGLE_SPLIT, find_files, parse_rows, register_reader
from heedful.data.sources.files import read_csv_rows

NAMES = {"train": ("train.csv",), "dev": ("dev.csv", "valid.csv"), "test": ("test.csv",)}


def _find(path: Path) -> dict[str, Path]:
    if not path.is_file():
        return find_files(NAMES, path)
    return {SINGLE_SPLIT[0]: path} if path.suffix.lower() == ".csv" else {}


@register_reader(
    "mimic",
    "Clinical notes: your own .csv with text and label, or a folder with train.csv, dev.csv, …",
    layout="a .csv file with text and label, or a folder with train.csv",
    find=_find,
)
def read_notes(path: Path) -> Iterator[NumberedRow]:
    """Read notes; columns may be in capitals, as in the tables of MIMIC."""
    return parse_rows(read_csv_rows(path), _lower_columns)


def _lower_columns(row: Mapping[str, object]) -> dict[str, object]:
    return {column.lower(): value for column, value in row.items()}
