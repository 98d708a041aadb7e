"""Clinical notes of MIMIC-III (Johnson et al., 2016), as a table that each user makes.

The notes are given to those only who have signed for them; heedful ships none and fetches none.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from heedful.data.dataset import Numbered
from heedful.data.readers.base import (
    LONE,
    Splits,
    existing,
    misplaced,
    readers,
    split_files,
)
from heedful.data.sources.files import csv_rows

NAMES = {
    split: tuple(f"{one}.csv" for one in names)
    for split, names in {"train": ("train",), "dev": ("dev", "valid"), "test": ("test",)}.items()
}


@readers.register("mimic")
def mimic(name: str, path: str) -> Splits:
    """Clinical notes: your own .csv with text and label, or a folder with train.csv, dev.csv, …"""
    place = existing(name, path)
    files = {LONE[0]: place} if place.is_file() else split_files(place, NAMES)
    if not files or not all(file.suffix.lower() == ".csv" for file in files.values()):
        raise misplaced(name, "a .csv file with text and label, or a folder with train.csv", place)
    return Splits(name, {split: partial(note_rows, file) for split, file in files.items()})


def note_rows(path: Path) -> Iterator[Numbered]:
    """The notes; columns may be in capitals, as the tables of MIMIC have them."""
    for number, row in csv_rows(path):
        yield (
            number,
            {key.lower(): one for key, one in row.items()} if isinstance(row, Mapping) else row,
        )
