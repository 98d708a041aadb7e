"""Atomic file writes: a file is written completely or not at all."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from stat import S_ISREG

from heedful.core.errors import RunError, file_errors

DRAFT = ".draft"


def write_atomic(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader sees the old content or the new, never a part of it."""
    data = content.encode() if isinstance(content, str) else content
    save_atomic(path, lambda draft: Path(draft).write_bytes(data))


def save_atomic(path: Path, save: Callable[[str], object]) -> None:
    """Let `save` write a draft in the folder of `path`, then rename it to `path`."""
    with file_errors(f"Cannot write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=DRAFT)
        os.close(handle)
        _save_draft(draft, path, save)


def save_output(path: Path, save: Callable[[str], object]) -> None:
    """As `save_atomic`, in a folder that others may use: the draft of a killed process is reused.

    Its name follows from that of the file, so the next process that writes the file finds it; a
    process that is at work on it has it locked.
    """
    if sys.platform == "win32":  # which lets nobody write to a locked file
        save_atomic(path, save)
        return
    with file_errors(f"Cannot write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        letters = blake2b(path.name.encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()
        draft = path.parent / f".{letters}{DRAFT}"
        with _locked_draft(draft, path):
            _save_draft(str(draft), path, save)


@contextmanager
def _locked_draft(draft: Path, path: Path) -> Iterator[None]:
    """Hold a draft of our own, new or left by a killed process."""
    import fcntl

    while True:
        handle = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        try:
            found = os.fstat(handle)
            if not S_ISREG(found.st_mode) or found.st_nlink > 1 or found.st_uid != os.geteuid():
                raise RunError(f"Cannot write {path}: {draft} is no draft of ours. Remove it.")
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunError(
                    f"{path} is being written by another heedful. Wait for it."
                ) from None
            if draft.exists() and os.path.samestat(draft.stat(), os.fstat(handle)):
                yield
                return
        finally:
            os.close(handle)


def _save_draft(draft: str, path: Path, save: Callable[[str], object]) -> None:
    try:
        save(draft)
        with open(draft, "rb") as written:  # noqa: PTH123 - only to reach the disk
            os.fsync(written.fileno())
        os.chmod(draft, 0o644)  # noqa: PTH101 - drafts are created with mode 600
        os.replace(draft, path)  # noqa: PTH105
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Flush the new name to disk; Windows has no such call and needs none."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_file(path: Path) -> None:
    """Remove a file if it exists."""
    with file_errors(f"Cannot remove {path}"):
        if path.exists():  # not where a file stands in the place of its folder
            path.unlink()


def remove_drafts(folder: Path) -> None:
    """Remove drafts that a killed process left; no other process may use the folder."""
    with file_errors(f"Cannot write to {folder}"):
        for draft in folder.glob(f".????????{DRAFT}"):  # mkstemp's eight letters
            draft.unlink(missing_ok=True)
