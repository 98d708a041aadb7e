"""Adverse drug reactions in tweets (Nikfarjam et al., 2015): tab-separated, made by each user.

Only the ids of tweets are distributed; users who have the texts put them in the last column.
"""

from collections.abc import Iterator
from pathlib import Path

from heedful.data.dataset import SINGLE_SPLIT
from heedful.data.readers.base import (
    ParsedRow,
    SplitReader,
    find_files,
    list_folder,
    read_text_lines,
)
from heedful.data.sources.row_schema import BadLine, LeftOut

NAMES = {split: (f"{split}.tsv",) for split in ("train", "dev", "test")}
LABELS = ("0", "1")  # 1: the tweet reports a reaction
HEADINGS = ("label", "class", "annotation", "adr")
UNAVAILABLE = ("not available", "")  # what download scripts write for a deleted tweet


def _find(path: Path) -> dict[str, Path]:
    if files := find_files(NAMES, path):
        return files
    tables = [one for one in (list_folder(path) or [path]) if one.suffix == ".tsv"]
    return {SINGLE_SPLIT[0]: tables[0]} if len(tables) == 1 and tables[0].is_file() else {}


def _read_cells(path: Path) -> Iterator[tuple[int, list[str] | BadLine]]:
    """The cells of each line except a header."""
    for number, line in read_text_lines(path):
        cells = [] if isinstance(line, BadLine) else line.split("\t")
        is_header = number == 1 and len(cells) > 1 and cells[-2].strip().lower() in HEADINGS
        if not is_header:
            yield number, line if isinstance(line, BadLine) else cells


def _parse_tweet(cells: list[str]) -> ParsedRow:
    """Tweets that are no longer available are left out."""
    if len(cells) < 2:
        return BadLine("no tab")
    label, text = cells[-2].strip(), cells[-1].strip()
    if label not in LABELS:
        return BadLine("no label 0 or 1 in the last column but one")
    if text.strip('"').lower() in UNAVAILABLE:
        return LeftOut("tweets that are not available")
    return {"text": text, "label": label}


ADR = SplitReader(
    "adr",
    "Tweets on drug reactions: a .tsv file or folder; the last columns are label and text.",
    layout="a .tsv file, or a folder with one or with train.tsv",
    find=_find,
    items=_read_cells,
    parse=_parse_tweet,
).register()
