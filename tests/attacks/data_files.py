"""Hostile rows and data files: cells, lines, whole files, and what is no file at all."""

import csv
import gzip
import io
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import heedful
from attacks.sandbox import Answer, Attempt, Place, must_be_refused, run_function

Row = dict[str, Any]
WORDS = [
    "a",
    "fine",
    "dull",
    "film",
    "that",
    "nobody",
    "was",
    "ever",
    "w1",
    "w2",
    "w3",
    "sorry",
    "to",
    "see",
    "again",
]
FIELDS = (
    *("text", "label", "tokens", "rationale", "word_scores", "candidates", "messages"),
    *("premise", "hypothesis", "paragraph", "question", "other"),
)
TEXTS = (
    *("", " \t", "\0", "a \0 b", "\ud800", "a\udfffb", "\u202eb\u202c", "\ufeffa", "\x1b[31m"),
    *(
        "</script><script>alert(1)</script>",
        "=cmd|' /C calc'!A0",
        "a\r\nb",
        "\u2028",
        "🇩🇪👩‍👩‍👧",
        "\u202e",
    ),
)
NUMBERS = (
    *(0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**30, 10**308, 10**400),
    *(0.5, -0.0, 1e308, 5e-324, float("nan"), float("inf"), float("-inf")),
)
BIG = 50_000_000  # bytes that a bomb expands to


def good_row(draw: random.Random) -> Row:
    text = " ".join(draw.choices(WORDS, k=draw.randint(1, 12)))
    return {"text": text, "label": draw.choice(("no", "yes"))}


def hostile_value(draw: random.Random, depth: int = 3) -> Any:
    """A value as no honest row has it."""
    kind = draw.randrange(8 if depth else 5)
    if kind == 0:
        return draw.choice(TEXTS)
    if kind == 1:
        return draw.choice(NUMBERS)
    if kind == 2:
        return draw.choice((None, True, False))
    if kind == 3:
        return draw.choice(WORDS) * draw.choice((1, 3000))
    if kind == 4:
        return good_row(draw)["text"]
    if kind == 5:
        return {draw.choice(TEXTS): hostile_value(draw, depth - 1) for _ in range(2)}
    values = [hostile_value(draw, depth - 1) for _ in range(draw.randrange(5))]
    return json.dumps(values) if kind == 6 else values


def hostile_row(draw: random.Random) -> Row:
    """A row with fields that contradict each other, or hold anything at all."""
    row = good_row(draw)
    for name in draw.sample(FIELDS, k=draw.randint(1, 4)):
        row[name] = hostile_value(draw)
    count = len(row["text"].split()) if isinstance(row["text"], str) else 1
    if draw.random() < 0.3:  # as many as there are words, of a size that no float has
        row["word_scores"] = [draw.choice(NUMBERS) for _ in range(count)]
    if draw.random() < 0.3:
        row["rationale"] = [[draw.choice((0, -1, 1)), draw.choice((1, count, 2**70))]]
    if draw.random() < 0.2:
        row.pop(draw.choice(tuple(row)))
    return row


def rows(draw: random.Random) -> list[Row]:
    """Some honest rows and some that are not; often few enough of these to be passed over."""
    many = draw.choice((0, 1, 8, 120))
    found = [good_row(draw) for _ in range(many)]
    for _ in range(draw.choice((1, 1, 2, 10))):
        found.insert(draw.randint(0, len(found)), hostile_row(draw))
    return found


def as_jsonl(found: list[Row], draw: random.Random) -> bytes:
    lines = [json.dumps(row, ensure_ascii=draw.random() < 0.7) for row in found]
    return (draw.choice(("\n", "\n", "\r\n", "\n\n")).join(lines)).encode("utf-8", "surrogatepass")


def as_csv(found: list[Row], draw: random.Random) -> bytes:
    stream = io.StringIO()
    names = list(dict.fromkeys(name for row in found for name in row)) or ["text"]
    writer = csv.writer(stream, delimiter=draw.choice(",,,;\t"))
    writer.writerow(names)
    writer.writerows([_cell(row.get(name)) for name in names] for row in found)
    return stream.getvalue().encode("utf-8", "surrogatepass")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def as_parquet(found: list[Row], draw: random.Random) -> bytes:
    """Rows whose odd cells became text, where Arrow has no type for the column."""
    columns = {}
    for name in dict.fromkeys(name for row in found for name in row):
        values = [row.get(name) for row in found]
        try:
            columns[name] = pa.array(values)
        except (pa.ArrowException, OverflowError, UnicodeEncodeError, ValueError, TypeError):
            plain = [_cell(one).encode("utf-8", "replace").decode() for one in values]
            columns[name] = pa.array(plain)
    names = [name.encode("utf-8", "replace").decode() for name in columns]
    table = pa.table(list(columns.values()), names=names)
    if draw.random() < 0.3:
        table = pa.table({n: _dictionary(table[n]) for n in table.column_names})
    return _parquet(table, compression=draw.choice(("none", "snappy", "zstd")))


def _dictionary(column: Any) -> Any:
    text = pa.types.is_string(column.type) or pa.types.is_integer(column.type)
    return column.dictionary_encode() if text else column


def _parquet(table: Any, **how: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(table, stream, **how)
    return stream.getvalue()


ENDINGS: dict[str, Callable[[list[Row], random.Random], bytes]] = {
    ".jsonl": as_jsonl,
    ".jsonl.gz": lambda found, draw: gzip.compress(as_jsonl(found, draw), 1),
    ".csv": as_csv,
    ".parquet": as_parquet,
}


def damaged(raw: bytes, draw: random.Random) -> bytes:
    """Bytes cut, flipped, doubled, overwritten, or in another encoding."""
    kind, at = draw.randrange(8), draw.randint(0, len(raw))
    if kind == 0:
        return raw[:at]
    if kind == 1:
        return raw[:at] + draw.randbytes(draw.choice((1, 4, 200))) + raw[at:]
    if kind == 2:
        flipped = bytearray(raw)
        for _ in range(draw.choice((1, 3, 50))):
            if flipped:
                flipped[draw.randrange(len(flipped))] ^= 1 << draw.randrange(8)
        return bytes(flipped)
    if kind == 3:
        return raw[:at] + bytes(draw.choice((1, 100, 5000))) + raw[at:]
    if kind == 4:
        return draw.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\xef\xbb\xbf\xef\xbb\xbf")) + raw
    if kind == 5:
        return raw + raw[at:]
    if kind == 6:
        return raw.decode("utf-8", "replace").encode(draw.choice(("utf-16", "utf-32", "utf-7")))
    return draw.choice((b"", b"\n", b"\0", b"{", b'"', b"[" * 100_000, b"text,label\n", raw[::-1]))


def draw_rows(draw: random.Random, place: Place) -> Attempt:
    """A file of odd rows."""
    ending = draw.choice(tuple(ENDINGS))
    path, found = place.folder / f"rows{ending}", rows(draw)
    path.write_bytes(ENDINGS[ending](found, draw))
    return reading(path, f"{len(found)} odd rows as {ending}", draw)


def draw_bytes(draw: random.Random, place: Place) -> Attempt:
    """A sound file, damaged."""
    ending = draw.choice(tuple(ENDINGS))
    path, raw = place.folder / f"rows{ending}", ENDINGS[ending](rows(draw), draw)
    inside = ending == ".jsonl.gz" and draw.random() < 0.5
    raw = gzip.compress(damaged(gzip.decompress(raw), draw), 1) if inside else damaged(raw, draw)
    path.write_bytes(raw)
    return reading(path, f"damaged {ending}", draw)


def reading(path: Path, what: str, draw: random.Random, *, refused: bool = False) -> Attempt:
    """Read a file as data: whatever comes out must be what was counted, each text fit to print."""
    complaints: list[str] = []
    limit = draw.choice((None, 1, 8))

    def read() -> None:
        data = heedful.read(path, limit=limit, labelled=draw.random() < 0.8)
        found = [(one.text, one.label) for one in data]
        if len(found) != len(data):
            complaints.append(f"{len(found)} rows where {len(data)} were counted")
        for text, label in found:
            text.encode()
            if not text.strip() or not -1 <= label < len(data.labels):
                complaints.append(f"text {text[:50]!r} with label {label}")
        if found != [(one.text, one.label) for one in data]:
            complaints.append("other rows when read again")

    def wrong(answer: Answer) -> str:
        return must_be_refused(answer) if refused else "; ".join(complaints[:3])

    return Attempt(what, lambda: run_function(read), wrong)


def _line(draw: random.Random, text: str, **more: Any) -> bytes:
    return json.dumps({"text": text, "label": "yes", **more}).encode() + b"\n"


def huge_line(draw: random.Random, folder: Path) -> Path:
    """One text of tens of megabytes."""
    path = folder / draw.choice(("rows.jsonl", "rows.csv"))
    text = "w1 " * draw.choice((100_000, 15_000_000))
    head = b"text,label\n" if path.suffix == ".csv" else b""
    path.write_bytes(head + (f"{text},yes\n".encode() if head else _line(draw, text)))
    return path


def gzip_bomb(draw: random.Random, folder: Path) -> Path:
    """A few kilobytes that become fifty megabytes: one line, or empty lines, or gzip in gzip."""
    path = folder / "rows.jsonl.gz"
    kind = draw.randrange(3)
    inside = (b'{"text": "' + b"a" * BIG + b'", "label": 1}', b"\n" * BIG, b" " * BIG)[kind]
    path.write_bytes(gzip.compress(inside, 9))
    return path


def deep(draw: random.Random, folder: Path) -> Path:
    """Brackets in brackets, in a line of JSON or in a cell that is read as JSON."""
    many = draw.choice((500, 5000, 200_000))
    opened, closed = draw.choice((("[", "]"), ('{"a":', "}")))
    nested = opened * many + "1" + closed * many
    lines = [json.dumps(good_row(draw)) for _ in range(150)]
    lines.append(draw.choice((nested, f'{{"text": {nested}, "label": "yes"}}')))
    lines.append(json.dumps({"text": "a b", "label": "yes", "rationale": nested}))
    path = folder / "rows.jsonl"
    path.write_text("\n".join(lines))
    return path


def doubled_keys(draw: random.Random, folder: Path) -> Path:
    """Objects that name a column twice, with different values; each must be told of."""
    lines = [json.dumps(good_row(draw)) for _ in range(20)]
    twice = draw.choice(("text", "label"))
    lines += [f'{{"{twice}": "a", "text": "b", "label": "no", "{twice}": "c"}}'] * 5
    path = folder / "rows.jsonl"
    path.write_text("\n".join(lines))
    return path


def wide_csv(draw: random.Random, folder: Path) -> Path:
    """A header of very many columns."""
    names = [f"c{number}" for number in range(draw.choice((20_000, 200_000)))]
    path = folder / "rows.csv"
    path.write_text(",".join(["text", "label", *names]) + "\nw1,yes\n")
    return path


def wide_json(draw: random.Random, folder: Path) -> Path:
    """Every row with thousands of columns of its own."""
    path = folder / "rows.jsonl"
    with path.open("w") as file:
        for row in range(120):
            odd = {f"c{row}_{number}": 1 for number in range(2000)}
            file.write(json.dumps({**good_row(draw), **odd}) + "\n")
    return path


def parquet_bomb(draw: random.Random, folder: Path) -> Path:
    """A few kilobytes of dictionary whose rows are gigabytes: one long text, a thousand times."""
    text = "w1 " * draw.choice((10_000, 1_000_000))
    many = draw.choice((1000, 5000))
    column = pa.DictionaryArray.from_arrays(pa.array([0] * many, pa.int32()), pa.array([text]))
    path = folder / "rows.parquet"
    pq.write_table(pa.table({"text": column, "label": pa.array(["yes"] * many)}), path)
    return path


def wide_parquet(draw: random.Random, folder: Path) -> Path:
    """Thousands of columns beside the text."""
    columns = {f"c{number}": [1] for number in range(5000)}
    path = folder / "rows.parquet"
    pq.write_table(pa.table({"text": ["w1"], "label": ["yes"], **columns}), path)
    return path


def all_bad(draw: random.Random, folder: Path) -> Path:
    """A long file none of whose rows is good: known after the first hundreds."""
    path = folder / "rows.jsonl"
    path.write_bytes(b"{}\n" * 10 + b'{"text": 1, "label": 2}\n' * 1_000_000)
    return path


def many_labels(draw: random.Random, folder: Path) -> Path:
    """Every row a class of its own, with a long name."""
    lines = (json.dumps({"text": "w1", "label": f"{'x' * 500}{n}"}) for n in range(20_000))
    path = folder / "rows.jsonl"
    path.write_text("\n".join(lines))
    return path


LARGE: tuple[tuple[Callable[[random.Random, Path], Path], bool], ...] = (
    *((huge_line, False), (gzip_bomb, False), (deep, False), (doubled_keys, True)),
    *((wide_csv, False), (wide_json, False), (parquet_bomb, False), (wide_parquet, False)),
    *((all_bad, True), (many_labels, False)),
)


def draw_large(draw: random.Random, place: Place) -> Attempt:
    """What costs time or memory out of all proportion."""
    make, refused = draw.choice(LARGE)
    what = (make.__doc__ or "").split(":")[0].split(",")[0]
    return reading(make(draw, place.folder), f"{make.__name__}: {what}", draw, refused=refused)


def fifo(path: Path) -> None:
    os.mkfifo(path)


def device(name: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(f"/dev/{name}")


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def folder_of_itself(path: Path) -> None:
    path.mkdir()
    (path / "test.jsonl").symlink_to(path)


def socket(path: Path) -> None:
    import socket as sockets

    before = Path.cwd()
    os.chdir(path.parent)  # names of sockets are short
    with sockets.socket(sockets.AF_UNIX) as one:
        one.bind(path.name)
    os.chdir(before)


NO_FILES: dict[str, Callable[[Path], None]] = {
    "fifo": fifo,
    **{f"/dev/{name}": device(name) for name in ("zero", "null", "urandom", "full", "tty")},
    "sparse file of a terabyte": sparse,
    "symlink loop": loop,
    "dangling symlink": dangling,
    "folder": Path.mkdir,
    "folder that holds itself": folder_of_itself,
    "empty file": Path.touch,
    "socket": socket,
    "/proc/self/mem": lambda path: path.symlink_to("/proc/self/mem"),
    "/proc/kmsg": lambda path: path.symlink_to("/proc/kmsg"),
}


def draw_no_file(draw: random.Random, place: Place) -> Attempt:
    """What has the name of a file and is none."""
    what = draw.choice(tuple(NO_FILES))
    ending = draw.choice(tuple(ENDINGS))
    data = path = place.folder / f"rows{ending}"
    if draw.random() < 0.3:  # as a split of a folder
        data = place.folder / "data"
        data.mkdir()
        path = data / f"test{ending}"
    NO_FILES[what](path)
    return reading(data, f"{what} as {path.name}", draw, refused=True)


KINDS = ((draw_rows, 50), (draw_bytes, 42), (draw_large, 4), (draw_no_file, 4))


def draw_data(draw: random.Random, place: Place) -> Attempt:
    """Any attack by data."""
    kinds, weights = zip(*KINDS, strict=True)
    return draw.choices(kinds, weights)[0](draw, place)
