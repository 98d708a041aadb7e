"""AG's News (Zhang et al., 2015): world news and business news, told by their description."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from heedful.data.dataset import NumberedRow
from heedful.data.readers.base import (
    ReaderSplits,
    find_subfolder,
    layout_error,
    readers,
    require_path,
    split_files,
)
from heedful.data.sources.files import data_errors, is_utf8, read_csv_cells
from heedful.data.sources.row_schema import BadLine, LeftOut

NAMES = {split: (f"{split}.csv",) for split in ("train", "test")}
CLASSES = {"1": "world", "3": "business"}
SKIPPED_CLASSES = {"2": "on sports", "4": "on science"}
CELLS_PER_ROW = 3  # class, title, description


@readers.register("agnews")
def agnews(name: str, path: str) -> ReaderSplits:
    """AG News, world or business: a folder with train.csv and test.csv (class, title, text)."""
    folder = find_subfolder(require_path(name, path), "ag_news_csv")
    if not (files := split_files(folder, NAMES)):
        raise layout_error(name, "the folder ag_news_csv, with train.csv and test.csv", folder)
    return ReaderSplits(
        name, {split: partial(read_articles, file) for split, file in files.items()}
    )


def read_articles(path: Path) -> Iterator[NumberedRow]:
    """The descriptions, without their titles; articles of the two other classes are left out."""
    with (
        data_errors(path),
        path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream,
    ):
        for number, cells in read_csv_cells(path, stream):
            yield number, cells if isinstance(cells, BadLine) else _row(cells)


def _row(cells: list[str]) -> dict[str, object] | BadLine | LeftOut:
    if not is_utf8(cells):
        return BadLine("not UTF-8")
    if len(cells) != CELLS_PER_ROW:
        return BadLine(f"not {CELLS_PER_ROW} cells")
    if cells[0] in SKIPPED_CLASSES:
        return LeftOut(SKIPPED_CLASSES[cells[0]])
    if cells[0] not in CLASSES:
        return BadLine("no class from 1 to 4")
    # In these files a backslash stands for a line break.
    return {"text": cells[2].replace("\\", " "), "label": CLASSES[cells[0]], "title": cells[1]}
