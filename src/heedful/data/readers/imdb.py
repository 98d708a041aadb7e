"""Large Movie Review Dataset (Maas et al., 2011): a file for each review, folders for classes."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from heedful.data.dataset import Numbered
from heedful.data.readers.base import (
    Splits,
    decoded,
    entries,
    existing,
    inside,
    misplaced,
    readers,
    whole_file,
)
from heedful.data.sources.row_schema import BadLine

CLASSES = {"neg": "negative", "pos": "positive"}


@readers.register("imdb")
def imdb(name: str, path: str) -> Splits:
    """IMDB reviews: the folder aclImdb, with train and test, each with neg and pos."""
    folder = inside(existing(name, path), "aclImdb")
    there = [split for split in ("train", "test") if _is_split(folder / split)]
    if not there:
        raise misplaced(name, "the folder aclImdb, with train/neg, train/pos and so on", folder)
    return Splits(name, {split: partial(review_rows, folder / split) for split in there})


def _is_split(folder: Path) -> bool:
    return all((folder / part).is_dir() for part in CLASSES)


def review_rows(folder: Path) -> Iterator[Numbered]:
    """The reviews as they were distributed, line breaks `<br />` and all."""
    files = [
        (file, label)
        for part, label in CLASSES.items()
        for file in entries(folder / part)
        if file.name.endswith(".txt")
    ]
    for number, (file, label) in enumerate(files, start=1):
        content = whole_file(file)
        text = content if isinstance(content, BadLine) else decoded(content)
        yield number, text if isinstance(text, BadLine) else {"text": text, "label": label}
