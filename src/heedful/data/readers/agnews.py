"""AG's News (Zhang et al., 2015): world news and business news, told by their description."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from heedful.data.dataset import Numbered
from heedful.data.readers.base import (
    Splits,
    existing,
    inside,
    misplaced,
    readers,
    split_files,
)
from heedful.data.sources.files import csv_lines, is_utf8, readable
from heedful.data.sources.row_schema import BadLine, LeftOut

NAMES = {split: (f"{split}.csv",) for split in ("train", "test")}
CLASSES = {"1": "world", "3": "business"}
OTHERS = {"2": "on sports", "4": "on science"}
CELLS = 3  # class, title, description


@readers.register("agnews")
def agnews(name: str, path: str) -> Splits:
    """AG News, world or business: a folder with train.csv and test.csv (class, title, text)."""
    folder = inside(existing(name, path), "ag_news_csv")
    if not (files := split_files(folder, NAMES)):
        raise misplaced(name, "the folder ag_news_csv, with train.csv and test.csv", folder)
    return Splits(name, {split: partial(article_rows, file) for split, file in files.items()})


def article_rows(path: Path) -> Iterator[Numbered]:
    """The descriptions, without their titles; articles of the two other classes are left out."""
    with (
        readable(path),
        path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream,
    ):
        for number, cells in csv_lines(path, stream):
            yield number, cells if isinstance(cells, BadLine) else _row(cells)


def _row(cells: list[str]) -> dict[str, object] | BadLine | LeftOut:
    if not is_utf8(cells):
        return BadLine("not UTF-8")
    if len(cells) != CELLS:
        return BadLine(f"not {CELLS} cells")
    if cells[0] in OTHERS:
        return LeftOut(OTHERS[cells[0]])
    if cells[0] not in CLASSES:
        return BadLine("no class from 1 to 4")
    # In these files a backslash stands for a line break.
    return {"text": cells[2].replace("\\", " "), "label": CLASSES[cells[0]], "title": cells[1]}
