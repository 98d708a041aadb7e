"""`heedful compare` as people run it: exit codes, files, planted truth, time, no torch."""

import json
import subprocess
import sys
import time

import numpy as np
import pytest

import heedful
from heedful.planted.hand_built import draw_texts, hand_built_subjects
from support.hostile_input import as_in_use, refused
from support.run_folders import taus, write_run

as_in_use = pytest.fixture(autouse=True)(as_in_use)
NO_TORCH = """
import sys
from heedful.cli.main import app
app(sys.argv[1:], standalone_mode=False)
assert "torch" not in sys.modules and "transformers" not in sys.modules
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The same texts read by an honest subject and by one whose attention is drawn at random."""
    out = tmp_path_factory.mktemp("runs")
    honest, inert = (
        hand_built_subjects.build("honest-graded"),
        hand_built_subjects.build("inert-random"),
    )
    rows = [{"text": one.text, "label": one.label} for one in draw_texts(honest, 120)]
    names = ("influence", "agreement", "permutation")
    few = {"influence": {"methods": ("attention",), "costly_texts": 20}}
    settings = {"checks": names, "settings": few, "resamples": 200}
    faithful = {**settings, "checks": (*names, "faithfulness")}
    return (
        heedful.audit(honest, rows, out=out / "honest", **faithful).folder,
        heedful.audit(inert, rows, out=out / "inert", **settings).folder,
    )


def test_planted_subjects_differ_as_they_were_planted(runs):
    there, back = heedful.compare(*runs), heedful.compare(*reversed(runs))
    for found, sign in ((there, -1), (back, 1)):
        rows = {one.key.measure: one for _, one in found.record.rows}
        for measure in ("tau_leave_one_out", "median_tvd", "degree"):
            assert rows[measure].certain
            assert sign * rows[measure].difference.value > 0.05
    assert there.record.sides[0].answer == "faithful"
    assert not there.require("same-answer").met


def test_attention_of_an_honest_subject_beats_random_and_itself_it_does_not(runs):
    found = heedful.compare(runs[0], methods=["random", "attention"])
    rows = {str(one.key): one for _, one in found.record.rows}
    assert rows["faithfulness.comprehensiveness"].certain
    assert rows["faithfulness.comprehensiveness"].difference.low > 0
    assert rows["faithfulness.comprehensiveness[masking]"].difference.low > 0


def test_the_command_writes_all_it_is_asked_for(run, runs, tmp_path):
    pytest.importorskip("altair")
    files = {kind: tmp_path / f"x.{kind}" for kind in ("csv", "markdown", "html")}
    asked = [word for kind, path in files.items() for word in (f"--{kind}", path)]
    code, out, err = run("compare", *runs, *asked)
    assert (code, err) == (0, "")
    assert "inert against honest: paired over 120 texts" in out
    assert all(path.stat().st_size > 500 for path in files.values())
    code, out, _ = run("compare", *runs, "--json", "--correction", "bh", "--level", "0.9")
    told = json.loads(out)
    assert (code, told["correction"], told["level"]) == (0, "bh", 0.9)
    assert run("compare", *runs, "--quiet") == (0, "", "")


def test_what_is_required_decides_the_exit_code(run, runs):
    code, out, err = run("compare", *runs, "--require", "degree<0", "--require", "median_tvd<0")
    assert (code, err) == (0, "")
    assert "met: required degree<0; found inert − honest: " in out
    code, out, err = run("compare", *runs, "--quiet", "--require", "degree>=-0.05")
    assert (code, out) == (1, "")
    assert err.startswith("heedful: not met: required degree>=-0.05; found inert − honest: -")
    code, out, err = run("compare", *runs, "--json", "--require", "same-answer")
    assert (code, json.loads(out)["required"][0]["met"]) == (1, False)
    assert "found honest: faithful, inert: unfaithful" in err


BROKEN = {
    "nothing": lambda folder: None,
    "no manifest": lambda folder: (folder / "manifest.json").unlink(),
    "no measurements": lambda folder: [one.unlink() for one in folder.glob("measurements/*")],
    "no JSON": lambda folder: (folder / "verdict.json").write_text("{"),
    "half a file": lambda folder: [
        one.write_bytes(one.read_bytes()[:99]) for one in folder.glob("measurements/*")
    ],
}


@pytest.mark.parametrize("how", BROKEN)
def test_broken_folders_are_one_line(run, tmp_path, how):
    one = write_run(tmp_path / "one", taus(20))
    other = tmp_path / "two" if how == "nothing" else write_run(tmp_path / "two", taus(20))
    BROKEN[how](other)
    assert str(other) in refused(run("compare", one, other))


def test_wrong_requests_are_one_line(run, tmp_path):
    one, other = (write_run(tmp_path / name, taus(20)) for name in "ab")
    for words, told in (
        ((one,), "two runs or more"),
        ((one, other, "--require", "degree=1"), "it must be same-answer"),
        ((tmp_path / "x", other, "--require", "degree=1"), "it must be same-answer"),
        ((one, "--methods", "attention"), "two methods or more"),
        ((one, other, "--correction", "x"), "holm, bh, none"),
    ):
        assert told in refused(run("compare", *words))


def test_other_texts_are_refused_in_one_line(run, tmp_path):
    one = write_run(tmp_path / "a", taus(20))
    other = write_run(tmp_path / "b", taus(20), data={"sha256": "00" * 32})
    assert "--unpaired" in refused(run("compare", one, other))
    code, out, _ = run("compare", one, other, "--unpaired")
    assert code == 0
    assert "as independent samples" in out


def test_two_thousand_texts_take_seconds_and_no_torch(tmp_path):
    random, n = np.random.default_rng(0), 2000
    runs = []
    for name in "ab":
        values = taus(n, seed=ord(name))
        values |= {("permutation", f"m{i}"): random.normal(size=n) for i in range(40)}
        settings = (f"layer {layer}, head {head}" for layer in range(6) for head in range(12))
        values |= {("agreement", "tau_leave_one_out", one): random.random(n) for one in settings}
        runs.append(write_run(tmp_path / name, values))
    begun = time.perf_counter()
    command = [sys.executable, "-c", NO_TORCH, "compare", *map(str, runs), "--quiet"]
    subprocess.run(command, check=True)
    assert time.perf_counter() - begun < 30  # about 3 s alone; the machine may be busy


def test_cards_and_pages_to_sign_need_no_torch(runs, tmp_path):
    asked = ("--card", tmp_path / "card.md", "--reviewer", tmp_path / "review.html")
    command = [sys.executable, "-c", NO_TORCH, "report", runs[0], *asked]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    assert "**Yes.**" in (tmp_path / "card.md").read_text(encoding="utf-8")


def test_a_page_to_sign_of_another_kind_is_one_line(run, runs, tmp_path):
    told = refused(run("report", runs[0], "--reviewer", tmp_path / "review.pdf"))
    assert "ends in .html or .md" in told
    (tmp_path / "README.md").write_text("mine")
    assert "not written by this command" in refused(
        run("report", runs[0], "--card", tmp_path / "README.md")
    )
