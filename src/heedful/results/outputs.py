"""Where commands write what users ask for: to new files, and over earlier outputs of ours only."""

import os
from pathlib import Path
from stat import S_ISREG

from heedful.core.atomic_files import save_output
from heedful.core.errors import RunError, file_errors
from heedful.core.files.regular_files import NOT_REGULAR, open_regular
from heedful.results.run_folder import FILES, KINDS, MANIFEST, PLAN, VERDICT

HTML_MARK = '<meta name="generator" content="heedful">'
MARKDOWN_MARK = "<!-- written by heedful -->"
SVG_MARK = "<!-- drawn by heedful -->"
PNG_MARK = "Software\0heedful"
HEAD = 2000  # bytes in which a mark must stand
RECORDS = (PLAN, MANIFEST, VERDICT, FILES)


def output_path(path: str | Path) -> Path:
    """Where an output goes: `~` at the front of a text is the user's home, as in a shell.

    A Path is taken as it is: `Path("./~/page.html")` no longer shows that it began with a dot.
    """
    return path if isinstance(path, Path) else Path(os.path.expanduser(path))  # noqa: PTH111


def require_output(path: Path, mark: str | None) -> None:
    """Refuse to write over anything but an earlier output of ours, which has this mark in its head.

    Without a mark any regular file may be written over: its name alone makes it ours.
    """
    with file_errors(f"Cannot write {path}"):
        if path.name in RECORDS or (
            path.parent.name in KINDS and (path.parents[1] / PLAN).exists()
        ):
            raise RunError(f"{path} is a place of a run's own records. Name another file.")
        if not os.path.lexists(path):
            return
        if not path.exists() or not S_ISREG(path.stat().st_mode):
            raise RunError(f"{path} is {NOT_REGULAR}. Name another file to write to.")
        with open_regular(path) as stream:
            head = stream.read(HEAD)
    if head and mark is not None and mark.encode() not in head:
        raise RunError(
            f"{path} exists and was not written by this command. Name another file, or remove it."
        )


def is_output(path: Path, mark: str) -> bool:
    """Whether a file is an output of ours."""
    try:
        with open_regular(path) as stream:
            return mark.encode() in stream.read(HEAD)
    except OSError:
        return False


def write_output(path: Path, content: str | bytes, mark: str, *, ours: bool = False) -> Path:
    """Write an output that has its mark; gives the path. `ours` are files known by their place."""
    data = content.encode() if isinstance(content, str) else content
    if mark.encode() not in data[:HEAD]:
        raise ValueError(f"an output without its mark {mark!r}")
    require_output(path, None if ours else mark)
    save_output(path, lambda draft: Path(draft).write_bytes(data))
    return path


def write_markdown(path: Path, text: str, *, ours: bool = False) -> Path:
    """Write a page as Markdown, below its mark."""
    return write_output(path, f"{MARKDOWN_MARK}\n\n{text}", MARKDOWN_MARK, ours=ours)
