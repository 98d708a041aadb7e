"""One process per run folder, and a lock that no killed process leaves behind."""

import os
import subprocess
import sys
from contextlib import suppress
from errno import ENOLCK, ENOSPC
from pathlib import Path

import pytest

import heedful
from heedful.core.errors import RunError
from heedful.core.files import folder_lock
from heedful.core.files.folder_lock import lock_folder
from support import subjects

HOLD = """
import sys, pathlib
from heedful.core.files.folder_lock import lock_folder
with lock_folder(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the folder until it ends."""
    words = [sys.executable, "-c", HOLD, str(tmp_path / "run")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout.readline() == "held\n"
        yield one
        one.kill()


def refusal(folder, *option):
    with pytest.raises(RunError) as caught, lock_folder(folder, *option):
        pass
    return str(caught.value)


def test_a_second_process_is_refused_and_told_who_has_it(holder, tmp_path):
    assert refusal(tmp_path / "run") == (
        f"{tmp_path / 'run'} is in use by another heedful (process {holder.pid}). "
        "Wait for it, or choose another --out."
    )


def test_an_audit_is_refused_and_writes_nothing(holder, tmp_path):
    rows = [{"text": "w1 w2", "label": "class0"}]
    with pytest.raises(RunError, match=f"in use by another heedful \\(process {holder.pid}\\)"):
        heedful.audit(subjects.subject(), rows, checks=("permutation",), out=tmp_path / "run")
    assert [one.name for one in (tmp_path / "run").iterdir()] == [folder_lock.LOCK_FILE]


def test_a_killed_process_leaves_no_lock(holder, tmp_path):
    holder.kill()
    holder.wait()
    with lock_folder(tmp_path / "run"):
        assert (tmp_path / "run" / folder_lock.LOCK_FILE).read_text() == str(os.getpid())


def test_the_lock_is_given_back_also_after_an_error(tmp_path):
    for _ in range(2):
        with suppress(ZeroDivisionError), lock_folder(tmp_path):
            assert "in use" in refusal(tmp_path)  # also within one process
            raise ZeroDivisionError


def test_an_owner_that_has_not_signed_yet(tmp_path, monkeypatch):
    monkeypatch.setattr(folder_lock, "_write_owner", lambda handle: None)
    with lock_folder(tmp_path):
        assert "(process unknown)" in refusal(tmp_path)


def test_a_file_in_the_place_of_the_folder(tmp_path):
    (tmp_path / "run").touch()
    assert refusal(tmp_path / "run") == f"{tmp_path / 'run'} is a file; --out must name a folder."
    said = refusal(tmp_path / "run" / "below")
    assert said == f"Cannot write to {tmp_path / 'run' / 'below'}: Not a directory."


def test_the_option_that_named_the_folder_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    folder, option = tmp_path / "models", "--retrained"
    assert refusal(tmp_path / "file", option) == (
        f"{tmp_path / 'file'} is a file; --retrained must name a folder."
    )
    with lock_folder(folder):
        assert refusal(folder, option).endswith("Wait for it, or choose another --retrained.")

    def fail(*_):
        raise OSError(ENOLCK, os.strerror(ENOLCK))

    monkeypatch.setattr("fcntl.flock", fail)
    assert refusal(folder, option).endswith(
        "Choose another --retrained, on a disk that supports file locks."
    )


@pytest.mark.parametrize(
    ("call", "number", "said"),
    [
        ("os.open", ENOSPC, "Cannot write to {}: No space left on device."),
        ("os.write", ENOSPC, "Cannot write to {}: No space left on device."),
        (
            "fcntl.flock",
            ENOLCK,
            "Cannot lock {}/.lock: No locks available. Choose another --out, on",
        ),
    ],
)
def test_a_disk_that_cannot_is_told(tmp_path, monkeypatch, call, number, said):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(call, fail)
    assert refusal(tmp_path).startswith(said.format(tmp_path))
    monkeypatch.undo()
    with lock_folder(tmp_path):
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="a folder's mode does not bind on Windows")
def test_a_folder_that_may_not_be_written(tmp_path):
    (tmp_path / "run").mkdir(mode=0o500)
    if os.geteuid() == 0:  # modes do not bind root; the kernel's own files do
        assert refusal(Path("/proc/heedful")).startswith("Cannot write to /proc/heedful: ")
    else:
        assert refusal(tmp_path / "run").endswith(": Permission denied.")
