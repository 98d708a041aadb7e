"""Reviews in folders."""

import pytest

from heedful.core.errors import DataError
from heedful.data import read, splits
from heedful.data.readers.imdb import IMDB
from heedful.data.sources.row_schema import BadLine


@pytest.fixture
def reviews(tmp_path):
    texts = {
        "train/neg/0_1.txt": "Dull.<br /><br />Long.",
        "train/neg/10_2.txt": "Bad",
        "train/pos/0_9.txt": "Fine",
        "train/pos/urls.md": "not a review",
        "train/unsup/0_0.txt": "no label",
        "test/neg/1_3.txt": "Poor",
        "test/pos/2_8.txt": "Über",
    }
    for name, text in texts.items():
        file = tmp_path / "aclImdb" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tmp_path


def test_five_reviews(reviews):
    name = f"imdb:{reviews}"
    assert splits(name) == splits(f"{name}/aclImdb") == ("train", "test")
    found = {split: [(e.text, e.label) for e in read(name, split=split)] for split in splits(name)}
    assert found == {
        "train": [("Dull.<br /><br />Long.", 0), ("Bad", 0), ("Fine", 1)],
        "test": [("Poor", 0), ("Über", 1)],
    }
    assert read(name).labels == ("negative", "positive")


def test_files_that_cannot_be_read_are_bad_rows(reviews):
    folder = reviews / "aclImdb" / "test"
    (folder / "neg" / "2_1.txt").write_bytes(b"\xff\xfe")
    (folder / "neg" / "3_1.txt").mkdir()
    (folder / "pos" / "loop.txt").symlink_to(folder / "pos" / "loop.txt")
    assert [row for _, row in IMDB.rows(folder) if isinstance(row, BadLine)] == [
        BadLine("not UTF-8"),
        BadLine("not a file"),
        BadLine("not a file"),
    ]


def test_a_folder_without_classes(tmp_path):
    (tmp_path / "train").mkdir()
    with pytest.raises(DataError, match=r"must be the folder aclImdb, .* a folder with train. See"):
        read(f"imdb:{tmp_path}")
