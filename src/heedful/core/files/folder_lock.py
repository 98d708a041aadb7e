"""One process per folder: two that wrote one run, or one model, would mix what they write."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heedful.core.errors import RunError, file_errors

LOCK_FILE = ".lock"
WINDOWS_LOCK_OFFSET = 2**30  # Windows forbids reading locked bytes; the process number is before


@contextmanager
def lock_folder(folder: Path, option: str = "--out") -> Iterator[None]:
    """Inside the block the folder, made where it does not exist, belongs to this process.

    `option` is the one that named the folder, for messages.

    The kernel holds the lock, not the file: a process that is killed leaves none behind.
    """
    made = not folder.exists()
    with file_errors(f"Cannot write to {folder}"):
        if folder.is_file():
            raise RunError(f"{folder} is a file; {option} must name a folder.")
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not _acquire(folder, handle, option):
            raise RunError(
                f"{folder} is in use by another heedful (process {_read_owner(handle)}). "
                f"Wait for it, or choose another {option}."
            )
        with file_errors(f"Cannot write to {folder}"):
            _write_owner(handle)
        yield
    except BaseException:
        if made and [one.name for one in folder.iterdir()] == [LOCK_FILE]:
            (folder / LOCK_FILE).unlink()  # what was refused leaves no folder behind
            folder.rmdir()
        raise
    finally:
        os.close(handle)


def _acquire(folder: Path, handle: int, option: str) -> bool:
    """False where another process has it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(handle, WINDOWS_LOCK_OFFSET, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as error:
        raise RunError(
            f"Cannot lock {folder / LOCK_FILE}: {error.strerror or error}. "
            f"Choose another {option}, on a disk that supports file locks."
        ) from error
    return True


def _write_owner(handle: int) -> None:
    os.ftruncate(handle, 0)
    os.lseek(handle, 0, os.SEEK_SET)
    os.write(handle, str(os.getpid()).encode())


def _read_owner(handle: int) -> str:
    """The process that has the lock; it may not have written its number yet."""
    os.lseek(handle, 0, os.SEEK_SET)
    return os.read(handle, 20).decode("ascii", "replace") or "unknown"
