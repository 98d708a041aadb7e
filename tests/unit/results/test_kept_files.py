"""Files of a run are known by what they hold."""

import json
import os

import pytest

from heedful.core.errors import RunError
from heedful.results.kept_files import KeptFiles, digest_file, verify_run

NAMES = ("plan.toml", "manifest.json", "verdict.json")


@pytest.fixture
def folder(tmp_path):
    """A run folder whose files are recorded."""
    for kind in ("measurements", "texts"):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "1.parquet").write_bytes(kind.encode())
    kept = KeptFiles.read(tmp_path)
    for name in ("plan.toml", "verdict.json"):
        (tmp_path / name).write_text(name)
    kept.record("plan.toml", "measurements/1.parquet", "texts/1.parquet", "verdict.json")
    (tmp_path / "manifest.json").write_text(json.dumps({"files": kept.seal()}))
    kept.record("manifest.json")
    return tmp_path


def lines(folder):
    return (folder / "files.jsonl").read_text().splitlines(keepends=True)


def test_what_was_recorded_is_read_again_and_whole(folder):
    kept = KeptFiles.read(folder)
    assert sorted(kept.digests) == sorted([*NAMES, "measurements/1.parquet", "texts/1.parquet"])
    assert kept.digests["plan.toml"] == digest_file(folder / "plan.toml")
    assert kept.damaged() == {}
    assert verify_run(folder) == []


def test_a_file_costs_one_line_however_many_came_before(folder):
    kept, before = KeptFiles.read(folder), lines(folder)
    (folder / "texts/2.parquet").write_bytes(b"more")
    kept.record("texts/2.parquet")
    assert lines(folder)[:-1] == before
    kept.record("texts/2.parquet")  # which is known
    assert len(lines(folder)) == len(before) + 1


def test_the_later_of_two_lines_counts_and_is_kept_alone(folder):
    kept = KeptFiles.read(folder)
    (folder / "verdict.json").write_text("another")
    kept.record("verdict.json")
    again = KeptFiles.read(folder)
    assert again.digests["verdict.json"] == digest_file(folder / "verdict.json")
    assert not again.tidy
    again.keep_only(again.digests.keys())
    assert len(lines(folder)) == 1 + 5
    assert KeptFiles.read(folder).tidy


def test_a_line_cut_by_a_kill_is_as_if_never_written(folder):
    whole = "".join(lines(folder))
    cut = lines(folder)[-1]
    for length in range(1, len(cut)):
        (folder / "files.jsonl").write_text(whole[: len(whole) - length])
        kept = KeptFiles.read(folder)
        assert "manifest.json" not in kept.digests
        kept.record("manifest.json")
        assert "".join(lines(folder)) == whole


def test_a_file_without_any_line_is_no_record(folder):
    for text in ("", '{"schema": 1'):
        (folder / "files.jsonl").write_text(text)
        assert KeptFiles.read(folder).digests == {}


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "7",
        "[" * 100_000,
        '{"file": "texts/1.parquet"}',
        '{"file": "texts/1.parquet", "bytes": "x", "sha256": ""}',
        '{"file": "../../etc/passwd", "bytes": 1, "sha256": ""}',
        '{"file": "/etc/passwd", "bytes": 1, "sha256": ""}',
        '{"file": "texts/../1.parquet", "bytes": 1, "sha256": ""}',
    ],
)
def test_a_damaged_record_is_one_line(folder, line):
    with (folder / "files.jsonl").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(RunError, match=r"files\.jsonl is damaged: line 7: .*remove the folder\.$"):
        KeptFiles.read(folder)


def test_another_head_is_refused(folder):
    text = "".join(lines(folder)).replace('"schema": 1', '"schema": 2')
    (folder / "files.jsonl").write_text(text)
    with pytest.raises(RunError, match="line 1: it must be"):
        KeptFiles.read(folder)


def spoil_size(path):
    path.write_bytes(path.read_bytes() + b" ")


def spoil_byte(path):
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)


def spoil_pipe(path):
    path.unlink()
    os.mkfifo(path)


def spoil_folder(path):
    path.unlink()
    path.mkdir()


def spoil_sparse(path):
    os.truncate(path, 2**40)


SPOILS = {
    spoil_size: "changed",
    spoil_byte: "changed",
    spoil_sparse: "changed",
    spoil_pipe: "not a regular file",
    spoil_folder: "not a regular file",
    os.unlink: "missing",
}


@pytest.mark.parametrize("spoil", SPOILS)
@pytest.mark.parametrize("name", [*NAMES, "measurements/1.parquet", "texts/1.parquet"])
def test_what_is_wrong_is_named(folder, spoil, name):
    spoil(folder / name)
    assert verify_run(folder) == [f"{name}: {SPOILS[spoil]}"]


def test_files_that_nobody_recorded_are_named(folder):
    (folder / "texts/2.parquet").write_bytes(b"more")
    (folder / "notes").mkdir()
    (folder / "notes/own.parquet").write_bytes(b"no file of the run")
    assert verify_run(folder) == ["texts/2.parquet: not recorded"]


def test_a_record_changed_with_its_file_does_not_fit_the_manifest(folder):
    (folder / "texts/1.parquet").write_bytes(b"other")
    KeptFiles.read(folder).record("texts/1.parquet")
    assert verify_run(folder) == [
        "files.jsonl: not the digests that manifest.json was written with"
    ]


def test_an_interrupted_run_is_told_as_such(folder):
    kept = KeptFiles.read(folder)
    (folder / "manifest.json").unlink()
    kept.keep_only(kept.digests.keys() - {"manifest.json"})
    (line,) = verify_run(folder)
    assert line.startswith("manifest.json: not written yet")


def test_what_has_no_digests_cannot_be_verified(folder, tmp_path_factory):
    (folder / "files.jsonl").unlink()
    with pytest.raises(RunError, match="no digests of its files"):
        verify_run(folder)
    with pytest.raises(RunError, match="is no run folder"):
        verify_run(tmp_path_factory.mktemp("empty"))
    with pytest.raises(RunError, match="There is no run folder"):
        verify_run(folder / "none")
