"""Clinical notes of MIMIC-III (Johnson et al., 2016), as a table that each user makes.

The notes are given to those only who have signed for them; heedful ships none and fetches none.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from heedful.data.dataset import NumberedRow
from heedful.data.readers.base import (
    SINGLE_SPLIT,
    ReaderSplits,
    layout_error,
    readers,
    require_path,
    split_files,
)
from heedful.data.sources.files import read_csv_rows

NAMES = {
    split: tuple(f"{one}.csv" for one in names)
    for split, names in {"train": ("train",), "dev": ("dev", "valid"), "test": ("test",)}.items()
}


@readers.register("mimic")
def mimic(name: str, path: str) -> ReaderSplits:
    """Clinical notes: your own .csv with text and label, or a folder with train.csv, dev.csv, …"""
    place = require_path(name, path)
    files = {SINGLE_SPLIT[0]: place} if place.is_file() else split_files(place, NAMES)
    if not files or not all(file.suffix.lower() == ".csv" for file in files.values()):
        raise layout_error(
            name, "a .csv file with text and label, or a folder with train.csv", place
        )
    return ReaderSplits(name, {split: partial(read_notes, file) for split, file in files.items()})


def read_notes(path: Path) -> Iterator[NumberedRow]:
    """The notes; columns may be in capitals, as the tables of MIMIC have them."""
    for number, row in read_csv_rows(path):
        yield (
            number,
            {key.lower(): one for key, one in row.items()} if isinstance(row, Mapping) else row,
        )
