"""Files are written whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from heedful.core.atomic_files import save_atomic, write_atomic
from heedful.core.errors import RunError


def names(folder):
    return sorted(one.name for one in folder.iterdir())


@pytest.mark.parametrize(
    ("content", "data"),
    [("größe\n", "größe\n".encode()), (b"\0\xff\r\n", b"\0\xff\r\n"), ("", b"")],
)
def test_the_content_is_written_as_it_is(content, data, tmp_path):
    write_atomic(tmp_path / "note", content)
    assert (tmp_path / "note").read_bytes() == data
    assert names(tmp_path) == ["note"]


def test_an_old_file_is_replaced_in_one_step(tmp_path):
    path, seen = tmp_path / "note", []
    write_atomic(path, "old")

    def save(draft):
        Path(draft).write_text("ne")
        seen.append(path.read_text())
        Path(draft).write_text("new")
        seen.append(path.read_text())

    save_atomic(path, save)
    assert seen == ["old", "old"]
    assert path.read_text() == "new"


def test_folders_above_are_made(tmp_path):
    write_atomic(tmp_path / "a" / "b" / "note", "x")
    assert (tmp_path / "a" / "b" / "note").read_text() == "x"


def test_others_may_read_the_file(tmp_path):
    write_atomic(tmp_path / "note", "x")
    assert stat.S_IMODE((tmp_path / "note").stat().st_mode) == 0o644


class Stop(BaseException):
    """As sudden as Ctrl-C."""


@pytest.mark.parametrize("error", [ValueError, Stop])
def test_a_failing_save_leaves_the_old_file_and_no_draft(error, tmp_path):
    path = tmp_path / "note"
    path.write_text("old")

    def save(draft):
        Path(draft).write_text("half of the n")
        raise error

    with pytest.raises(error):
        save_atomic(path, save)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["note"]


def test_a_full_disk_is_told_and_leaves_the_old_file(tmp_path):
    path = tmp_path / "note"
    path.write_text("old")

    def save(draft):
        raise OSError(28, "No space left on device", draft)

    with pytest.raises(RunError) as caught:
        save_atomic(path, save)
    assert str(caught.value) == f"Cannot write {path}: No space left on device."
    assert path.read_text() == "old"
    assert names(tmp_path) == ["note"]


def test_an_error_without_a_name_is_told_too(tmp_path):
    def save(draft):
        raise OSError("the tape is torn")

    with pytest.raises(RunError, match=r"note: the tape is torn\.$"):
        save_atomic(tmp_path / "note", save)


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("in the way")
    path = tmp_path / "file" / "note"
    with pytest.raises(RunError) as caught:
        write_atomic(path, "x")
    assert str(caught.value) in (
        f"Cannot write {path}: Not a directory.",
        f"Cannot write {path}: File exists.",
    )
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_folder_in_the_place_of_the_file_is_told(tmp_path):
    (tmp_path / "note").mkdir()
    with pytest.raises(RunError, match=r"^Cannot write .*note: Is a directory\.$"):
        write_atomic(tmp_path / "note", "x")
    assert names(tmp_path) == ["note"]


def test_the_draft_reaches_the_disk_before_it_takes_the_name(tmp_path, monkeypatch):
    done = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (done.append("fsync"), fsync(handle)))
    monkeypatch.setattr(os, "replace", lambda *names: (done.append("replace"), replace(*names)))
    write_atomic(tmp_path / "note", "x")
    folder = ["fsync"] if os.name == "posix" else []  # the new name too must outlive a power cut
    assert done == ["fsync", "replace", *folder]
