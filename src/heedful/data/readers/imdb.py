"""Large Movie Review Dataset (Maas et al., 2011): one file per review, one folder per class."""

from collections.abc import Iterator
from pathlib import Path

from heedful.data.dataset import NumberedRow
from heedful.data.readers.base import list_folder, read_text_file, register_reader
from heedful.data.sources.row_schema import BadLine

CLASSES = {"neg": "negative", "pos": "positive"}


def _find(folder: Path) -> dict[str, Path]:
    splits = {split: folder / split for split in ("train", "test")}
    return {
        split: at for split, at in splits.items() if all((at / part).is_dir() for part in CLASSES)
    }


@register_reader(
    "imdb",
    "IMDB reviews: the folder aclImdb, with train and test, each with neg and pos.",
    layout="the folder aclImdb, with train/neg, train/pos and so on",
    find=_find,
    subfolders=("aclImdb",),
)
def read_reviews(folder: Path) -> Iterator[NumberedRow]:
    """Read reviews as they are distributed, with line breaks as `<br />`."""
    files = (
        (file, label)
        for part, label in CLASSES.items()
        for file in list_folder(folder / part)
        if file.name.endswith(".txt")
    )
    for number, (file, label) in enumerate(files, start=1):
        text = read_text_file(file)
        yield number, text if isinstance(text, BadLine) else {"text": text, "label": label}
