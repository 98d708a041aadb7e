"""A study of two tiny sets from data on disk to its page, cut off and taken up again."""

import csv
import json
import re
import subprocess
import sys
from dataclasses import asdict, replace

import pytest
from benchmarks import gallery

import heedful
from heedful.cli.reproduce import _claim_lines as told_claims
from heedful.cli.reproduce import reproduce as command
from heedful.core.errors import ConfigError, DataError
from heedful.core.records import Estimate
from heedful.studies import grid, published_numbers, reproduce, run_cell, study
from heedful.studies.claims import ClaimFinding
from heedful.studies.find_data import find_data
from heedful.studies.grid import StudyCell, StudyRequest, build_cells
from heedful.studies.study import Study, StudyClaim
from support import pretrained_encoder, processes

TOML = """
title = "A tiny study"
reference = "Nobody, 2019"
question = "Does it run?"
encoders = ["average", "mlp"]
attentions = ["additive"]
checks = ["agreement", "permutation"]
main = ["average", "additive"]
seeds = 1

[recipe]
embedding = 6
hidden = 4
epochs = 2

[quick]
train = 60
test = 8
epochs = 1

[[sets]]
name = "needles"
title = "Needles"
folders = ["elsewhere", "needle"]
classes = { 0 = ["0", "bad"], 1 = ["1", "so good"] }

[[sets]]
name = "notes"
title = "Notes"
folders = ["notes"]
absent = "They are private."

[[sets]]
name = "half"
title = "Half"
folders = ["half"]

[[claims]]
name = "references-agree-better"
says = "References agree better"
kind = "measures"
measure = "agreement.tau_gradient_leave_one_out"
than = "agreement.tau_leave_one_out"

[[claims]]
name = "average-above-bilstm"
says = "Words alone agree better"
kind = "models"
measure = "agreement.tau_leave_one_out"
than_model = ["mlp", "additive"]
"""
NUMBERS = """set,encoder,attention,class,measure,statistic,value,source
needles,average,additive,all,agreement.tau_leave_one_out,mean,0.5,repo
needles,average,additive,all,agreement.tau_leave_one_out,sd,0.1,repo
needles,average,additive,0,agreement.tau_leave_one_out,mean,0.4,repo
needles,average,additive,1,agreement.tau_leave_one_out,mean,0.3,repo
needles,average,additive,all,performance.accuracy,value,0.9,recalled
needles,average,additive,all,permutation.median_tvd,median 0.00-0.25,0.1,svg
"""


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    for module, name, text in (
        (study, "STUDIES_FOLDER", ("tiny.toml", TOML)),
        (published_numbers, "PUBLISHED_FOLDER", ("tiny.csv", NUMBERS)),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / text[0]).write_text(text[1])
        monkeypatch.setattr(module, name, tmp_path / name)
    root = tmp_path / "data"
    for folder, splits in (("needle", ("train", "dev", "test")), ("half", ("train",))):
        (root / folder).mkdir(parents=True)
        for split in splits:
            rows = pretrained_encoder.rows(80, seed=len(split))
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (root / folder / f"{split}.jsonl").write_text(text)
    return root


def in_process(cells, out, *, workers, progress):
    """The same cells, without the seconds that each process takes to begin."""
    for one in cells:
        if not one.done(out):
            run_cell.run_cell(one, out)
    return {}


def test_a_study_ends_with_a_page_a_table_and_figures(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce, "run_cells", in_process)
    heard, out = [], tmp_path / "out"
    found = heedful.reproduce("tiny", data_root=tiny, out=out, quick=True, announce=heard.append)
    assert set(found.absent) == {"notes", "half"}
    assert found.absent["notes"] == "not found under notes. They are private."
    assert "has no test split" in found.absent["half"]
    assert any("2 cells, 0 done" in line for line in heard)
    page = found.page.read_text()
    for words in ("A tiny study", "References agree better", "They are private", "A quick run"):
        assert words in page
    rows = list(csv.DictReader((out / "study.csv").read_text().splitlines()))
    mean = next(row for row in rows if row["statistic"] == "mean" and row["class"] == "all")
    run = heedful.Run(next((out / "cells").glob("needles-average*")) / "run")
    tau = run.verdict.checks["agreement"].estimates["tau_leave_one_out"]
    assert float(mean["ours"]) == pytest.approx(tau.value, abs=1e-5)
    assert float(mean["difference"]) == pytest.approx(tau.value - 0.5, abs=1e-5)
    frame = run.to_dataframe()
    taus = frame[frame.measure == "tau_leave_one_out"]
    for number, name in (("0", "bad"), ("1", "so good")):  # the paper's number, the data's name
        (row,) = (row for row in rows if row["class"] == number)
        mine = taus[taus.predicted == name].value
        assert row["ours"] == (f"{mine.mean():.6g}" if len(mine) else "")
    assert {one.answer for one in found.claims} <= {"held", "did not hold", "undecided"}
    drawn = {one.stem for one in (out / "figures").glob("*.svg")}
    assert {"references-agree-better", "average-above-bilstm", "median_tvd-needles"} <= drawn
    assert "agreement-tau_leave_one_out" in drawn  # of which there are published means
    told = gallery.study_in(out, tmp_path / "docs")
    for picture in re.findall(r"!\[[^]]*\]\(([^)]*)\)", told):
        assert (tmp_path / "docs" / picture).stat().st_size > 500
    assert "A tiny study, run again" in told
    copied = (tmp_path / "docs" / "studies" / "out.md").read_text()
    assert "](out/references-agree-better.svg)" in copied
    # again: nothing is made anew
    before = {one: one.stat().st_mtime_ns for one in (out / "cells").glob("*/cell.json")}
    heedful.reproduce("tiny", data_root=tiny, out=out, quick=True, announce=heard.append)
    assert any("2 cells, 2 done" in line for line in heard)
    assert {one: one.stat().st_mtime_ns for one in before} == before


def test_a_cell_cut_off_goes_on_without_training_again(tiny, tmp_path, monkeypatch):
    (cell,) = _cells(tiny, encoders=["mlp"])
    out = tmp_path / "out"

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as cut:
        cut.setattr(run_cell, "audit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_cell.run_cell(cell, out)
    assert not cell.done(out)
    with monkeypatch.context() as cut:
        cut.setattr(run_cell, "fit", interrupted)
        told = run_cell.run_cell(cell, out)
    assert cell.done(out)
    assert told["texts"]["test"] == 8
    assert 0 <= told["performance"]["accuracy"] <= 1


def test_processes_make_cells_and_failures_are_told(tiny, tmp_path):
    (cell,) = _cells(tiny, encoders=["mlp"])
    bad = StudyCell(**{**asdict(cell), "data": str(tmp_path / "nowhere"), "texts": "bad"})
    told = []
    failed = grid.run_cells(
        [cell, bad], tmp_path / "out", workers=2, progress=lambda *one: told.append(one)
    )
    assert cell.done(tmp_path / "out")
    assert list(failed) == [bad.name]
    assert "nowhere" in failed[bad.name]
    assert told[-1][:2] == (2, 2)


def test_a_worker_ends_with_its_study(tiny, tmp_path):
    (cell,) = _cells(tiny, encoders=["mlp"])
    long = StudyCell(**{**asdict(cell), "recipe": {**cell.recipe, "epochs": 100_000}})
    code = (
        "import sys; from pathlib import Path\n"
        "from heedful.studies.grid import StudyCell, run_cells\n"
        "from heedful.core import process_pool\n"
        "start = process_pool.Worker.__post_init__\n"
        "def shown(worker): start(worker); print(worker.process.pid, flush=True)\n"
        "process_pool.Worker.__post_init__ = shown\n"
        "cell, out = StudyCell.from_json(sys.argv[1]), Path(sys.argv[2])\n"
        "run_cells([cell], out, workers=1, progress=lambda *_: None)"
    )
    asked = [sys.executable, "-c", code, json.dumps(asdict(long)), str(tmp_path / "out")]
    with subprocess.Popen(asked, stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        parent.kill()
    assert processes.gone(child), "the worker lives on"
    assert not long.done(tmp_path / "out")


def test_another_choice_is_another_cell(tiny):
    (cell,) = _cells(tiny, encoders=["mlp"])
    same, other = (
        StudyCell(**{**asdict(cell), "seed": seed}) for seed in (cell.seed, cell.seed + 1)
    )
    assert cell.place(tiny) == same.place(tiny) != other.place(tiny)
    assert StudyCell.from_json(json.dumps(asdict(cell))) == cell


def test_the_main_model_may_have_more_seeds(tiny):
    read = Study.read("tiny")
    picked, models = read.select(sets=["needles"])
    asked = StudyRequest(models, 1, quick=True, main_seeds=3)
    cells = build_cells(read, picked, find_data(picked, tiny).data, asked)
    made = [(one.encoder, one.seed) for one in cells]
    assert made == [("average", 0), ("mlp", 0), ("average", 1), ("average", 2)]


def test_cells_that_are_not_made_are_named(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce, "run_cells", lambda cells, *_, **__: {cells[0].name: "it broke"})
    found = heedful.reproduce("tiny", data_root=tiny, out=tmp_path / "out", quick=True)
    page = found.page.read_text()
    assert "1 cell failed" in page
    assert "Not run yet: 1 cell: needles mlp additive seed 0." in page


def test_the_page_alone_is_written_again_from_what_is_there(tiny, tmp_path, monkeypatch):
    made = []

    def some(cells, out, **_):
        made.append(len(cells))
        return in_process(cells[:1], out, workers=1, progress=None)

    monkeypatch.setattr(reproduce, "run_cells", some)
    out = tmp_path / "out"
    heedful.reproduce("tiny", data_root=tiny, out=out, quick=True)
    (out / "study.html").unlink()
    (out / "figures" / "stale.svg").write_text("<svg><!-- drawn by heedful --></svg>")
    (out / "figures" / "own.svg").write_text("<svg/>")
    found = heedful.reproduce("tiny", data_root=tiny, out=out, quick=True, page_only=True)
    assert made == [2, 0]
    assert "Not run yet: 1 cell: needles mlp additive seed 0." in found.page.read_text()
    assert not (out / "figures" / "stale.svg").exists()
    assert (out / "figures" / "own.svg").exists()  # which somebody else put there


def test_the_command_has_a_folder_of_its_own(tiny, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reproduce, "run_cells", in_process)
    monkeypatch.chdir(tmp_path)
    command("tiny", tiny, quick=True, encoders="mlp", sets="needles")
    assert (tmp_path / "runs" / "tiny-quick" / "study.html").exists()
    assert "| Half | not selected |" in (tmp_path / "runs/tiny-quick/study.md").read_text()
    assert "Page: runs/tiny-quick/study.html" in capsys.readouterr().out


def test_limits_of_a_set_its_sample_and_what_was_asked(tiny):
    whole, few = {"train": {}, "test": {}}, {"train": 60, "dev": 300, "test": 8}
    for given, quick, want in (
        (whole, False, {"test": 50}),
        (whole, True, few),
        ({"train": {"needles": 40}, "test": {"needles": 70}}, False, {"train": 40, "test": 50}),
        (
            {"train": {"needles": 90}, "test": {"other": 1}},
            True,
            {"train": 60, "dev": 300, "test": 8},
        ),
    ):
        read = Study.read("tiny")
        picked, models = read.select(sets=["needles"], encoders=["mlp"])
        sampled = [replace(one, limits={"test": 50}) for one in picked]
        asked = StudyRequest(models, 1, quick=quick, limits=given)
        (cell,) = build_cells(read, sampled, find_data(picked, tiny).data, asked)
        assert cell.limits == want


def test_data_that_is_not_there_is_an_error_with_what_to_do(tiny, tmp_path):
    with pytest.raises(ConfigError, match="--data-root"):
        heedful.reproduce("tiny", data_root=tmp_path / "none", out=tmp_path / "out")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="None of the study's data"):
        heedful.reproduce("tiny", data_root=tmp_path / "empty", out=tmp_path / "out")


def test_the_command_says_what_is_wrong():
    command = [sys.executable, "-m", "heedful", "reproduce", "jain-walace-2019"]
    asked = [*command, "--data-root", ".", "--out", "unwritten"]
    done = subprocess.run(asked, capture_output=True, text=True)
    assert done.returncode == 2
    assert "Did you mean 'jain-wallace-2019'" in done.stderr


def _cells(root, **asked):
    read = Study.read("tiny")
    picked, models = read.select(sets=["needles"], **asked)
    found = find_data(picked, root)
    return build_cells(read, picked, found.data, StudyRequest(models, 1, quick=True))


def test_the_terminal_tells_each_claim_once_with_its_sets_below():
    claim = StudyClaim("one", "Up is above down", "measures", "agreement.tau_gradient")
    other = StudyClaim("two", "There is another", "share", "adversarial.epsilon_max_jsd")
    lines = list(
        told_claims(
            [
                ClaimFinding(claim, "sst", "held", Estimate(0.3, 0.2, 0.4, 3), 0.25),
                ClaimFinding(claim, "babi1", "not examined", why="bilstm dot was not run"),
                ClaimFinding(
                    other, "sst", "held", Estimate(0.9, 0.8, 1.0, 3), other_model="minilm"
                ),
            ]
        )
    )
    assert lines == [
        "Up is above down:",
        "  sst          held          0.300 [0.200, 0.400], published 0.250",
        "  babi1        not examined  bilstm dot was not run",
        "There is another:",
        "  sst, minilm  held          0.900 [0.800, 1.000]",
    ]
    assert list(told_claims([])) == []
