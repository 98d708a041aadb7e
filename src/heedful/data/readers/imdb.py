"""Large Movie Review Dataset (Maas et al., 2011): one file per review, one folder per class."""

from functools import partial
from pathlib import Path

from heedful.data.readers.base import ParsedRow, SplitReader, list_labelled_files, read_text_file
from heedful.data.sources.row_schema import BadLine

CLASSES = {"neg": "negative", "pos": "positive"}


def _find(folder: Path) -> dict[str, Path]:
    splits = {split: folder / split for split in ("train", "test")}
    return {
        split: at for split, at in splits.items() if all((at / part).is_dir() for part in CLASSES)
    }


def _parse_review(item: tuple[Path, str]) -> ParsedRow:
    """Reviews as they are distributed, with line breaks as `<br />`."""
    file, label = item
    text = read_text_file(file)
    return text if isinstance(text, BadLine) else {"text": text, "label": label}


IMDB = SplitReader(
    "imdb",
    "IMDB reviews: the folder aclImdb, with train and test, each with neg and pos.",
    layout="the folder aclImdb, with train/neg, train/pos and so on",
    find=_find,
    subfolders=("aclImdb",),
    items=partial(list_labelled_files, CLASSES, ending=".txt"),
    parse=_parse_review,
).register()
