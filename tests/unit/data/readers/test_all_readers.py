"""What holds for every reader."""

import pytest

from heedful.core.errors import DataError
from heedful.data import read, splits
from heedful.data.readers import readers

PROMISED = {"sst", "imdb", "20news", "agnews", "adr", "cnn", "babi", "snli", "mimic"}


def test_those_promised_are_there_with_a_line_each(run):
    assert set(readers) >= PROMISED
    code, out, _ = run("list", "data")
    assert code == 0
    for name in readers:
        assert f"{name}:PATH" in out
        assert readers.summary(name)[-1] in ".…"


@pytest.mark.parametrize("name", sorted(PROMISED))
@pytest.mark.parametrize("path", ["", "/no/such/place", "~nobody/here", "x" * 5000, "a\0b"])
def test_a_path_that_is_not_there(name, path):
    for ask in (read, splits):
        with pytest.raises(DataError) as told:
            ask(f"{name}:{path}")
        assert len(str(told.value)) < 1500


@pytest.mark.parametrize("name", sorted(PROMISED))
def test_an_empty_folder_is_told_what_is_missing(tmp_path, name):
    with pytest.raises(DataError, match=r"must be .*nothing in it. See docs/data.md"):
        splits(f"{name}:{tmp_path}")


def test_a_slip_in_the_readers_name_is_told():
    with pytest.raises(DataError, match=r"no file or folder 'sts:PATH'. Did you mean 'sst:PATH'"):
        read("sts:PATH")
