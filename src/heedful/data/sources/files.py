"""Files as sources: JSON lines (plain or gzip), CSV and Parquet.

What is read at a time is bounded, so that no file, however large or however well compressed, can
take more memory than a machine has. The bounds are far beyond any text that people read.
"""

import csv
import errno
import gzip
import hashlib
import json
import os
import stat
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from heedful.core.errors import DataError, shorten_name, show_message
from heedful.data.dataset import NumberedRow
from heedful.data.labels import is_encodable
from heedful.data.sources.row_schema import BadLine

BOM = b"\xef\xbb\xbf"
MIB = 2**20
LONGEST_LINE = 32 * MIB  # bytes, or signs of CSV; ten times the longest novels
MOST_COLUMNS = 16_384  # as many as a spreadsheet has
PARQUET_BATCH = 256  # rows
LARGEST_BATCH = 512 * MIB  # bytes of its texts written out; 2 MiB for each row
WHOLE_BATCH = 32 * MIB  # a batch of more than that becomes Python objects row by row
SMALLEST_GOOD_ROW = {".jsonl": len('{"a":"b"}\n'), ".csv": len("b\n")}  # bytes
MOST_EXPANSION = 1032  # no gzip file grows by more when it is decompressed


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


def require_regular(path: Path) -> int:
    """The size of a file; DataError for what is none: pipes, devices, sockets.

    Those may never end, or never begin. Neither is a file with a hole longer than any line a
    regular file of texts: nobody ever wrote anything there, and it may have any size.
    """
    with data_errors(path):
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe, a device or a socket"
            raise DataError(
                f"{_shown(path)} is not a regular file but {kind}. Give a file of rows."
            )
        if found.st_size > LONGEST_LINE and (hole := _first_hole(path, found.st_size)):
            raise DataError(
                f"{_shown(path)} is not a regular file of rows but a sparse one, with a hole of "
                f"{hole} bytes in which nothing was written. Write or copy it again."
            )
        return found.st_size


def _first_hole(path: Path, size: int) -> int:
    """The length of the first hole in a file, where it is longer than a line may be; else 0."""
    if not hasattr(os, "SEEK_HOLE"):
        return 0
    with path.open("rb") as file:
        start = os.lseek(file.fileno(), 0, os.SEEK_HOLE)
        if start >= size:  # every file ends with a hole of no length
            return 0
        try:
            end = os.lseek(file.fileno(), start, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            end = size  # no data after it
    return end - start if end - start > LONGEST_LINE else 0


def _shown(path: Path) -> str:
    return shorten_name(str(path), most=1000)


def line_error(path: Path, line: int) -> DataError:
    """The error about a line that is too long."""
    return DataError(
        f"{_shown(path)}: line {line} is longer than {LONGEST_LINE // MIB} MiB; no text is as "
        "long. Write every row on a line of its own, or cut its text."
    )


def read_jsonl_rows(path: Path) -> Iterator[NumberedRow]:
    """One JSON object per line; blank lines are skipped."""
    for number, line in read_lines(path):
        yield number, _json_row(line)


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file, decompressed if it is gzip, numbered from 1 and without blank ones."""
    if not require_regular(path):  # nor is one read that only says it is empty, as the kernel's do
        return
    open_bytes = gzip.open if path.suffix.lower() == ".gz" else Path.open
    with data_errors(path), open_bytes(path, "rb") as stream:
        lines = iter(partial(stream.readline, LONGEST_LINE + 1), b"")
        for number, line in enumerate(lines, start=1):
            if len(line) > LONGEST_LINE:
                raise line_error(path, number)
            bare = line.removeprefix(BOM) if number == 1 else line
            if bare.strip():
                yield number, bare


class _KeyTwice(Exception):
    """An object of JSON names a key twice; which value is meant is not known."""


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _KeyTwice
    return found


def _json_row(line: bytes) -> dict[str, object] | BadLine:
    try:
        row = json.loads(line.decode("utf-8"), object_pairs_hook=_object)
    except _KeyTwice:
        return BadLine("a key twice")
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
    if not require_regular(path):
        return
    # Bytes that are not UTF-8 pass as surrogates, so that one bad line stays one bad row.
    with (
        data_errors(path),
        path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream,
    ):
        yield from _parse_csv(path, _RowLines(path, stream))


class _RowLines:
    """The lines of a CSV file; the lines of one row, as quotes may span them, are not too long."""

    def __init__(self, path: Path, stream: TextIO) -> None:
        self._path, self._stream = path, stream
        self._row, self._signs = 1, 0

    def begin_row(self, line: int) -> None:
        self._row, self._signs = line, 0

    def __iter__(self) -> Iterator[str]:
        for line in iter(partial(self._stream.readline, LONGEST_LINE + 1), ""):
            self._signs += len(line)
            if self._signs > LONGEST_LINE:
                raise DataError(
                    f"{_shown(self._path)}: the row at line {self._row} is longer than "
                    f"{LONGEST_LINE // MIB} MiB; no text is as long. Cut it, or close the quote "
                    "that opens there."
                )
            yield line


def _parse_csv(path: Path, lines: _RowLines) -> Iterator[tuple[int, list[str] | BadLine]]:
    reader = csv.reader(lines, strict=True)
    while True:
        number = reader.line_num + 1
        lines.begin_row(number)
        # The limit is global to the process, so it is raised for one row at a time.
        before = csv.field_size_limit(LONGEST_LINE)
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
    require_few_columns(path, len(header))
    if twice := sorted(name for name, count in Counter(header).items() if count > 1):
        name = shorten_name(twice[0])
        raise DataError(f"{path} has two columns named {name!r}; column names must differ.")
    return header


def require_few_columns(path: Path, count: int) -> None:
    """Raise DataError for a table of more columns than any table of texts."""
    if count > MOST_COLUMNS:
        raise DataError(
            f"{_shown(path)} has {count} columns; at most {MOST_COLUMNS} are read. "
            "Keep those of the text and the label, and what else is needed."
        )


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
    """Rows of a Parquet file, numbered from 1, with one batch in memory at a time.

    A text that many rows share is stored once, and stays so in memory: columns are read as
    dictionaries, and only rows that are asked for are written out.
    """
    import pyarrow.parquet as pq

    number = 0
    with parquet_errors(path):
        with pq.ParquetFile(path) as file:
            known, texts = file.metadata, _text_columns(path, file.schema)
        with pq.ParquetFile(path, metadata=known, read_dictionary=texts) as file:
            for batch in file.iter_batches(batch_size=PARQUET_BATCH):
                for row in _batch_rows(path, number, batch):
                    number += 1
                    yield number, row


@contextmanager
def parquet_errors(path: Path) -> Iterator[None]:
    """Turn errors in reading a Parquet file into a DataError that names it."""
    import pyarrow as pa

    require_regular(path)
    try:
        with data_errors(path):
            yield
    except pa.ArrowMemoryError as why:
        raise DataError(
            f"{_shown(path)}: some of its rows do not fit into memory. Write it again with smaller "
            "pages and shorter texts."
        ) from why
    except (pa.ArrowException, UnicodeDecodeError) as why:  # the latter from names of columns
        shown = show_message(why)
        raise DataError(
            f"{_shown(path)} is not a valid Parquet file: {shown} Write it again."
        ) from why


def count_parquet_rows(path: Path) -> int:
    """The number of rows, as the file has it."""
    import pyarrow.parquet as pq

    with parquet_errors(path):
        return int(pq.read_metadata(path).num_rows)


def _text_columns(path: Path, schema: Any) -> list[str]:
    """The paths of all columns of text or bytes, those in lists among them."""
    require_few_columns(path, len(schema))
    columns = map(schema.column, range(len(schema)))
    kinds = ("STRING", "NONE", "JSON", "ENUM")  # Arrow has no dictionaries of decimals
    return [
        one.path
        for one in columns
        if one.physical_type == "BYTE_ARRAY" and one.logical_type.type in kinds
    ]


def _batch_rows(path: Path, before: int, batch: Any) -> Iterator[dict[str, object] | BadLine]:
    size = sum(map(_expanded_bytes, batch.columns))
    if size > LARGEST_BATCH:
        raise DataError(
            f"{_shown(path)}: the rows {before + 1} to {before + batch.num_rows} hold "
            f"{size // MIB} MiB; {PARQUET_BATCH} rows may hold {LARGEST_BATCH // MIB}. "
            "Cut their texts."
        )
    if size <= WHOLE_BATCH:
        yield from _slice_rows(batch)
        return
    for start in range(batch.num_rows):
        row = batch.slice(start, 1)
        if (size := sum(map(_expanded_bytes, row.columns))) > LONGEST_LINE:
            raise DataError(
                f"{_shown(path)}: row {before + start + 1} holds {size // MIB} MiB; a row may hold "
                f"{LONGEST_LINE // MIB}. Cut its text."
            )
        yield from _slice_rows(row)


def _expanded_bytes(values: Any) -> int:
    """The bytes of an array whose dictionaries are written out; a value takes eight at least."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, least = values.type, 8 * len(values)
    if pa.types.is_dictionary(kind):
        words = values.dictionary
        texts = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
        if words.type in texts:
            lengths = pc.take(pc.binary_length(words), values.indices)
            return least + int(pc.sum(pc.cast(lengths, pa.int64())).as_py() or 0)
        return least + int(words.nbytes) // max(len(words), 1) * len(values)
    if pa.types.is_struct(kind):
        return least + sum(map(_expanded_bytes, values.flatten()))
    if hasattr(values, "flatten") and not pa.types.is_map(kind):  # a list
        return least + _expanded_bytes(values.flatten())
    if pa.types.is_map(kind):
        return least + _expanded_bytes(values.keys) + _expanded_bytes(values.items)
    return max(least, int(values.nbytes))


def _slice_rows(batch: Any) -> Iterator[dict[str, object] | BadLine]:
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
        with data_errors(self.path):
            require_regular(self.path)
            with self.path.open("rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest()

    def most_good_rows(self) -> int:
        """More good rows than this the file cannot hold, by its size."""
        ending = known_extension(self.path)
        if ending == ".parquet":
            return count_parquet_rows(self.path)
        with data_errors(self.path):
            size = self.path.stat().st_size
        if ending == ".jsonl.gz":
            ending, size = ".jsonl", size * MOST_EXPANSION
        return int((size + 1) // SMALLEST_GOOD_ROW[ending or ""])

    def __iter__(self) -> Iterator[NumberedRow]:
        return READERS_BY_EXTENSION[known_extension(self.path) or ""](self.path)
