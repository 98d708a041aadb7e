"""What readers share: registration, folders as they are distributed, lines and whole files.

A reader is a function from the name and the path of the data to its `ReaderSplits`.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from heedful.core.errors import DataError
from heedful.core.registry import Registry
from heedful.data.dataset import NumberedRow, pick_split, rows_sha256
from heedful.data.labels import shorten_name
from heedful.data.sources.files import BOM, data_errors, open_bytes
from heedful.data.sources.row_schema import BadLine, LeftOut

RowReader = Callable[[], Iterator[NumberedRow]]
PathReader = Callable[[Path], Iterator[NumberedRow]]
ParsedRow = dict[str, object] | BadLine | LeftOut
ItemT = TypeVar("ItemT")
SINGLE_SPLIT = ("all",)
MAX_LISTED_ENTRIES = 8  # entries of a folder that an error names

readers = Registry("reader")
"""Readers by name: `sst` reads `sst:PATH`."""


@dataclass(frozen=True, eq=False)
class ReaderSource:
    """The rows of one split, read again by every iteration."""

    name: str
    rows: RowReader

    def sha256(self) -> str:
        """Hex digest of the rows as canonical JSON."""
        return rows_sha256(self)

    def __iter__(self) -> Iterator[NumberedRow]:
        return self.rows()


@dataclass(frozen=True, eq=False)
class ReaderSplits:
    """The splits that a reader found; a single split named "all" stands for any split."""

    name: str
    rows: Mapping[str, RowReader]

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits."""
        return tuple(self.rows)

    def __call__(self, split: str) -> ReaderSource:
        """The source of a split."""
        single = self.splits == SINGLE_SPLIT
        chosen = SINGLE_SPLIT[0] if single else pick_split(split, self.rows, name=self.name)
        return ReaderSource(self.name, self.rows[chosen])


def register_reader(
    name: str,
    summary: str,
    *,
    layout: str,
    find: Callable[[Path], Mapping[str, Path]],
    subfolders: Sequence[str] = (),
) -> Callable[[PathReader], PathReader]:
    """Register a function that reads the rows of one file or folder as a reader of splits.

    summary: the line that `heedful list data` prints.
    layout: what the path must be, for the error where `find` returns nothing.
    find: maps the path to the file or folder of each split.
    subfolders: names of nested folders, as archives unpack them, that the path may leave out.
    """

    def register(read_rows: PathReader) -> PathReader:
        def open_splits(full_name: str, path: str) -> ReaderSplits:
            place = require_path(full_name, path)
            for folder in subfolders:
                place = find_subfolder(place, folder)
            if not (found := find(place)):
                raise layout_error(full_name, layout, place)
            return ReaderSplits(
                full_name, {key: partial(read_rows, at) for key, at in found.items()}
            )

        open_splits.__doc__ = summary
        readers.register(name)(open_splits)
        return read_rows

    return register


def parse_rows(
    items: Iterable[tuple[int, ItemT | BadLine | LeftOut]], parse: Callable[[ItemT], ParsedRow]
) -> Iterator[NumberedRow]:
    """Parse numbered items into rows; bad and left-out ones stay as they are."""
    for number, item in items:
        yield number, item if isinstance(item, BadLine | LeftOut) else parse(item)


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
    with data_errors(path), open_bytes(path) as stream:
        for number, line in enumerate(stream, start=1):
            content = line.removeprefix(BOM) if number == 1 else line
            if content.strip():
                yield number, decode_utf8(content.rstrip(b"\r\n"))


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
    with data_errors(path):
        return path.read_bytes()


def read_text_file(path: Path) -> str | BadLine:
    """The text of a small file in UTF-8; a bad row where it is none."""
    content = read_file(path)
    return content if isinstance(content, BadLine) else decode_utf8(content)
