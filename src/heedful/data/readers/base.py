"""What readers share: splits by name, folders as they were distributed, lines and whole files.

A reader is a function from the name and the path of the data to its `ReaderSplits`. What it finds in
the wrong place it says, with what was expected.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from heedful.core.errors import DataError
from heedful.core.registry import Registry
from heedful.data.dataset import NumberedRow, pick_split, rows_sha256
from heedful.data.labels import shorten_name
from heedful.data.sources.files import BOM, data_errors, open_bytes
from heedful.data.sources.row_schema import BadLine

RowReader = Callable[[], Iterator[NumberedRow]]
SINGLE_SPLIT = ("all",)
MAX_LISTED_ENTRIES = 8  # entries of a folder that an error names

readers = Registry("reader")
"""Readers by name: `sst` reads `sst:PATH`."""


@dataclass(frozen=True, eq=False)
class ReaderSource:
    """The rows of one split, made anew whenever they are asked for."""

    name: str
    rows: RowReader

    def sha256(self) -> str:
        """Hex digest of the rows as canonical JSON."""
        return rows_sha256(self)

    def __iter__(self) -> Iterator[NumberedRow]:
        return self.rows()


@dataclass(frozen=True, eq=False)
class ReaderSplits:
    """What a reader found: how to read each split; one named "all" serves any."""

    name: str
    rows: Mapping[str, RowReader]

    @property
    def splits(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self.rows)

    def __call__(self, split: str) -> ReaderSource:
        """The source of a split."""
        lone = self.splits == SINGLE_SPLIT
        chosen = SINGLE_SPLIT[0] if lone else pick_split(split, self.rows, name=self.name)
        return ReaderSource(self.name, self.rows[chosen])


def require_path(name: str, path: str) -> Path:
    """The path, which must be there."""
    found = Path(os.path.expanduser(path))  # noqa: PTH111 - Path's own fails on a ~user unknown here
    with data_errors(found):
        if path and found.exists():
            return found
    raise DataError(
        f"{shorten_name(name)}: there is no file or folder {shorten_name(path)!r}. "
        "After the colon comes the path of the data."
    )


def find_subfolder(folder: Path, name: str) -> Path:
    """The folder of that name within, as archives unpack it, or the folder itself."""
    with data_errors(folder):
        return folder / name if (folder / name).is_dir() else folder


def list_folder(folder: Path) -> list[Path]:
    """What a folder holds, in the order of names; nothing where it is no folder."""
    with data_errors(folder):
        return sorted(folder.iterdir()) if folder.is_dir() else []


def layout_error(name: str, wanted: str, folder: Path) -> DataError:
    """What was expected, and what is there instead."""
    names = [shorten_name(one.name, most=40) for one in list_folder(folder)]
    there = ", ".join(names[:MAX_LISTED_ENTRIES]) + (
        ", …" if len(names) > MAX_LISTED_ENTRIES else ""
    )
    kind = f"a folder with {there or 'nothing in it'}" if folder.is_dir() else "a file"
    return DataError(
        f"{shorten_name(name)} must be {wanted}; {shorten_name(str(folder), most=200)} is {kind}. "
        "See docs/data.md for what to download."
    )


def split_files(folder: Path, names: Mapping[str, tuple[str, ...]]) -> dict[str, Path]:
    """The file of each split that is there, by the names it may have."""
    there = {one.name: one for one in list_folder(folder) if one.is_file()}
    found = {
        split: [there[one] for one in allowed if one in there] for split, allowed in names.items()
    }
    return {split: files[0] for split, files in found.items() if files}


def read_text_lines(path: Path) -> Iterator[tuple[int, str | BadLine]]:
    """Lines in UTF-8 without their ends, numbered from 1; blank ones are passed over."""
    with data_errors(path), open_bytes(path) as stream:
        for number, line in enumerate(stream, start=1):
            bare = line.removeprefix(BOM) if number == 1 else line
            if bare.strip():
                yield number, decode_utf8(bare.rstrip(b"\r\n"))


def decode_utf8(content: bytes) -> str | BadLine:
    """Bytes as text."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return BadLine("not UTF-8")


def read_whole_file(path: Path) -> bytes | BadLine:
    """All of a small file; what only has the name of one is a bad row."""
    if not path.is_file():  # a folder, or a link that leads nowhere or in a circle
        return BadLine("not a file")
    with data_errors(path):
        return path.read_bytes()
