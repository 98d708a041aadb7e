"""Adverse drug reactions in tweets (Nikfarjam et al., 2015): tab-separated, made by each user.

Only the ids of tweets are distributed; users who have the texts put them in the last column.
"""

from collections.abc import Iterator
from pathlib import Path

from heedful.data.dataset import NumberedRow
from heedful.data.readers.base import (
    SINGLE_SPLIT,
    ParsedRow,
    find_files,
    list_folder,
    read_text_lines,
    register_reader,
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


@register_reader(
    "adr",
    "Tweets on drug reactions: a .tsv file or folder; the last columns are label and text.",
    layout="a .tsv file, or a folder with one or with train.tsv",
    find=_find,
)
def read_tweets(path: Path) -> Iterator[NumberedRow]:
    """Read tweets; those that are no longer available are left out."""
    for number, line in read_text_lines(path):
        if isinstance(line, BadLine):
            yield number, line
        elif not _is_header(number, cells := line.split("\t")):
            yield number, _parse_row(cells)


def _is_header(number: int, cells: list[str]) -> bool:
    return number == 1 and len(cells) > 1 and cells[-2].strip().lower() in HEADINGS


def _parse_row(cells: list[str]) -> ParsedRow:
    if len(cells) < 2:
        return BadLine("no tab")
    label, text = cells[-2].strip(), cells[-1].strip()
    if label not in LABELS:
        return BadLine("no label 0 or 1 in the last column but one")
    if text.strip('"').lower() in UNAVAILABLE:
        return LeftOut("tweets that are not available")
    return {"text": text, "label": label}
