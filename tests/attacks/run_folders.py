"""Damage to the folders of finished and of interrupted runs."""

import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from attacks.data_files import NO_FILES, hostile_value
from attacks.model_folders import Bases
from attacks.sandbox import Answer, Attempt, Place, run_command, run_forked

KINDS = ("measurements", "texts", "text_ids", "maps")
NOT_KEPT = (".lock", "report.html", "figures")  # written again from the rest
PLAN = """instances_per_job = 4
resamples = 100
checks = ["agreement", "permutation"]
[settings.permutation]
draws = 5
"""
WORDS = [
    "a",
    "film",
    "that",
    "is",
    "so",
    "fine",
    ",",
    "and",
    "in",
    "places",
    "very",
    "dull",
    "not",
    "good",
    "bad",
    "w1",
    "w2",
    "w3",
    "w4",
    "w5",
]


@dataclass(frozen=True)
class Finished:
    """A sound run and the command that made it, without --out."""

    folder: Path
    words: tuple[str, ...]

    @classmethod
    def make(cls, model: Path, folder: Path) -> "Finished":
        """Audit twelve texts, in three jobs.

        In a process of its own: threads of pyarrow would not live on in the cases forked later.
        """
        draw = random.Random(7)
        data, plan = folder.with_suffix(".jsonl"), folder.with_suffix(".toml")
        texts = [" ".join(draw.choices(WORDS, k=draw.randint(2, 9))) for _ in range(12)]
        rows = [{"text": one, "label": n % 2} for n, one in enumerate(texts)]
        data.write_text("".join(json.dumps(row) + "\n" for row in rows))
        plan.write_text(PLAN)
        words = ("audit", str(model), str(data), "--plan", str(plan), "--quiet")
        run_forked(lambda: run_command(*words, "--out", folder))
        if not (folder / "verdict.json").exists():
            raise RuntimeError(f"the sound run failed: {folder}")
        return cls(folder, words)


def make_runs(bases: Bases, folder: Path) -> tuple[Finished, ...]:
    """A run of our own network, and one of a transformer, which keeps its maps."""
    folder.mkdir()
    return (
        Finished.make(bases.own, folder / "own"),
        Finished.make(bases.bert, folder / "bert"),
    )


def kept_files(folder: Path) -> list[Path]:
    """Every file that a run keeps, below its folder."""
    files = (one.relative_to(folder) for one in sorted(folder.rglob("*")) if one.is_file())
    return [one for one in files if one.parts[0] not in NOT_KEPT]


def content(folder: Path) -> dict[str, Any]:
    """What a run keeps, by file: rows of tables, text, and the manifest without its clock."""
    found: dict[str, Any] = {}
    for name in kept_files(folder):
        path = folder / name
        if path.suffix == ".parquet":
            found[str(name)] = repr(_rows(path))
        elif path.name == "manifest.json":
            manifest = json.loads(path.read_text())
            found[str(name)] = {one: manifest.get(one) for one in ("model", "data", "seed")}
        elif path.name in ("verdict.json", "plan.toml"):
            found[str(name)] = path.read_text()
    return found


def _rows(path: Path) -> list[Any]:
    return _read(path).to_pylist()


Spoil = Callable[[random.Random, Path], None]


def remove(draw: random.Random, path: Path) -> None:
    path.unlink()


def truncate(draw: random.Random, path: Path) -> None:
    os.truncate(path, draw.randrange(path.stat().st_size))


def flip(draw: random.Random, path: Path) -> None:
    raw = bytearray(path.read_bytes())
    for _ in range(draw.choice((1, 1, 5))):
        raw[draw.randrange(len(raw))] ^= 1 << draw.randrange(8)
    path.write_bytes(raw)


def grow(draw: random.Random, path: Path) -> None:
    path.write_bytes(path.read_bytes() + draw.choice((b"\0", b"\n", b"PAR1", b"x = 1\n")))


def no_file(draw: random.Random, path: Path) -> None:
    path.unlink()
    NO_FILES[draw.choice(tuple(NO_FILES))](path)


def shorten(draw: random.Random, path: Path) -> None:
    table = _read(path)
    _write(table.slice(0, draw.randrange(len(table))), path)


def double_rows(draw: random.Random, path: Path) -> None:
    table = _read(path)
    _write(pa.concat_tables([table, table.slice(0, draw.randint(1, len(table)))]), path)


def double_file(draw: random.Random, path: Path) -> None:
    number = draw.choice((path.stem[:9], "000000012", "000000002"))
    shutil.copy(path, path.with_name(f"{number}-{draw.randbytes(10).hex()}.parquet"))


def alter(draw: random.Random, path: Path) -> None:
    """One cell holds another value of its type."""
    table = _read(path)
    name = draw.choice(table.column_names)
    cells = table[name].to_pylist()
    at = draw.randrange(len(cells))
    cells[at] = _another(cells[at], table.schema.field(name).type)
    place = table.column_names.index(name)
    field = table.schema.field(name)
    _write(table.set_column(place, field, pa.array(cells, field.type)), path)


def _another(value: Any, kind: pa.DataType) -> Any:
    if isinstance(value, list) and value:
        return [_another(value[0], kind.value_type), *value[1:]]
    if pa.types.is_string(kind):
        return f"{value}x"
    if pa.types.is_list(kind):
        return [] if value is None else None
    return 1 if value is None else value + 1


def nulls(draw: random.Random, path: Path) -> None:
    """A column holds nothing any more."""
    table = _read(path)
    name = draw.choice(table.column_names)
    place = table.column_names.index(name)
    field = table.schema.field(name)
    if table[name].null_count == len(table):
        return remove(draw, path)
    return _write(table.set_column(place, field, pa.nulls(len(table), field.type)), path)


def drop_column(draw: random.Random, path: Path) -> None:
    table = _read(path)
    known = [name for name in table.column_names if table[name].null_count < len(table)]
    _write(table.drop_columns([draw.choice(known)]), path)


def change_type(draw: random.Random, path: Path) -> None:
    table = _read(path)
    name = draw.choice(
        [one for one in ("instance", "value", "probability") if one in table.schema.names]
    )
    place = table.column_names.index(name)
    _write(table.set_column(place, name, table[name].cast(pa.string())), path)


def change_metadata(draw: random.Random, path: Path) -> None:
    """The summary of a job says something else, or is gone."""
    table = _read(path)
    known = dict(table.schema.metadata or {})
    summary = json.loads(known.get(b"heedful", b"{}"))
    if not summary or draw.random() < 0.3:
        return remove(draw, path)
    name = draw.choice(tuple(summary))
    summary[name] = draw.choice((None, 7, "x", [], {"agreement": 3}))
    text = draw.choice((json.dumps(summary), "{", "[]", "[" * 100_000))
    return _write(table.replace_schema_metadata({b"heedful": text.encode()}), path)


def swap(draw: random.Random, path: Path) -> None:
    """Two files of a kind change their names."""
    others = [one for one in sorted(path.parent.iterdir()) if one != path]
    other = draw.choice(others)
    both = path.read_bytes(), other.read_bytes()
    other.write_bytes(both[0])
    path.write_bytes(both[1])


def _read(path: Path) -> Any:
    return pq.ParquetFile(path).read(use_threads=False)


def _write(table: Any, path: Path) -> None:
    pq.write_table(table, path)


TABLES: tuple[Spoil, ...] = (
    *(remove, truncate, flip, grow, no_file, shorten, double_rows, double_file, alter, alter),
    *(alter, nulls, drop_column, change_type, change_metadata, swap),
)


def change_json(draw: random.Random, path: Path) -> None:
    """Some part of it holds anything else, or is gone."""
    path.write_text(json.dumps(_changed(draw, json.loads(path.read_text()))))


def change_json_line(draw: random.Random, path: Path) -> None:
    """The same in one line of many."""
    lines = path.read_text().splitlines()
    at = draw.randrange(len(lines))
    lines[at] = json.dumps(_changed(draw, json.loads(lines[at])))
    path.write_text("".join(f"{one}\n" for one in lines))


def _changed(draw: random.Random, value: Any) -> Any:
    ways = [way for way in _ways(value) if way]
    way = draw.choice(ways[: 40 if draw.random() < 0.7 else None])
    inner = value
    for key in way[:-1]:
        inner = inner[key]
    if isinstance(inner, dict) and draw.random() < 0.3:
        del inner[way[-1]]
    else:
        odd = (None, -1, 0, 1e308, float("nan"), "x", [], {}, True, 10**30, [[]], {"a": None})
        inner[way[-1]] = hostile_value(draw) if draw.random() < 0.3 else draw.choice(odd)
    return value


def _ways(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else ()
    inner = enumerate(value) if isinstance(value, list) else inner
    return [above, *(way for key, one in inner for way in _ways(one, (*above, key)))]


def change_line(draw: random.Random, path: Path) -> None:
    lines = path.read_text().splitlines()
    at = draw.randrange(len(lines))
    names = lines[at].partition("=")[0]
    odd = ("", f"{names}= []", f"{names}= 'x'", f"{names}= -1", "[settings", lines[at] * 2, "\0")
    lines[at] = draw.choice((*odd, f"{names}= {'[' * 100_000}", f"{names}= 1979-05-27"))
    path.write_text("\n".join(lines))


def other_bytes(draw: random.Random, path: Path) -> None:
    odd = (b"", b"\xff\xfe", b"\0" * 100, b"[]", b"null", b"{", b"[" * 100_000, b"\xef\xbb\xbf{}")
    path.write_bytes(draw.choice((*odd, path.read_text().encode("utf-16"), b" " * 10_000_000)))


CHANGES: dict[str, Spoil] = {
    ".toml": change_line,
    ".json": change_json,
    ".jsonl": change_json_line,
}
TEXT_FILES: tuple[Spoil, ...] = (remove, truncate, flip, flip, no_file, other_bytes, grow)


def spoil_one(draw: random.Random, run: Path) -> tuple[str, Path]:
    """Damage one kept file; gives what was done and to which."""
    name = draw.choice(kept_files(run)) if draw.random() < 0.7 else draw.choice(_documents(run))
    path = run / name
    if path.suffix == ".parquet":
        kinds = TABLES
    else:
        own = CHANGES[path.suffix]
        kinds = (*TEXT_FILES, *(own,) * 5)
    spoil = draw.choice(kinds)
    if spoil is swap and len(list(path.parent.iterdir())) < 2:
        spoil = remove
    before = path.read_bytes(), sorted(path.parent.iterdir())
    spoil(draw, path)
    plain = path.is_file() and not path.is_symlink() and path.stat().st_size < 10**9
    if plain and (path.read_bytes(), sorted(path.parent.iterdir())) == before:
        spoil = remove  # what changed nothing is no damage
        path.unlink()
    return spoil.__name__, name


def _documents(run: Path) -> list[Path]:
    return [one for one in kept_files(run) if one.suffix != ".parquet"]


def draw_run(
    runs: tuple[Finished, ...], *, verify: bool
) -> Callable[[random.Random, Place], Attempt]:
    """Any damage to a run, and what then is asked of it."""
    commands = ("audit", "audit", "audit", "report", "compare", *["verify"] * 2 * verify)

    def draw_one(draw: random.Random, place: Place) -> Attempt:
        base, run = draw.choice(runs), place.folder / "run"
        shutil.copytree(base.folder, run)
        command = draw.choice(commands)
        interrupted = command == "audit" and draw.random() < 0.4
        if interrupted:
            (run / "verdict.json").unlink()
            (run / "manifest.json").unlink()
        how, name = spoil_one(draw, run)
        state = "interrupted " * interrupted
        what = f"{how} of {name} in an {state}run of {base.folder.name}, then {command}"
        whole = content(base.folder)
        if command == "audit":
            words = (*base.words, "--out", str(run))
            return Attempt(what, lambda: run_command(*words), lambda _: differs(run, whole))
        if command == "verify":
            verdict = verifies(run, whole, name)
            return Attempt(what, lambda: run_command("verify", run), verdict, codes=(0, 1))
        if command == "report":
            more = draw.choice(((), ("--details",), ("--markdown", "x.md"), ("--reviewer", "r.md")))
            return Attempt(what, lambda: run_command("report", run, *more))
        both = draw.sample((run, base.folder), 2)
        return Attempt(what, lambda: run_command("compare", *both, "--csv", "x.csv"))

    return draw_one


def differs(run: Path, whole: dict[str, Any]) -> str:
    """What a run that was taken up again lacks, has too much, or has otherwise."""
    found = content(run)
    if missing := sorted(whole.keys() - found.keys()):
        return f"{len(missing)} files are missing, such as {missing[0]}"
    if more := sorted(found.keys() - whole.keys()):
        return f"{len(more)} files too many, such as {more[0]}"
    if other := [name for name in whole if found[name] != whole[name]]:
        return f"{len(other)} files hold something else, such as {other[0]}"
    return ""


def verifies(run: Path, whole: dict[str, Any], name: Path) -> Callable[[Answer], str]:
    """What is wrong with what `verify` says of one damaged file."""

    def wrong(answer: Answer) -> str:
        if answer.code == 1:
            named = name.name in answer.out + answer.err or name.parent.name in answer.out
            return "" if named else f"{name} is not named: {answer.out[:200]!r}"
        try:
            same = name.suffix == ".parquet" and not differs(run, whole)
        except (OSError, ValueError, pa.ArrowException):
            same = False
        return "" if same else "the damage was passed over"

    return wrong
