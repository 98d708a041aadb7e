"""Posts, and what is taken off them: the same as scikit-learn takes off."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets._twenty_newsgroups import (
    strip_newsgroup_footer,
    strip_newsgroup_header,
    strip_newsgroup_quoting,
)

from heedful.core.errors import DataError
from heedful.data import read, splits
from heedful.data.readers.newsgroups import strip_post

POSTS = {
    "rec.sport.baseball/100": "From: a\nSubject: b\n\nAnn wrote:\n> Who won?\nThe Cubs.\n\n--\nBob",
    "rec.sport.baseball/101": "From: a\n\nIn article <1>, Ann says:\n> only quotes",
    "rec.sport.baseball/102": "From: a\r\n\r\nTwo\r\nlines",
    "rec.sport.hockey/103": "From: a\n\nThe Br\xfcins lost.\n\nNo footer? This is one.",
    "rec.sport.hockey/104": "From: a\n\nOvertime!",
}


def write(folder):
    for name, text in POSTS.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("latin-1"))
    (folder / "sci.space").mkdir()
    (folder / "sci.space" / "1").write_text("From: a\n\nnot ours")
    return folder


def test_five_posts_in_one_folder(tmp_path):
    name = f"20news:{write(tmp_path)}"
    data = read(name, split="dev")
    assert (splits(name), data.labels) == (("all",), ("baseball", "hockey"))
    assert [(e.text, e.label) for e in data] == [
        ("The Cubs.", 0),
        ("Two\nlines", 0),
        ("The Brüins lost.", 1),
        ("Overtime!", 1),
    ]
    assert str(data.left_out) == "1 row left out: 1 nothing but headers, quotes"


def test_by_date(tmp_path):
    for split in ("train", "test"):
        write(tmp_path / f"20news-bydate-{split}")
    name = f"20news:{tmp_path}"
    assert splits(name) == ("train", "test")
    assert len(read(name, split="train")) == 4
    with pytest.raises(DataError, match=r"has no split 'dev'. It has: train, test"):
        read(name, split="dev")


def test_a_folder_without_the_groups(tmp_path):
    (tmp_path / "alt.atheism").mkdir()
    with pytest.raises(DataError, match=r"must be a folder with rec.sport.*with alt.atheism. See"):
        splits(f"20news:{tmp_path}")


LINES = st.sampled_from(
    ["", " ", "--", "- -", "From: me", "> no", "|x", "he wrote:", "In article 7", "a said: b", "so"]
)


@given(st.lists(LINES, max_size=12).map("\n".join))
def test_what_is_taken_off_is_what_scikit_learn_takes_off(post):
    theirs = strip_newsgroup_quoting(strip_newsgroup_footer(strip_newsgroup_header(post)))
    assert strip_post(post) == theirs.strip()
