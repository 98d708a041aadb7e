"""Files as sources: JSON lines (plain or gzip), CSV and Parquet."""

import csv
import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.core.errors import DataError
from heedful.data.dataset import NumberedRow
from heedful.data.labels import is_encodable, shorten_name
from heedful.data.sources.row_schema import BadLine

if TYPE_CHECKING:
    import _csv

BOM = b"\xef\xbb\xbf"
PARQUET_BATCH = 1024
LONGEST_CELL = 2**31 - 1  # the largest limit that csv accepts on every platform


@contextmanager
def data_errors(path: Path) -> Iterator[None]:
    """Turn errors in reading the file into a DataError that names it."""
    try:
        yield
    except EOFError as why:
        raise DataError(f"{path} is truncated: the gzip file has no end. Get it again.") from why
    except (gzip.BadGzipFile, zlib.error) as why:
        raise DataError(f"{path} is not a valid gzip file ({why}). Get it again.") from why
    except OSError as why:
        name = shorten_name(str(path), most=1000)
        raise DataError(f"{name} cannot be read: {why.strerror or why}.") from why


def read_jsonl_rows(path: Path) -> Iterator[NumberedRow]:
    """One JSON object per line; blank lines are skipped."""
    for number, line in read_lines(path):
        yield number, _json_row(line)


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file, decompressed if it is gzip, numbered from 1 and without blank ones."""
    open_bytes = gzip.open if path.suffix.lower() == ".gz" else Path.open
    with data_errors(path), open_bytes(path, "rb") as stream:
        for number, line in enumerate(stream, start=1):
            bare = line.removeprefix(BOM) if number == 1 else line
            if bare.strip():
                yield number, bare


def _json_row(line: bytes) -> dict[str, object] | BadLine:
    try:
        row = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        return BadLine("not UTF-8")
    except (ValueError, RecursionError):  # recursion: a line of ten thousand brackets
        return BadLine("not JSON")
    return row if isinstance(row, dict) else BadLine("not an object")


def read_csv_rows(path: Path) -> Iterator[NumberedRow]:
    """Comma-separated rows under a header; a row's number is the line on which it begins."""
    lines = read_csv_cells(path)
    _, first = next(lines, (0, list[str]()))
    header = _header(path, first)
    for number, cells in lines:
        yield number, cells if isinstance(cells, BadLine) else _csv_row(header, cells)


def read_csv_cells(path: Path) -> Iterator[tuple[int, list[str] | BadLine]]:
    """The cells of each row, with the line on which it begins."""
    # Bytes that are not UTF-8 pass as surrogates, so that one bad line stays one bad row.
    with (
        data_errors(path),
        path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream,
    ):
        yield from _parse_csv(path, csv.reader(stream, strict=True))


def _parse_csv(path: Path, reader: "_csv.Reader") -> Iterator[tuple[int, list[str] | BadLine]]:
    while True:
        number = reader.line_num + 1
        # The limit is global to the process, so it is raised for one row at a time.
        before = csv.field_size_limit(LONGEST_CELL)
        try:
            cells = next(reader, None)
        except csv.Error as why:
            if "unexpected end of data" in str(why):
                raise DataError(
                    f"{path}: a quote that opens in the row at line {number} never closes, "
                    "so the rows after it cannot be separated. Close it."
                ) from why
            yield number, BadLine("not CSV")
            continue
        finally:
            csv.field_size_limit(before)
        if cells is None:
            return
        if cells:
            yield number, cells


def _header(path: Path, header: list[str] | BadLine) -> list[str]:
    if isinstance(header, BadLine) or not is_utf8(header):
        raise DataError(f"{path}: the first line must name the columns, as CSV in UTF-8.")
    if twice := sorted({name for name in header if header.count(name) > 1}):
        name = shorten_name(twice[0])
        raise DataError(f"{path} has two columns named {name!r}; column names must differ.")
    return header


def _csv_row(header: Sequence[str], cells: list[str]) -> dict[str, object] | BadLine:
    if not is_utf8(cells):
        return BadLine("not UTF-8")
    if len(cells) > len(header):
        return BadLine("too many cells")
    return dict(zip(header, cells, strict=False))  # cells missing at the end are empty


def is_utf8(cells: Sequence[str]) -> bool:
    """False if bytes of the file were not UTF-8 and became surrogates."""
    return is_encodable("".join(cells))


def read_parquet_rows(path: Path) -> Iterator[NumberedRow]:
    """Rows of a Parquet file, numbered from 1, with one batch in memory at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with data_errors(path), pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=PARQUET_BATCH):
                for row in _batch_rows(batch):
                    number += 1
                    yield number, row
    except (pa.ArrowException, UnicodeDecodeError) as why:  # the latter from names of columns
        first = str(why).splitlines()[0]
        raise DataError(f"{path} is not a valid Parquet file: {first} Write it again.") from why


def _batch_rows(batch: Any) -> Iterator[dict[str, object] | BadLine]:
    try:
        yield from batch.to_pylist()
    except (UnicodeDecodeError, OverflowError):  # one bad cell fails the batch: find its row
        for start in range(batch.num_rows):
            try:
                yield from batch.slice(start, 1).to_pylist()
            except UnicodeDecodeError:
                yield BadLine("not UTF-8")
            except OverflowError:  # a date or a duration that Python cannot hold
                yield BadLine("a date out of range")


READERS_BY_EXTENSION: dict[str, Callable[[Path], Iterator[NumberedRow]]] = {
    ".jsonl": read_jsonl_rows,
    ".jsonl.gz": read_jsonl_rows,
    ".csv": read_csv_rows,
    ".parquet": read_parquet_rows,
}


def known_extension(path: Path) -> str | None:
    """The known extension of a file's name, or None."""
    return next(
        (ending for ending in READERS_BY_EXTENSION if path.name.lower().endswith(ending)), None
    )


@dataclass(frozen=True)
class FileSource:
    """The rows of one file; `name` is given by the user."""

    name: str
    path: Path

    def __post_init__(self) -> None:
        if known_extension(self.path) is None:
            raise DataError(
                f"{self.path} has an unknown extension. Known: {', '.join(READERS_BY_EXTENSION)}."
            )

    def sha256(self) -> str:
        """Hex digest of the file's bytes."""
        with data_errors(self.path), self.path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def __iter__(self) -> Iterator[NumberedRow]:
        return READERS_BY_EXTENSION[known_extension(self.path) or ""](self.path)
