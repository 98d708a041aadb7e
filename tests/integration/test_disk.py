"""Disks that are full or may not be written: one clear line, nothing broken, and a run resumes."""

import os
import subprocess
from errno import ENOSPC

import pyarrow.parquet as pq
import pytest

import heedful
from heedful.core.errors import RunError
from heedful.models.recurrent.model_folder import save_model
from support import subjects

ROWS = [
    {"text": " ".join(subjects.WORDS[number % 7 : 8 + number % 9]), "label": number % 2}
    for number in range(60)
]
SETTINGS = {"checks": ("permutation",), "resamples": 100, "instances_per_job": 4}
FOLDERS = (".", "measurements", "texts")


def audit(out):
    return heedful.audit(subjects.subject(), ROWS, out=out, **SETTINGS)


def refusal(out):
    with pytest.raises(RunError) as caught:
        audit(out)
    assert not list(out.rglob(".*.draft"))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return audit(tmp_path_factory.mktemp("disk") / "whole")


@pytest.fixture
def assert_same(whole):
    def check(run):
        for name in ("verdict.json", "plan.toml"):
            assert (run.folder / name).read_bytes() == (whole.folder / name).read_bytes()
        assert run.to_dataframe().equals(whole.to_dataframe())

    return check


def files(folder):
    return {one: one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def full(*_, **__):
    raise OSError(ENOSPC, "No space left on device")


def test_a_disk_that_fills_at_any_file_of_a_run(tmp_path, monkeypatch, assert_same):
    writes, replace = [], os.replace
    monkeypatch.setattr(os, "replace", lambda *names: (writes.append(names), replace(*names)))
    audit(tmp_path / "count")
    for broken in {0, 1, 2, len(writes) - 3, len(writes) - 2, len(writes) - 1}:
        done = []

        def some(*names, broken=broken, done=done):
            done.append(names)
            return full() if len(done) > broken else replace(*names)

        out = tmp_path / str(broken)
        monkeypatch.setattr(os, "replace", some)
        target = out / writes[broken][1].relative_to(tmp_path / "count")
        assert refusal(out) == f"Cannot write {target}: No space left on device."
        assert not (out / "verdict.json").exists()
        monkeypatch.setattr(os, "replace", replace)
        assert_same(audit(out))


def test_drafts_of_a_killed_process_go_and_other_files_stay(tmp_path):
    out = tmp_path / "run"
    audit(out)
    for folder in FOLDERS:
        (out / folder / ".abcd_123.draft").write_text("half a fi")
    others = [out / ".notes.draft", out / "my.draft", out / "texts/.abcd_1234.draft"]
    others += [out / "figures/.abcd_123.draft"]
    (out / "figures").mkdir()
    for one in others:
        one.write_text("mine")
    audit(out)
    assert sorted(out.rglob("*.draft")) == sorted(others)


def test_a_folder_that_is_not_ours_keeps_its_drafts(tmp_path):
    (tmp_path / "measurements").mkdir()
    (tmp_path / "measurements/.abcd_123.draft").write_text("of another program")
    with pytest.raises(RunError, match=r"holds measurements but no plan\.toml"):
        audit(tmp_path)
    assert (tmp_path / "measurements/.abcd_123.draft").exists()


@pytest.fixture
def disk(tmp_path):
    """A disk of its own, 200 kB large."""
    folder = tmp_path / "disk"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=200k", "heedful-test", str(folder)]
    try:
        subprocess.run(words, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no small disk can be mounted here: {error}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk):
    with pytest.raises(OSError, match="No space"):
        (disk / "ballast").write_bytes(bytes(300_000))


def remount(disk, options):
    subprocess.run(["mount", "-o", f"remount,{options}", str(disk)], check=True)


def test_a_full_disk(disk, assert_same):
    out, ballast = disk / "run", disk / "ballast"
    ballast.write_bytes(bytes(140_000))
    said = refusal(out)
    assert said.startswith(f"Cannot write {out}")
    assert "No space left on device" in said
    assert said.count("No space left on device") == 1
    kept = list((out / "measurements").iterdir())
    assert kept  # what was done before is kept
    assert all(pq.read_table(one).num_rows for one in kept)
    remount(disk, "size=2m")
    assert_same(audit(out))


def test_a_disk_so_full_that_no_lock_can_be_signed(disk, assert_same):
    fill(disk)
    assert refusal(disk / "run") == f"Cannot write to {disk / 'run'}: No space left on device."
    remount(disk, "size=2m")
    assert_same(audit(disk / "run"))


def test_a_read_only_disk(disk, assert_same):
    remount(disk, "size=2m")
    audit(disk / "run")
    (disk / "run/verdict.json").unlink()
    before = files(disk)
    remount(disk, "ro")
    assert refusal(disk / "run") == f"Cannot write to {disk / 'run'}: Read-only file system."
    assert refusal(disk / "new") == f"Cannot write to {disk / 'new'}: Read-only file system."
    assert files(disk) == before
    remount(disk, "rw")
    with pytest.warns(UserWarning, match=r"made again: verdict\.json"):
        assert_same(audit(disk / "run"))


def test_a_model_on_a_full_disk(disk):
    fill(disk)
    with pytest.raises(RunError, match=r"^Cannot write .*model\.safetensors: .*No space left"):
        save_model(subjects.subject(), disk / "model")
    assert not list((disk / "model").iterdir())
