"""Pairs of sentences in JSON lines."""

import gzip
import json

import pytest

from heedful.core.errors import DataError
from heedful.data import read, splits
from heedful.data.readers.snli import SNLI
from heedful.data.sources.row_schema import BadLine, LeftOut

PAIRS = [
    ("A man sleeps.", "A man is awake.", "contradiction"),
    ("A man sleeps.", "A person sleeps.", "entailment"),
    ("A man sleeps.", "He dreams.", "neutral"),
    ("A man sleeps.", "He is old.", "-"),
    ("A dog runs.", "An animal runs.", "entailment"),
]


def lines(pairs):
    keys = ("sentence1", "sentence2", "gold_label")
    told = (dict(zip(keys, pair, strict=True)) | {"captionID": "1.jpg"} for pair in pairs)
    return "\n".join(map(json.dumps, told))


def test_five_pairs(tmp_path):
    folder = tmp_path / "snli_1.0"
    folder.mkdir()
    (folder / "snli_1.0_test.jsonl").write_text(lines(PAIRS))
    (folder / "snli_1.0_train.jsonl.gz").write_bytes(gzip.compress(lines(PAIRS[:3]).encode()))
    name = f"snli:{tmp_path}"
    data = read(name)
    assert splits(name) == ("train", "test")
    assert data.labels == ("contradiction", "entailment", "neutral")
    assert [(e.text, e.pair, e.label) for e in data] == [
        ("A man sleeps.", "A man is awake.", 0),
        ("A man sleeps.", "A person sleeps.", 1),
        ("A man sleeps.", "He dreams.", 2),
        ("A dog runs.", "An animal runs.", 1),
    ]
    assert str(data.left_out) == "1 row left out: 1 without a gold label"
    assert len(read(name, split="train")) == 3


def test_bad_lines(tmp_path):
    file = tmp_path / "snli_1.0_test.jsonl"
    file.write_bytes(lines(PAIRS[3:4]).encode() + b'\n{"sentence1": "a"}\n[]\n\xff\n')
    assert dict(SNLI.rows(file)) == {
        1: LeftOut("without a gold label"),
        2: BadLine("no sentence2"),
        3: BadLine("not an object"),
        4: BadLine("not UTF-8"),
    }


def test_only_pairs_without_a_label_are_no_data(tmp_path):
    (tmp_path / "snli_1.0_test.jsonl").write_text(lines(PAIRS[3:4] * 2))
    with pytest.raises(DataError, match="is empty: 2 rows left out: 2 without a gold label; it"):
        read(f"snli:{tmp_path}")


def test_a_folder_without_pairs(tmp_path):
    for number in range(12):
        (tmp_path / f"snli_{number:02}.txt").write_text("")
    with pytest.raises(DataError, match=r"must be the folder snli_1.0, .*snli_07.txt, …. See docs"):
        splits(f"snli:{tmp_path}")
