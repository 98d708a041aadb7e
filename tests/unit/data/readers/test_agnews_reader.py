"""Rows without a header: class, title, description."""

import pytest

from heedful.core.errors import DataError
from heedful.data import read, splits
from heedful.data.readers.agnews import AGNEWS
from heedful.data.sources.row_schema import BadLine, LeftOut

ARTICLES = """"3","Shares up","Oil\\prices, ""again"" up."
"1","Talks","Peace talks
go on."
"2","Cup","A goal."
"4","Moon","A rocket."
"1","Vote","A vote."
"""


def test_five_articles(tmp_path):
    (tmp_path / "train.csv").write_text(ARTICLES)
    (tmp_path / "test.csv").write_text(ARTICLES)
    name = f"agnews:{tmp_path}"
    data = read(name)
    assert (splits(name), data.labels) == (("train", "test"), ("business", "world"))
    assert [(e.index, e.text, data.labels[e.label]) for e in data] == [
        (0, 'Oil prices, "again" up.', "business"),
        (1, "Peace talks\ngo on.", "world"),
        (2, "A vote.", "world"),
    ]
    assert str(data.left_out) == "2 rows left out: 1 on sports; 1 on science"


def test_bad_rows(tmp_path):
    file = tmp_path / "test.csv"
    file.write_bytes(b'"1","a","b"\n"5","a","b"\n"1","a"\n"1","a","\xff"\n"2","a","b"\n"x"y,\n')
    assert dict(AGNEWS.rows(file)) == {
        1: {"text": "b", "label": "world", "title": "a"},
        2: BadLine("no class from 1 to 4"),
        3: BadLine("not 3 cells"),
        4: BadLine("not UTF-8"),
        5: LeftOut("on sports"),
        6: BadLine("not CSV"),
    }


def test_a_file_is_not_the_folder(tmp_path):
    file = tmp_path / "news.csv"
    file.write_text(ARTICLES)
    with pytest.raises(DataError, match=r"must be the folder ag_news_csv.*news.csv is a file. See"):
        read(f"agnews:{file}")
