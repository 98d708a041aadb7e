"""`heedful verify`, and a run that is taken up again after damage."""

import json
import shutil

import pytest

import heedful
from heedful.core.errors import RunError
from heedful.core.files.folder_lock import lock_folder
from support import subjects
from support.hostile_input import refused

ROWS = [
    {"text": " ".join(subjects.WORDS[n : n + 3 + n % 4]), "label": f"class{n % 2}"}
    for n in range(9)
]
SETTINGS = {"checks": ("permutation",), "instances_per_job": 3, "resamples": 100}


def audited(folder, **more):
    return heedful.audit(subjects.subject(), ROWS, out=folder, **SETTINGS, **more)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return audited(tmp_path_factory.mktemp("sound") / "run").folder


@pytest.fixture
def folder(sound, tmp_path):
    shutil.copytree(sound, tmp_path / "run")
    return tmp_path / "run"


def verdict(folder):
    return (folder / "verdict.json").read_text()


def test_a_sound_run(run, folder):
    found = heedful.Run(folder)
    assert found.verify() == []
    number = found.manifest["files"]["number"] + 1
    assert run("verify", folder) == (0, f"{folder}: {number} files are whole and unchanged.\n", "")
    assert run("verify", folder, "--quiet") == (0, "", "")


def test_the_manifest_and_the_page_name_the_digests(run, folder):
    files = json.loads((folder / "manifest.json").read_text())["files"]
    assert files["recorded in"] == "files.jsonl"
    assert run("report", folder, "--quiet")[0] == 0
    page = (folder / "report.html").read_text()
    assert files["sha256"] in page
    assert "heedful verify" in page
    assert heedful.Run(folder).verify() == []  # the page is none of them


def test_what_is_wrong_is_listed_with_exit_1(run, folder):
    texts = sorted((folder / "texts").iterdir())
    texts[0].unlink()
    texts[1].write_bytes(b"other")
    code, out, err = run("verify", folder)
    assert (code, err) == (1, "")
    assert out == f"texts/{texts[0].name}: missing\ntexts/{texts[1].name}: changed\n"
    assert heedful.Run(folder).verify() == out.splitlines()


def test_without_digests_it_is_one_line(run, folder, tmp_path):
    (folder / "files.jsonl").unlink()
    assert "no digests of its files" in refused(run("verify", folder))
    assert "There is no run folder" in refused(run("verify", tmp_path / "none"))


def test_damage_is_told_and_made_good(sound, folder):
    for path in sorted((folder / "texts").iterdir())[:2]:
        path.write_bytes(b"other")
    (folder / "verdict.json").unlink()
    told = []
    audited(folder, warn=told.append)
    assert len(told) == 1
    assert told[0].startswith("Missing or changed since they were written, and made again: ")
    assert told[0].count("texts/") == 2
    assert "verdict.json" in told[0]
    assert verdict(folder) == verdict(sound)
    assert heedful.Run(folder).verify() == []
    audited(folder, warn=told.append)
    assert len(told) == 1  # all is well again


def test_python_warns(folder):
    sorted((folder / "texts").iterdir())[0].unlink()
    with pytest.warns(UserWarning, match="made again: texts/"):
        audited(folder)


@pytest.mark.parametrize("text", [None, "", '{"schema": 1'])
def test_measurements_without_digests_are_not_continued(folder, text):
    path = folder / "files.jsonl"
    path.unlink()
    if text is not None:
        path.write_text(text)
    before = verdict(folder)
    with pytest.raises(RunError, match=r"measurements but no digests of them .*remove the folder"):
        audited(folder)
    assert verdict(folder) == before


def test_a_file_that_was_written_and_not_recorded_is_measured_again(sound, folder):
    """A kill between the two leaves this."""
    lines = (folder / "files.jsonl").read_text().splitlines(keepends=True)
    last = sorted((folder / "measurements").glob("0*"))[-1].name
    (folder / "files.jsonl").write_text("".join(one for one in lines if last not in one))
    (folder / "verdict.json").unlink()
    (folder / "manifest.json").unlink()
    audited(folder, warn=lambda _: None)
    assert verdict(folder) == verdict(sound)
    assert heedful.Run(folder).verify() == []


def test_a_file_that_joined_a_finished_job_is_refused(folder):
    name = sorted((folder / "texts").iterdir())[0].name
    (folder / "maps").mkdir()
    shutil.copy(folder / "texts" / name, folder / "maps" / name)
    with pytest.raises(RunError, match=f"maps/{name} is no file of this run. Remove it"):
        audited(folder)


def test_a_run_records_each_file_once(folder):
    lines = (folder / "files.jsonl").read_text().splitlines()
    names = [json.loads(one).get("file") for one in lines]
    assert len(names) == len(set(names)) == 2 + heedful.Run(folder).manifest["files"]["number"]


def test_finetune_and_diffmask_take_the_lock(tmp_path):
    data = heedful.read(ROWS)
    with lock_folder(tmp_path / "model"):
        for train in (
            lambda: heedful.finetune(data, None, heedful.FineTuning("x"), out=tmp_path / "model"),
            lambda: heedful.fit_diffmask(subjects.subject(), data, out=tmp_path / "model"),
            lambda: heedful.fit(data, None, heedful.Recipe(), kept=tmp_path / "model"),
        ):
            with pytest.raises(RunError, match="is in use"):
                train()
