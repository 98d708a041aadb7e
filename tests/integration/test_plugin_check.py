"""A check that another package brings is listed, run, shown, and compared like a built-in one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parents[1] / "fixtures"
PLUGIN, KEPT = FIXTURES / "plugin", FIXTURES / "e24f016"
QUESTION = "How evenly does attention spread over the words?"
LABEL = "entropy of attention, share of the largest"


def run(*arguments, plugin=True, cwd):
    paths = [str(PLUGIN)] if plugin else []
    paths += [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    done = subprocess.run(
        [sys.executable, "-m", "heedful", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "120"},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs with the plug-in, of other seeds, and what the first printed."""
    folder = tmp_path_factory.mktemp("plugin")
    common = (str(KEPT / "recurrent"), str(KEPT / "data.jsonl"), "--checks", "permutation,spread")
    card = run("audit", *common, "--out", "first", cwd=folder)
    run("audit", *common, "--out", "second", "--seed", "1", cwd=folder)
    return folder, card


def test_the_plug_in_is_short():
    lines = (PLUGIN / "heedful_spread.py").read_text().splitlines()
    assert len(lines) < 60


def test_it_is_listed_with_its_question(tmp_path):
    listed = run("list", "checks", cwd=tmp_path)
    assert "spread" in listed
    assert QUESTION in listed


def test_its_records_are_keyed_and_described(runs):
    folder, _ = runs
    verdict = json.loads((folder / "first/verdict.json").read_text())
    assert verdict["schema"] == 2
    assert set(verdict["checks"]["spread"]["estimates"]) == {"evenness", "largest"}
    manifest = json.loads((folder / "first/manifest.json").read_text())
    assert manifest["checks"]["spread"]["question"] == QUESTION


def test_the_card_shows_its_measures_and_sentence(runs):
    folder, _ = runs
    card = run("report", "first", "--details", cwd=folder)
    assert "spread" in card
    assert "evenness" in card


def test_the_page_has_its_section_labels_and_figure(runs):
    folder, _ = runs
    page = (folder / "first/report.html").read_text()
    assert 'id="check-spread"' in page
    assert QUESTION in page
    assert LABEL in page
    assert 'id="figure-spread"' in page


def test_a_report_without_the_package_keeps_question_and_labels(runs):
    folder, _ = runs
    run("report", "first", "--html", "bare.html", plugin=False, cwd=folder)
    page = (folder / "bare.html").read_text()
    assert QUESTION in page
    assert LABEL in page


def test_it_is_compared(runs):
    folder, _ = runs
    compared = json.loads(run("compare", "first", "second", "--json", cwd=folder))
    rows = [row for row in compared["pairs"][0]["differences"] if row["check"] == "spread"]
    assert {row["measure"] for row in rows} == {"evenness", "largest"}
