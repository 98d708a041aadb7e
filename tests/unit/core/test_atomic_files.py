"""Files are written whole or not at all."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.core.atomic_files import save_atomic, save_output, write_atomic
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


DIES = """
import os, pathlib, signal, sys
from heedful.core.atomic_files import save_output
def die(draft):
    pathlib.Path(draft).write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
save_output(pathlib.Path(sys.argv[1]), die)
"""
HOLDS = """
import pathlib, sys
from heedful.core.atomic_files import save_output
def hold(draft):
    print("held", flush=True)
    sys.stdin.read()
    pathlib.Path(draft).write_text("theirs")
save_output(pathlib.Path(sys.argv[1]), hold)
"""


def test_the_draft_of_a_killed_process_is_taken_up(tmp_path):
    path = tmp_path / "page.html"
    subprocess.run([sys.executable, "-c", DIES, str(path)], check=False)
    (draft,) = tmp_path.iterdir()
    assert draft.read_text() == "half"
    save_output(path, lambda draft: Path(draft).write_text("whole"))
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("page.html", "whole")]


def test_two_processes_do_not_write_one_output(tmp_path):
    path = tmp_path / "page.html"
    words = [sys.executable, "-c", HOLDS, str(path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout.readline() == "held\n"
        with pytest.raises(RunError, match="is being written by another heedful"):
            save_output(path, lambda draft: Path(draft).write_text("ours"))
        one.communicate("")
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("page.html", "theirs")]


def test_a_draft_that_is_not_ours_is_left_alone(tmp_path):
    path, victim = tmp_path / "page.html", tmp_path / "victim"
    save_output(path, lambda draft: Path(draft).with_name("name").write_text(draft))
    draft = Path((tmp_path / "name").read_text())
    victim.write_text("theirs")
    for place in (draft.symlink_to, draft.hardlink_to):
        place(victim)
        with pytest.raises(RunError, match=r"Cannot write .*page\.html"):
            save_output(path, lambda draft: Path(draft).write_text("ours"))
        draft.unlink()
    assert victim.read_text() == "theirs"


def test_an_error_leaves_no_draft_of_an_output(tmp_path):
    def fail(draft):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        save_output(tmp_path / "page.html", fail)
    assert list(tmp_path.iterdir()) == []
