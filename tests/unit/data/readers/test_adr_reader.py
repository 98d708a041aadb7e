"""Tab-separated tweets."""

import pytest

from heedful.core.errors import DataError
from heedful.data import read, splits
from heedful.data.readers.adr import ADR
from heedful.data.sources.row_schema import BadLine, LeftOut

TWEETS = """\
tweet_id\tuser_id\tlabel\ttext
1\t7\t1\tthis pill makes me dizzy
2\t7\t0\ttook it at noon
3\t8\t1\tNot Available
4\t8\t0\t"so far so good"
5\t9\t1\tno sleep
"""


@pytest.mark.parametrize("named", ["adr:{}", "adr:{}/tweets.tsv"])
def test_five_tweets(tmp_path, named):
    (tmp_path / "tweets.tsv").write_text(TWEETS)
    name = named.format(tmp_path)
    data = read(name)
    assert (splits(name), data.labels) == (("all",), ("0", "1"))
    assert [(e.text, e.label) for e in data] == [
        ("this pill makes me dizzy", 1),
        ("took it at noon", 0),
        ('"so far so good"', 0),
        ("no sleep", 1),
    ]
    assert str(data.left_out) == "1 row left out: 1 tweets that are not available"


def test_a_file_for_each_split_without_header_or_numbers(tmp_path):
    for split in ("train", "test"):
        (tmp_path / f"{split}.tsv").write_text(f"0\tin {split}\n1\tbad\n")
    assert splits(f"adr:{tmp_path}") == ("train", "test")
    assert [e.text for e in read(f"adr:{tmp_path}", split="train")] == ["in train", "bad"]


def test_bad_rows(tmp_path):
    file = tmp_path / "a.tsv"
    file.write_bytes(b"\xef\xbb\xbflabel\ttext\nno tab\n2\ta\n\xff\ta\n1\t\n1\ta\n")
    assert dict(ADR.rows(file)) == {
        2: BadLine("no tab"),
        3: BadLine("no label 0 or 1 in the last column but one"),
        4: BadLine("not UTF-8"),
        5: LeftOut("tweets that are not available"),
        6: {"text": "a", "label": "1"},
    }


def test_two_files_are_ambiguous(tmp_path):
    for name in ("a.tsv", "b.tsv"):
        (tmp_path / name).write_text(TWEETS)
    with pytest.raises(DataError, match=r"must be a .tsv file, or .* a folder with a.tsv, b.tsv"):
        read(f"adr:{tmp_path}")
