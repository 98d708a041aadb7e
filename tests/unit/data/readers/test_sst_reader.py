"""Trees of the treebank, as one writes them by hand."""

import gzip

import pytest

from heedful.core.errors import DataError
from heedful.data import read, splits
from heedful.data.readers.sst import SST
from heedful.data.sources.row_schema import BadLine, LeftOut

TREES = """\
(3 (2 It) (4 (2 -LRB-) (4 (3 really) (2 -RRB-))))

(2 (2 A) (2 film))
(0 (1 8\u00a01\\/2) (0 hours))
(4 (4 Great))
(1 (2 so) (1 dull)
"""


@pytest.fixture
def trees(tmp_path):
    folder = tmp_path / "trees"
    folder.mkdir()
    (folder / "test.txt").write_text(TREES, encoding="utf-8")
    (folder / "train.txt.gz").write_bytes(gzip.compress(b"(4 (2 a) (4 joy))\r\n(0 (0 bad))\r\n"))
    return tmp_path


def test_five_trees(trees):
    rows = dict(SST.rows(trees / "trees" / "test.txt"))
    assert rows == {
        1: {
            "text": "It ( really )",
            "label": "positive",
            "tokens": ["It", "(", "really", ")"],
            "token_sentiment": [2, 2, 3, 2],
        },
        3: LeftOut("neutral"),
        4: {
            "text": "8\u00a01/2 hours",
            "label": "negative",
            "tokens": ["8\u00a01/2", "hours"],
            "token_sentiment": [1, 0],
        },
        5: {"text": "Great", "label": "positive", "tokens": ["Great"], "token_sentiment": [4]},
        6: BadLine("not a tree"),
    }


def test_by_name_with_splits_and_counts(trees):
    name = f"sst:{trees}"
    assert splits(name) == ("train", "test")
    data = read(name, split="train")
    assert (data.name, data.labels, len(data)) == (name, ("negative", "positive"), 2)
    assert [(e.text, e.tokens, e.label) for e in data] == [
        ("a joy", ("a", "joy"), 1),
        ("bad", ("bad",), 0),
    ]
    with pytest.raises(DataError, match=r"1 of 4 rows cannot be used.*not a tree \(line 6\)"):
        read(name)


def test_neutral_trees_are_told_and_scores_can_be_mapped(tmp_path):
    (tmp_path / "dev.txt").write_text("(2 (2 so))\n(3 (3 fine))\n(2 (2 A) (2 film))\n")
    data = read(f"sst:{tmp_path}", split="val", fields={"word_scores": "token_sentiment"})
    assert str(data.left_out) == "2 rows left out: 2 neutral"
    assert [e.word_scores for e in data] == [(3.0,)]
    assert next(iter(data)).index == 0


@pytest.mark.parametrize(
    "tree",
    ["(5 (2 a))", "(3 a", "3 a)", "(3 (2 a)) x", "(3 (2 a)))", "(3 (2 a)) (2 (2 b))", "()", "(3 )"],
)
def test_what_is_not_a_tree(tmp_path, tree):
    (tmp_path / "test.txt").write_text(tree)
    assert [row for _, row in SST.rows(tmp_path / "test.txt")] == [BadLine("not a tree")]


def test_a_folder_without_trees(tmp_path):
    (tmp_path / "stsa.binary.train").write_text("1 a")
    with pytest.raises(
        DataError,
        match=r"must be the folder of trees, .* a folder with stsa.binary.train. See",
    ):
        read(f"sst:{tmp_path}")
