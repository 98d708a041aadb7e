"""Adverse drug reactions in tweets (Nikfarjam et al., 2015): tab-separated, made by each user.

Tweets are not passed on, only their numbers; whoever has the texts puts them in the last column.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from heedful.data.dataset import NumberedRow
from heedful.data.readers.base import (
    SINGLE_SPLIT,
    ReaderSplits,
    layout_error,
    list_folder,
    read_text_lines,
    readers,
    require_path,
    split_files,
)
from heedful.data.sources.row_schema import BadLine, LeftOut

NAMES = {split: (f"{split}.tsv",) for split in ("train", "dev", "test")}
LABELS = ("0", "1")  # 1: somebody tells of a reaction
HEADINGS = ("label", "class", "annotation", "adr")
UNAVAILABLE = ("not available", "")  # what the usual scripts write for a tweet that is no more


@readers.register("adr")
def adr(name: str, path: str) -> ReaderSplits:
    """Tweets on drug reactions: a .tsv file or folder; the last columns are label and text."""
    place = require_path(name, path)
    files = split_files(place, NAMES)
    if not files:
        lone = [one for one in (list_folder(place) or [place]) if one.suffix == ".tsv"]
        if len(lone) != 1 or not lone[0].is_file():
            raise layout_error(name, "a .tsv file, or a folder with one or with train.tsv", place)
        files = {SINGLE_SPLIT[0]: lone[0]}
    return ReaderSplits(name, {split: partial(read_tweets, file) for split, file in files.items()})


def read_tweets(path: Path) -> Iterator[NumberedRow]:
    """The tweets; those that could not be had any more are left out."""
    for number, line in read_text_lines(path):
        if isinstance(line, BadLine):
            yield number, line
        elif not _is_header(number, cells := line.split("\t")):
            yield number, _row(cells)


def _is_header(number: int, cells: list[str]) -> bool:
    return number == 1 and len(cells) > 1 and cells[-2].strip().lower() in HEADINGS


def _row(cells: list[str]) -> dict[str, object] | BadLine | LeftOut:
    if len(cells) < 2:
        return BadLine("no tab")
    label, text = cells[-2].strip(), cells[-1].strip()
    if label not in LABELS:
        return BadLine("no label 0 or 1 in the last column but one")
    if text.strip('"').lower() in UNAVAILABLE:
        return LeftOut("tweets that are not available")
    return {"text": text, "label": label}
