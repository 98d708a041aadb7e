"""Files of each kind, sound and broken."""

import csv
import gzip
import hashlib
import json
import os
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.core.errors import DataError
from heedful.data import read
from heedful.data.sources import files, validation
from heedful.data.sources.files import FileSource, read_jsonl_rows, read_parquet_rows
from heedful.data.sources.row_schema import BadLine, read_row

ROWS = [{"text": f'a fine, "round" film\nno {i} \0 é', "label": i % 3} for i in range(150)]
LINES = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)


def write(folder, ending):
    file = folder / f"rows{ending}"
    if ending == ".csv":
        with file.open("w", newline="", encoding="utf-8-sig") as stream:
            writer = csv.DictWriter(stream, ["text", "label"])
            writer.writeheader()
            writer.writerows(ROWS)
    elif ending == ".parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), file)
    else:
        file.write_bytes(gzip.compress(LINES) if ending.endswith("gz") else LINES)
    return file


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".csv", ".parquet", ".JSONL"])
def test_every_kind_of_file_gives_the_same_examples(tmp_path, ending):
    file = write(tmp_path, ending)
    data = read(str(file), split="train")
    assert [(e.text, data.labels[e.label]) for e in data] == [
        (row["text"], str(row["label"])) for row in ROWS
    ]
    assert data.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert (data.name, data.split, len(data)) == (str(file), "train", 150)


def test_bad_lines_of_jsonl(tmp_path):
    file = tmp_path / "rows.jsonl"
    bad = [b"{", b"[" * 100_000, b"1" * 5000, b"[1]", b"\xff", b'{"text": "\xe9"}', b"\r"]
    file.write_bytes(b"\xef\xbb\xbf" + LINES * 5 + b"\n \n" + b"\n".join(bad) + b"\n")
    data = read(file)
    assert data.bad.lines == {
        "not JSON": (753, 754, 755),
        "not an object": (756,),
        "not UTF-8": (757, 758),
    }
    assert len(data) == 750


@given(st.lists(st.binary().map(lambda line: line.replace(b"\n", b" "))))
def test_any_bytes_are_accounted_for_line_by_line(tmp_path_factory, lines):
    file = tmp_path_factory.mktemp("lines") / "rows.jsonl"
    file.write_bytes(b"\n".join(lines))
    starts = [i for i, line in enumerate(lines, 1) if line.strip()]
    if lines and lines[0].strip() == b"\xef\xbb\xbf":
        starts.remove(1)
    assert [number for number, _ in read_jsonl_rows(file)] == starts


json_lines = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["text", "label", "rationale"]), inner)
    ),
).map(lambda value: json.dumps(value).encode())


def unfit(row):
    return isinstance(read_row(row, {f: f for f in ("text", "label", "rationale")}), BadLine)


@settings(max_examples=15)
@given(st.lists(st.binary().map(lambda line: line.replace(b"\n", b"?")) | json_lines, max_size=4))
def test_any_lines_are_good_or_bad_or_too_bad(tmp_path_factory, lines):
    file = tmp_path_factory.mktemp("lines") / "rows.jsonl"
    file.write_bytes(LINES + b"\n".join(lines))
    total = 150 + sum(1 for line in lines if line.strip())
    bad = sum(isinstance(row, BadLine) or unfit(row) for _, row in read_jsonl_rows(file))
    if 100 * bad > total:
        with pytest.raises(DataError, match=f": {bad} of {total} rows cannot be used"):
            read(file)
    else:
        data = read(file)
        assert (len(data), data.bad.total) == (total - bad, bad)
        assert sum(1 for _ in data) == len(data)


def test_bad_rows_of_csv_have_the_line_they_begin_on(tmp_path):
    file = tmp_path / "rows.csv"
    good = b'"two\nlines",1\n' * 500
    file.write_bytes(b"text,label\n" + good + b'\na\xff,1\na,1,2\n"a"b,1\nshort\n' + good)
    data = read(file)
    assert data.bad.lines == {
        "not UTF-8": (1003,),
        "too many cells": (1004,),
        "not CSV": (1005,),
        "no label": (1006,),
    }
    assert len(data) == 1000


def test_long_cells_of_csv_are_read_and_the_limit_is_put_back(tmp_path):
    file, before = tmp_path / "rows.csv", csv.field_size_limit()
    file.write_text(f"text,label\n{'a' * 200_000},1\n")
    (example,) = read(file)
    assert len(example.text) == 200_000
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'text,label\na,1\n"b,1\nc,1\n', "a quote that opens in the row at line 3 never closes"),
        (b"te\xffxt,label\n", "the first line must name the columns, as CSV in UTF-8"),
        (b'"te"xt,label\n', "the first line must name the columns, as CSV in UTF-8"),
        (b"text,text\n", "two columns named 'text'; column names must differ"),
        (b"", "is empty; it must have at least one row"),
    ],
)
def test_broken_csv(tmp_path, content, message):
    file = tmp_path / "rows.csv"
    file.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read(file)


def test_broken_gzip(tmp_path):
    file = write(tmp_path, ".jsonl.gz")
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    with pytest.raises(DataError, match="is truncated: the gzip file has no end"):
        read(file)
    file.write_bytes(LINES)
    with pytest.raises(DataError, match="is not a valid gzip file"):
        read(file)
    file.write_bytes(whole[:30] + b"\0" * 30 + whole[60:])
    with pytest.raises(DataError, match="is not a valid gzip file"):
        read(file)


def test_broken_parquet(tmp_path):
    file = write(tmp_path, ".parquet")
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(DataError, match="is not a valid Parquet file"):
        read(file)


def test_text_in_parquet_that_is_not_utf8(tmp_path):
    raw = pa.array([b"\xff" if i == 7 else b"fine" for i in range(200)], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 200, raw.buffers())
    pq.write_table(pa.table({"text": text, "label": [0, 1] * 100}), tmp_path / "rows.parquet")
    data = read(tmp_path / "rows.parquet")
    assert data.bad.lines == {"not UTF-8": (8,)}
    assert len(data) == 199


def test_unknown_ending_and_unreadable_file(tmp_path):
    (tmp_path / "rows.txt").write_text("a")
    with pytest.raises(DataError, match=r"has an unknown extension. Known: .jsonl, .jsonl.gz, .c"):
        read(tmp_path / "rows.txt")
    source = FileSource("rows", tmp_path / "gone.jsonl")
    with pytest.raises(DataError, match=r"gone.jsonl cannot be read: No such file or directory\."):
        list(source)
    with pytest.raises(DataError, match="cannot be read"):
        source.sha256()


def test_reading_is_a_stream(tmp_path):
    rows = iter(FileSource("rows", write(tmp_path, ".jsonl")))
    assert next(rows)[0] == 1
    assert not isinstance(next(rows)[1], BadLine)


def refused(path):
    with pytest.raises(DataError) as caught:
        read(path)
    return str(caught.value)


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".csv"])
def test_a_line_that_is_too_long_is_refused(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(files, "LONGEST_LINE", 20_000)
    file = write(tmp_path, ending)
    assert len(read(file)) == 150
    long = b'"' + b"a" * 20_000 + b'",1\n'
    good = gzip.decompress(file.read_bytes()) if ending.endswith("gz") else file.read_bytes()
    whole = good + long
    file.write_bytes(gzip.compress(whole) if ending.endswith("gz") else whole)
    line = good.count(b"\n") + 1
    assert re.search(rf"line {line} is longer than", refused(file))


def test_a_quote_that_never_closes_does_not_read_all(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LONGEST_LINE", 1000)
    (tmp_path / "rows.csv").write_text('text,label\na,1\n"b,1\n' + "c,1\n" * 1000)
    said = refused(tmp_path / "rows.csv")
    assert "the row at line 3 is longer than" in said
    assert "close the quote" in said


def test_columns_are_counted(tmp_path):
    names = [f"c{n}" for n in range(files.MOST_COLUMNS - 2)]
    (tmp_path / "rows.csv").write_text(",".join(["text", "label", *names]) + "\nfine,1\n")
    assert len(read(tmp_path / "rows.csv")) == 1
    (tmp_path / "rows.csv").write_text(",".join(["text", "label", "x", *names]) + "\nfine,1\n")
    assert "has 16385 columns; at most 16384 are read" in refused(tmp_path / "rows.csv")


def test_dictionaries_of_parquet_are_not_written_out_at_once(tmp_path, monkeypatch):
    texts = pa.array(["fine " * 200, "dull"]).take(pa.array([0, 1] * 300))
    labels = pa.array(["yes", "no"] * 300)
    nested = pa.array([[["a", "b"], None], []] * 300)
    more = pa.array([{"a": "x" * 50}, None] * 300)
    table = pa.table({"text": texts.dictionary_encode(), "label": labels, "n": nested, "m": more})
    for column in ("text", "label"):
        pq.write_table(table, tmp_path / "rows.parquet", use_dictionary=[column])
        assert [one.text for one in read(tmp_path / "rows.parquet")] == texts.to_pylist()
        rows = [row for _, row in read_parquet_rows(tmp_path / "rows.parquet")]
        assert rows == table.to_pylist()
    monkeypatch.setattr(files, "WHOLE_BATCH", 1000)  # row by row
    assert [row for _, row in read_parquet_rows(tmp_path / "rows.parquet")] == rows
    monkeypatch.setattr(files, "LONGEST_LINE", 1000)
    assert "row 1 holds" in refused(tmp_path / "rows.parquet")
    monkeypatch.setattr(files, "LARGEST_BATCH", 100_000)
    assert "rows 1 to 256 hold" in refused(tmp_path / "rows.parquet")


def test_what_is_no_regular_file(tmp_path):
    os.mkfifo(tmp_path / "rows.jsonl")
    assert "is not a regular file but a pipe, a device or a socket" in refused(
        tmp_path / "rows.jsonl"
    )
    (tmp_path / "rows.csv").symlink_to("/dev/zero")
    assert "is not a regular file" in refused(tmp_path / "rows.csv")
    with pytest.raises(DataError, match="is not a regular file"):
        FileSource("rows", tmp_path / "rows.csv").sha256()
    (tmp_path / "linked.jsonl").symlink_to(write(tmp_path, ".jsonl.gz").rename(tmp_path / "r.gz"))
    (tmp_path / "linked.jsonl.gz").symlink_to(tmp_path / "r.gz")
    assert len(read(tmp_path / "linked.jsonl.gz")) == 150


def test_small_holes_are_files_like_any_other(tmp_path):
    file = write(tmp_path, ".jsonl")
    with file.open("ab") as stream:
        stream.truncate(len(LINES) + 1_000_000)
    assert read(file).bad.lines == {"not JSON": (151,)}  # the hole reads as zeros
    file.write_bytes(LINES)
    with file.open("ab") as stream:
        stream.truncate(2**34)
    assert "is not a regular file of rows but a sparse one" in refused(file)


def test_a_key_twice_is_a_bad_row(tmp_path):
    (tmp_path / "rows.jsonl").write_bytes(
        LINES + b'{"text": "a", "label": 1, "text": "b"}\n{"text": "a", "label": 1, "m": {}}\n'
    )
    data = read(tmp_path / "rows.jsonl")
    assert data.bad.lines == {"a key twice": (151,)}
    assert len(data) == 151


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".csv", ".parquet"])
def test_bad_rows_at_the_front_end_nothing_that_would_pass(tmp_path, monkeypatch, ending):
    """As where a table is sorted by text; of as many good rows as fit one cannot say too many."""
    monkeypatch.setattr(validation, "FEWEST_BAD_ROWS", 1)
    rows = [{"text": "", "label": "a"}] * 3 + [{"text": "b", "label": "a"}] * 297
    file = tmp_path / f"rows{ending}"
    if ending == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
    elif ending == ".csv":
        file.write_text("text,label\n" + "".join(f"{one['text']},a\n" for one in rows))
    else:
        lines = "".join(json.dumps(one) + "\n" for one in rows).encode()
        file.write_bytes(gzip.compress(lines) if ending.endswith("gz") else lines)
    assert (read(file).bad.total, len(read(file))) == (3, 297)


def test_too_many_bad_rows_are_known_before_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(validation, "FEWEST_BAD_ROWS", 5)
    file = tmp_path / "rows.jsonl"
    file.write_bytes(LINES + b'{"text": 7, "label": 1}\n' * 2000)
    told = r": ([0-9]+) of the first ([0-9]+) rows cannot be used; at most 1 % may be bad"
    found, read_rows = map(int, re.search(told, refused(file)).groups())
    room = file.stat().st_size // len('{"a":"b"}\n')
    assert read_rows == found + 150
    assert 99 * found > room >= 99 * (found - 1)


def test_too_many_bad_rows_of_which_the_number_is_known():
    rows = [{"text": "", "label": 1}] * 500 + [{"text": "fine", "label": 1}] * 15_000
    with pytest.raises(DataError, match="200 of the first 200 rows cannot be used"):
        read(rows)
