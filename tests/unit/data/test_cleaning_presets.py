"""Data read under a cleaning: which rows, under which numbers, and what is told of the others."""

import json
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from heedful.core.errors import ConfigError, DataError, UnknownName
from heedful.data import read, splits

SHARED = Path(__file__).parents[4] / "shared" / "data"
SST, NEWS, IMDB, BABI = (f"jain-wallace-2019/{one}" for one in ("sst", "20news", "imdb", "babi"))
ANEMIA = "jain-wallace-2019/mimic-anemia"


def rows(count, words=8, **more):
    return [
        {"text": " ".join([f"w{i}", *["so"] * (words - 1 + i % 3)]), "label": i % 2, **more}
        for i in range(count)
    ]


def write(folder, **by_split):
    folder.mkdir(exist_ok=True)
    for split, its in by_split.items():
        (folder / f"{split}.jsonl").write_text("\n".join(map(json.dumps, its)))
    return folder


def test_rows_keep_their_numbers_and_the_others_are_told():
    texts = ["a b c d e", "A, b! c d e f", "a b c d e f g h", "?", "isn't a b c d e f"]
    data = read([{"text": t, "label": i % 2} for i, t in enumerate(texts)], cleaning=SST)
    assert [(e.index, e.text, e.tokens) for e in data] == [(1, "a b c d e f", tuple("abcdef"))]
    assert str(data.left_out) == (
        "4 rows left out: 1 without a word; 1 of 5 words or fewer; 2 longest of the split (8 words)"
    )
    assert (len(data), data.whole, data.cleaning, data.labels) == (1, 5, SST, ("0", "1"))


def test_columns_are_mapped_before_texts_are_cleaned():
    frame = pd.DataFrame({"review": ["A b c, d e f!", "a b c d e f g"], "stars": [1, 2]})
    data = read(frame, fields="text=review,label=stars", cleaning=SST)
    assert [e.text for e in data] == ["a b c d e f"]


def test_a_limit_draws_from_the_rows_that_are_kept():
    data = read(rows(300, words=5), cleaning=SST)
    kept = {e.index for e in data}
    assert kept == {i for i in range(300) if i % 3 == 1}  # 6 words; 7 is the longest
    few, more = (read(rows(300, words=5), cleaning=SST, limit=n) for n in (10, 40))
    assert {e.index for e in few} < {e.index for e in more} < kept
    assert (len(few), len(list(more)), few.left_out) == (10, 40, data.left_out)


def test_a_data_set_stays_cleaned_and_cannot_be_cleaned_again():
    data = read(rows(60), cleaning=SST)
    again = read(data, labels=("1", "0"))
    assert [(e.index, e.text) for e in again] == [(e.index, e.text) for e in data]
    assert [1 - e.label for e in again] == [e.label for e in data]
    assert read(data, cleaning=SST) is data
    with pytest.raises(ConfigError, match=r"cleaned by .*/sst; .*/imdb cannot be applied to it"):
        read(data, cleaning=IMDB)
    with pytest.raises(ConfigError, match="read without a cleaning; "):
        read(read(rows(60)), cleaning=SST)


def test_cleaning_changes_the_origin_but_not_the_digest():
    plain, clean = read(rows(60)), read(rows(60), cleaning=SST)
    assert plain.sha256 == clean.sha256
    assert plain.origin() != clean.origin()
    assert json.loads(json.dumps(clean.origin())) == clean.origin()


def test_a_pool_of_all_splits_is_drawn_anew(tmp_path):
    folder = write(tmp_path / "d", train=rows(70), test=rows(50, words=9))
    assert splits(folder) == ("train", "test")
    assert splits(folder, cleaning=NEWS) == ("train", "dev", "test")
    parts = {split: read(folder, split=split, cleaning=NEWS) for split in ("train", "val", "test")}
    numbers = [e.index for data in parts.values() for e in data]
    assert sorted(numbers) == list(range(120))
    assert {name: len(data) for name, data in parts.items()} == {"train": 76, "val": 20, "test": 24}
    assert Counter(e.label for e in parts["test"]) == {0: 12, 1: 12}
    assert len({data.sha256 for data in parts.values()}) == 3
    with pytest.raises(DataError, match=r"under jain-wallace-2019/20news has no split 'all'"):
        read(folder, split="all", cleaning=NEWS)


def test_a_lone_file_is_a_pool_too(tmp_path):
    file = write(tmp_path, notes=rows(100)) / "notes.jsonl"
    assert splits(file, cleaning=ANEMIA) == ("train", "dev", "test")
    found = [read(file, split=split, cleaning=ANEMIA) for split in ("train", "dev", "test")]
    assert [data.left_out.total + len(data) for data in found] == [68, 12, 20]
    assert all("shortest of the split (8 words)" in data.left_out.counts for data in found)


def test_who_followed_has_the_same_rows(tmp_path):
    folder = write(tmp_path / "d", train=rows(70), test=rows(50))
    ours, theirs = (
        read(folder, cleaning=f"{paper}/20news")
        for paper in ("jain-wallace-2019", "wiegreffe-pinter-2019")
    )
    assert [e.index for e in ours] == [e.index for e in theirs]


def test_dev_comes_out_of_train_unless_there_is_one(tmp_path):
    folder = write(tmp_path / "d", train=rows(100), test=rows(40))
    assert splits(folder, cleaning=BABI) == ("train", "dev", "test")
    train, dev, test = (read(folder, split=s, cleaning=BABI) for s in ("train", "dev", "test"))
    assert sorted(e.index for data in (train, dev) for e in data) == list(range(100))
    assert (len(dev), len(test), test.selection.part) == (15, 40, None)
    own = write(tmp_path / "own", train=rows(100), validation=rows(30), test=rows(40))
    assert [len(read(own, split=s, cleaning=BABI)) for s in ("train", "dev")] == [100, 30]
    assert splits(own, cleaning=BABI) == ("train", "dev", "test")
    lone = tmp_path / "d" / "train.jsonl"
    assert (splits(lone, cleaning=BABI), len(read(lone, cleaning=BABI))) == (("all",), 100)


def test_a_fifth_of_the_short_test_reviews(tmp_path):
    long = rows(10, words=420)
    folder = write(tmp_path / "d", train=rows(103) + long, test=rows(104) + long)
    test = read(folder, cleaning=IMDB)
    longest = test.left_out.counts["longest of the split (10 words)"]
    assert test.left_out.counts == {
        "of 400 words or more": 10,
        "longest of the split (10 words)": longest,
    }
    assert len(test) + longest == 20  # a fifth of 104, rounded down
    assert longest > 0


def test_drawing_by_class_needs_labels(tmp_path):
    with pytest.raises(ConfigError, match=r"20news draws its splits by class, so it needs"):
        read(rows(100), cleaning=NEWS, labelled=False)
    assert len(read(rows(60), cleaning=SST, labelled=False)) == 40


def test_nothing_left_is_an_error():
    with pytest.raises(
        DataError, match=r"sst leaves no row of split 'test' \(9 rows left out: 9 of"
    ):
        read(rows(9, words=2), cleaning=SST)
    with pytest.raises(UnknownName, match="No cleaning is named 'jain'"):
        read(rows(9), cleaning="jain")
    with pytest.raises(UnknownName, match="No cleaning is named 'jain'"):
        splits(rows(9), cleaning="jain")


TABLE_1 = {"train": (3034, 3321), "dev": (397, 424), "test": (863, 862)}


@pytest.mark.shared
@pytest.mark.skipif(not (SHARED / "sst").exists(), reason="needs SST")
@pytest.mark.parametrize("split", TABLE_1)
def test_sizes_of_sst_are_those_of_table_1(split):
    data = read(SHARED / "sst", split=split, cleaning=SST)
    counts = Counter(example.label for example in data)
    assert (counts[0], counts[1]) == TABLE_1[split]


@pytest.mark.shared
@pytest.mark.skipif(not (SHARED / "sst").exists(), reason="needs SST")
def test_words_of_sst_are_those_of_the_authors():
    theirs = {e.index: e.text for e in read(SHARED / "sst_jw2019", split="dev")}
    ours = {e.index: e.text for e in read(SHARED / "sst", split="dev", cleaning=SST)}
    assert len(theirs) == 872
    other = [index for index, text in ours.items() if text != theirs[index]]
    assert other == [559]  # "28K", which spaCy parts in two
