"""What readers share: registration, folders as they are distributed, lines and whole files.

A reader is a function from the name and the path of the data to its `Corpus`.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from heedful.core.errors import DataError, shorten_name
from heedful.core.registry import Registry
from heedful.data.dataset import Corpus, NumberedRow
from heedful.data.sources.files import LONGEST_LINE, data_errors, read_lines
from heedful.data.sources.row_schema import BadLine, LeftOut

ParsedRow = dict[str, object] | BadLine | LeftOut
MAX_LISTED_ENTRIES = 8  # entries of a folder that an error names

readers = Registry("reader")
"""Readers by name: `sst` reads `sst:PATH`."""


@dataclass(frozen=True)
class SplitReader:
    """A reader of a data set whose splits are files or folders.

    `find` maps the path to the file or folder of each split, `items` reads the numbered items of
    one (lines, cells, files), `parse` makes a row of an item that is neither bad nor left out.
    """

    name: str  # before the colon of NAME:PATH
    summary: str  # the line that `heedful list data` prints
    layout: str  # what the path must be, for the error where `find` returns nothing
    find: Callable[[Path], Mapping[str, Path]]
    items: Callable[[Path], Iterable[tuple[int, Any]]]
    parse: Callable[[Any], ParsedRow]
    subfolders: tuple[str, ...] = ()  # of archives, nested, which the path may leave out

    def rows(self, path: Path) -> Iterator[NumberedRow]:
        """The rows of the file or folder of one split."""
        for number, item in self.items(path):
            yield number, item if isinstance(item, BadLine | LeftOut) else self.parse(item)

    def open(self, full_name: str, path: str) -> Corpus:
        """Find the splits at a path."""
        place = require_path(full_name, path)
        for folder in self.subfolders:
            place = find_subfolder(place, folder)
        if not (found := self.find(place)):
            raise layout_error(full_name, self.layout, place)
        return Corpus(full_name, {split: partial(self.rows, at) for split, at in found.items()})

    def register(self) -> "SplitReader":
        """Register the reader under its name."""

        def open_splits(full_name: str, path: str) -> Corpus:
            return self.open(full_name, path)

        open_splits.__doc__ = self.summary
        readers.register(self.name)(open_splits)
        return self


def require_path(name: str, path: str) -> Path:
    """The path, which must exist."""
    found = Path(os.path.expanduser(path))  # noqa: PTH111 - Path's own fails on unknown ~user
    with data_errors(found):
        if path and found.exists():
            return found
    raise DataError(
        f"{shorten_name(name)}: there is no file or folder {shorten_name(path)!r}. "
        "Give the path of the data after the colon."
    )


def find_subfolder(folder: Path, name: str) -> Path:
    """The subfolder of that name, or the folder itself where there is none."""
    with data_errors(folder):
        return folder / name if (folder / name).is_dir() else folder


def list_folder(folder: Path) -> list[Path]:
    """The entries of a folder, sorted by name; empty where it is not a folder."""
    with data_errors(folder):
        return sorted(folder.iterdir()) if folder.is_dir() else []


def layout_error(name: str, wanted: str, folder: Path) -> DataError:
    """An error that says what was expected and what is there instead."""
    names = [shorten_name(entry.name, most=40) for entry in list_folder(folder)]
    more = ", …" if len(names) > MAX_LISTED_ENTRIES else ""
    listed = ", ".join(names[:MAX_LISTED_ENTRIES]) + more
    kind = f"a folder with {listed or 'nothing in it'}" if folder.is_dir() else "a file"
    return DataError(
        f"{shorten_name(name)} must be {wanted}; {shorten_name(str(folder), most=200)} is {kind}. "
        "See docs/data.md for what to download."
    )


def find_files(names: Mapping[str, Sequence[str]], folder: Path) -> dict[str, Path]:
    """The file of each split that exists, by the names it may have; the first one wins."""
    present = {entry.name: entry for entry in list_folder(folder) if entry.is_file()}
    found = {split: [one for one in allowed if one in present] for split, allowed in names.items()}
    return {split: present[files[0]] for split, files in found.items() if files}


def read_text_lines(path: Path) -> Iterator[tuple[int, str | BadLine]]:
    """Lines in UTF-8 without their line ends, numbered from 1; blank lines are skipped."""
    for number, line in read_lines(path):
        yield number, decode_utf8(line.rstrip(b"\r\n"))


def list_labelled_files(
    classes: Mapping[str, str], folder: Path, *, ending: str = ""
) -> Iterator[tuple[int, tuple[Path, str]]]:
    """The numbered files in one folder per class, each with the label of the class."""
    files = [
        (file, label)
        for part, label in classes.items()
        for file in list_folder(folder / part)
        if file.name.endswith(ending)
    ]
    return enumerate(files, start=1)


def decode_utf8(content: bytes) -> str | BadLine:
    """Bytes as text."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return BadLine("not UTF-8")


def read_file(path: Path) -> bytes | BadLine:
    """The bytes of a small file; a bad row where the path is not a file."""
    if not path.is_file():  # a folder, or a broken or circular link
        return BadLine("not a file")
    with data_errors(path), path.open("rb") as file:
        content = file.read(LONGEST_LINE + 1)
    return BadLine("a file too long for a text") if len(content) > LONGEST_LINE else content


def read_text_file(path: Path) -> str | BadLine:
    """The text of a small file in UTF-8; a bad row where it is none."""
    content = read_file(path)
    return content if isinstance(content, BadLine) else decode_utf8(content)
