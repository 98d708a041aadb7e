"""Every form of data: folders, names, tables, rows; and what to say to all others."""

import json

import numpy as np
import pandas as pd
import pytest

from heedful.core.errors import ConfigError, DataError, UnknownName
from heedful.data import Dataset, corpora, read, splits
from heedful.data.read import describe_equal_splits

ROW = json.dumps({"text": "a fine film", "label": "good"})


def folder(path, *names):
    path.mkdir(exist_ok=True)
    for name in names:
        (path / name).write_text(ROW.replace("fine", name))
    return path


def test_a_folder_has_a_file_for_each_split(tmp_path):
    where = folder(tmp_path / "d", "train.jsonl", "validation.jsonl", "test.jsonl", "notes.txt")
    assert splits(where) == ("train", "dev", "test")
    for split, name in (("train", "train"), ("dev", "validation"), ("val", "validation")):
        data = read(where, split=split)
        assert (data.name, data.split) == (str(where), split)
        assert next(iter(data)).text == f"a {name}.jsonl film"


def test_a_missing_split_is_named(tmp_path):
    where = folder(tmp_path / "d", "train.jsonl", "dev.jsonl")
    with pytest.raises(DataError, match=r"has no split 'test'. It has: train, dev"):
        read(where)


@pytest.mark.parametrize(
    "names",
    [("test.csv", "test.jsonl"), ("dev.jsonl", "val.jsonl"), ("test.jsonl", "test.jsonl.gz")],
)
def test_two_files_for_one_split_are_ambiguous(tmp_path, names):
    where = folder(tmp_path / "d", *names)
    with pytest.raises(
        DataError, match=f"several files for split .*: {', '.join(names)}. Keep one"
    ):
        read(where, split="dev" if "dev.jsonl" in names else "test")


def test_a_folder_without_splits(tmp_path):
    where = folder(tmp_path / "d", "rows.jsonl")
    for ask in (read, splits):
        with pytest.raises(DataError, match=r"has no train, dev or test file. A folder must hold"):
            ask(where)
    (where / "state.json").write_text("{}")
    with pytest.raises(DataError, match=f"written by `datasets`. Name it as hf:{where}"):
        read(where)


def test_a_lone_file_serves_any_split(tmp_path):
    file = folder(tmp_path, "rows.jsonl") / "rows.jsonl"
    assert splits(file) == ("all",)
    assert read(file, split="train").split == "train"


def test_a_missing_file_suggests_what_is_near(tmp_path):
    folder(tmp_path, "reviews.jsonl")
    for ask in (read, splits):
        with pytest.raises(DataError, match=r"no file or folder .*Did you mean '.*/reviews.jsonl'"):
            ask(str(tmp_path / "review.jsonl"))
    with pytest.raises(
        DataError, match=r"no file or folder 'sampel:movies'. Did you mean 'sample:m"
    ):
        read("sampel:movies")
    with pytest.raises(DataError, match=r"no file or folder '/no/such/place'. DATA is a path, hf:"):
        read("/no/such/place")


def test_unknown_corpora_suggest_what_is_near():
    with pytest.raises(UnknownName, match=r"'synthetic:nedle'. Did you mean 'synthetic:needle'\?"):
        read("synthetic:nedle")
    with pytest.raises(UnknownName, match="No corpus is named 'sample:books'"):
        splits("sample:books")


def test_corpora_are_registered_with_a_summary():
    assert {"sample:movies", "synthetic:needle", "synthetic:priority"} <= set(corpora)
    assert all(corpora.summary(name).endswith(".") for name in corpora)
    with pytest.raises(DataError, match=r"synthetic:needle has no split 'all'. It has: train, dev"):
        read("synthetic:needle", split="all")


def test_a_data_frame():
    frame = pd.DataFrame(
        {
            "text": ["a b"] * 200,
            "label": [1.0, 0.0] * 99 + [np.nan, 1.0],
            "tokens": [np.array(["a", "b"]), None] * 100,
            7: pd.array([1, None] * 100, dtype="Int64"),
        },
        index=range(200, 400),
    )
    data = read(frame)
    assert (data.name, data.labels, len(data)) == ("DataFrame in memory", ("0", "1"), 199)
    assert data.bad.lines == {"no label": (199,)}
    assert [e.tokens for e in list(data)[:2]] == [("a", "b"), None]
    assert data.sha256 == read(frame.reset_index(drop=True)).sha256
    assert splits(frame) == ("all",)


def test_rows_may_come_from_a_generator_and_be_read_twice():
    data = read({"text": "a", "label": flag} for flag in (True, False))
    assert data.labels == ("false", "true")
    assert [e.label for e in data] == [e.label for e in data] == [1, 0]


@pytest.mark.parametrize("data", [7, None, b"rows.jsonl", {"text": ["a"], "label": [1]}])
def test_other_things_are_not_data(data):
    with pytest.raises(
        ConfigError, match="Data must be a path, a name, a DataFrame or a list of d"
    ):
        read(data)


def test_a_data_set_passes_through_and_takes_new_labels():
    data = read(
        [{"text": "a", "label": "x"}, {"text": "b", "label": "y"}, {"text": "c", "label": "x"}]
    )
    assert read(data) is data is read(data, labels=("x", "y"))
    assert splits(data) == ("test",)
    again = read(data, labels=("y", "x"), limit=1)
    assert isinstance(again, Dataset)
    ((text, label),) = [(e.text, e.label) for e in again]
    assert label == {"a": 1, "b": 0, "c": 1}[text]
    assert len(read(data.sample(2), labels=("y", "x"))) == 2
    assert len(read(data, limit=2)) == 2


def test_fields_of_a_data_set_are_kept_or_replaced():
    rows = [{"review": "a", "stars": 1, "other": 2}]
    data = read(rows, fields="text=review,label=stars")
    assert read(data, labels=("0", "1")).labels == ("0", "1")
    assert read(data, fields="text=review,label=other").labels == ("2",)


def test_splits_of_the_same_content_are_told(tmp_path):
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.jsonl").write_text('{"text": "fine", "label": 1}\n')
    (tmp_path / "test.jsonl").write_text('{"text": "dull", "label": 1}\n')  # of the same size
    told = describe_equal_splits(str(tmp_path))
    assert told.startswith(f"The splits train and dev of {tmp_path} have the same content")
    (tmp_path / "dev.jsonl").write_text('{"text": "so so", "label": 1}\n')
    assert describe_equal_splits(str(tmp_path)) == ""
    assert describe_equal_splits("synthetic:needle") == ""
    assert describe_equal_splits(str(tmp_path / "test.jsonl")) == ""
