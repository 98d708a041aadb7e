"""Atomic file writes: a file is written completely or not at all."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from heedful.core.errors import file_errors

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
        try:
            save(draft)
            with open(draft, "rb") as written:  # noqa: PTH123 - only to reach the disk
                os.fsync(written.fileno())
            os.chmod(draft, 0o644)  # noqa: PTH101 - mkstemp creates files with mode 600
            os.replace(draft, path)  # noqa: PTH105
            _sync_folder(path.parent)
        finally:
            Path(draft).unlink(missing_ok=True)


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
