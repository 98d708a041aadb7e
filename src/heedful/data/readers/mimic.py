"""Clinical notes of MIMIC-III (Johnson et al., 2016), as a table that each user makes.

The notes require a signed agreement; heedful neither ships nor downloads them.
"""

from pathlib import Path

from heedful.data.dataset import SINGLE_SPLIT
from heedful.data.readers.base import SplitReader, find_files
from heedful.data.sources.files import read_csv_rows

NAMES = {"train": ("train.csv",), "dev": ("dev.csv", "valid.csv"), "test": ("test.csv",)}


def _find(path: Path) -> dict[str, Path]:
    if not path.is_file():
        return find_files(NAMES, path)
    return {SINGLE_SPLIT[0]: path} if path.suffix.lower() == ".csv" else {}


MIMIC = SplitReader(
    "mimic",
    "Clinical notes: your own .csv with text and label, or a folder with train.csv, dev.csv, …",
    layout="a .csv file with text and label, or a folder with train.csv",
    find=_find,
    items=read_csv_rows,
    # columns may be in capitals, as in the tables of MIMIC
    parse=lambda row: {column.lower(): value for column, value in row.items()},
).register()
