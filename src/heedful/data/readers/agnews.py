"""AG's News (Zhang et al., 2015): descriptions of news articles, on the world or on business."""

from functools import partial

from heedful.data.readers.base import ParsedRow, SplitReader, find_files
from heedful.data.sources.files import is_utf8, read_csv_cells
from heedful.data.sources.row_schema import BadLine, LeftOut

NAMES = {split: (f"{split}.csv",) for split in ("train", "test")}
CLASSES = {"1": "world", "3": "business"}
SKIPPED_CLASSES = {"2": "on sports", "4": "on science"}
CELLS_PER_ROW = 3  # class, title, description


def _parse_article(cells: list[str]) -> ParsedRow:
    """Descriptions without titles; articles of the two other classes are left out."""
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


AGNEWS = SplitReader(
    "agnews",
    "AG News, world or business: a folder with train.csv and test.csv (class, title, text).",
    layout="the folder ag_news_csv, with train.csv and test.csv",
    find=partial(find_files, NAMES),
    subfolders=("ag_news_csv",),
    items=read_csv_cells,
    parse=_parse_article,
).register()
