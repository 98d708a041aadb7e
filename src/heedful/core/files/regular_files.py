"""Reading regular files only: a pipe would wait for ever, a device may have no end."""

import errno
import os
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

NOT_REGULAR = "not a regular file"
LARGEST_DOCUMENT = 2**28  # bytes of a JSON or TOML document, 256 MiB


def require_regular(path: Path) -> int:
    """The size of a regular file; an OSError that says so where it is something else."""
    found = path.stat()
    if not S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, NOT_REGULAR, str(path))
    return found.st_size


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; whatever took its place meanwhile does not block."""
    require_regular(path)
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags), "rb")


def read_document(path: Path) -> str:
    """The text of a regular file in UTF-8, which must not be so large that it is no document."""
    if (size := require_regular(path)) > LARGEST_DOCUMENT:
        raise OSError(errno.EFBIG, f"too large ({size} bytes, at most {LARGEST_DOCUMENT})")
    with open_regular(path) as stream:
        return stream.read(LARGEST_DOCUMENT).decode("utf-8")
