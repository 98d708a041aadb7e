"""Large Movie Review Dataset (Maas et al., 2011): a file for each review, folders for classes."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from heedful.data.dataset import NumberedRow
from heedful.data.readers.base import (
    ReaderSplits,
    decode_utf8,
    find_subfolder,
    layout_error,
    list_folder,
    read_whole_file,
    readers,
    require_path,
)
from heedful.data.sources.row_schema import BadLine

CLASSES = {"neg": "negative", "pos": "positive"}


@readers.register("imdb")
def imdb(name: str, path: str) -> ReaderSplits:
    """IMDB reviews: the folder aclImdb, with train and test, each with neg and pos."""
    folder = find_subfolder(require_path(name, path), "aclImdb")
    there = [split for split in ("train", "test") if _is_split(folder / split)]
    if not there:
        raise layout_error(name, "the folder aclImdb, with train/neg, train/pos and so on", folder)
    return ReaderSplits(name, {split: partial(read_reviews, folder / split) for split in there})


def _is_split(folder: Path) -> bool:
    return all((folder / part).is_dir() for part in CLASSES)


def read_reviews(folder: Path) -> Iterator[NumberedRow]:
    """The reviews as they were distributed, line breaks `<br />` and all."""
    files = [
        (file, label)
        for part, label in CLASSES.items()
        for file in list_folder(folder / part)
        if file.name.endswith(".txt")
    ]
    for number, (file, label) in enumerate(files, start=1):
        content = read_whole_file(file)
        text = content if isinstance(content, BadLine) else decode_utf8(content)
        yield number, text if isinstance(text, BadLine) else {"text": text, "label": label}
