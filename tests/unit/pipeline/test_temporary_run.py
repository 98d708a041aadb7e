"""An audit without a folder: its files stay as long as the run is held, and no longer."""

import gc
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import heedful
from heedful.api.run import _remove
from heedful.core.errors import DataError
from support import subjects

ROWS = [
    {"text": " ".join(subjects.WORDS[n : n + 2 + n % 5]), "label": f"class{n % 2}"}
    for n in range(10)
]
FEW = {"checks": ["permutation"], "settings": {"permutation": {"draws": 3}}, "resamples": 100}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Where temporary folders are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    return tmp_path / "temporary"


def audited(**settings):
    return heedful.audit(subjects.subject(), ROWS, **{**FEW, **settings})


def test_the_folder_is_there_as_long_as_the_run_and_no_longer(place, tmp_path):
    run, other = audited(), audited(seed=1)
    assert {run.folder, other.folder} == set(place.iterdir())
    assert run.report(tmp_path / "page.html").exists()
    assert run.report().exists()
    assert len(run.to_dataframe())
    assert heedful.compare(run, other).record.pairs
    kept = run.save(tmp_path / "kept")
    told, folder = run.verdict, run.folder
    del run
    gc.collect()
    assert set(place.iterdir()) == {other.folder}
    assert not folder.exists()
    assert kept.verdict == told
    assert (tmp_path / "page.html").exists()
    del kept
    gc.collect()
    assert (tmp_path / "kept").exists()  # only temporary folders are removed


def test_what_is_still_to_be_read_keeps_the_folder(place):
    records = audited().records
    gc.collect()
    assert len(records.instances) == len(ROWS)
    del records
    gc.collect()
    assert not list(place.iterdir())


def test_a_run_that_is_used_at_once_works():
    assert audited().verdict.checks["permutation"].estimates
    assert "permutation" in audited().markdown()


def test_an_audit_that_fails_leaves_no_folder(place):
    with pytest.raises(DataError):
        audited(min_words=99)
    assert not list(place.iterdir())


def test_a_folder_of_ones_own_stays(tmp_path):
    run = audited(out=tmp_path / "run")
    folder = run.folder
    del run
    gc.collect()
    assert (folder / "verdict.json").exists()


def test_a_run_goes_to_another_process_and_its_folder_stays(place):
    run = audited()
    other = pickle.loads(pickle.dumps(run))
    assert other.verdict == run.verdict
    del other
    gc.collect()
    assert run.folder.exists()
    _remove(run.folder, os.getpid() + 1)  # as a process forked from this one would, at its end
    assert run.folder.exists()


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
import heedful
from support import subjects
run = heedful.audit(subjects.subject(), {rows!r}, checks=["permutation"], resamples=100)
print(run.folder, run.folder.exists())
"""


def test_at_exit_nothing_is_left(place):
    script = SCRIPT.format(tests=str(Path(subjects.__file__).parents[1]), rows=ROWS)
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TMPDIR": str(place)},
    )
    folder, there = done.stdout.split()
    assert there == "True"
    assert Path(folder).parent == place
    assert not list(place.iterdir())
    assert done.stderr == ""
