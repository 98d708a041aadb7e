"""Audits killed at any moment: the same command again ends in the same bytes."""

import json
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from heedful.models.recurrent.model_folder import save_model
from support import subjects

PLAN = "instances_per_job = 4\nresamples = 200\n[settings.adversarial]\nsteps = 20\n"
FOLDERS = (".", "measurements", "texts")


@dataclass(frozen=True)
class Setup:
    """What is audited, and how long an undisturbed audit takes to begin and to end."""

    words: list[str]
    whole: Path
    begins: float
    ends: float

    def start(self, out: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*self.words, "--out", str(out)], stderr=subprocess.PIPE)

    def finish(self, out: Path) -> None:
        subprocess.run([*self.words, "--out", str(out)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def setup(tmp_path_factory) -> Setup:
    folder = tmp_path_factory.mktemp("crash")
    save_model(subjects.subject(), folder / "model")
    draw = np.random.default_rng(7)
    texts = [" ".join(draw.choice(subjects.WORDS, draw.integers(1, 12))) for _ in range(60)]
    lines = [json.dumps({"text": one, "label": i % 2}) for i, one in enumerate(texts)]
    (folder / "rows.jsonl").write_text("\n".join(lines))
    (folder / "plan.toml").write_text(PLAN)
    model, rows, plan = (str(folder / name) for name in ("model", "rows.jsonl", "plan.toml"))
    words = [sys.executable, "-m", "heedful", "audit", model, rows, "--plan", plan, "--quiet"]
    setup, began = Setup(words, folder / "whole", 0.0, 0.0), time.monotonic()
    with setup.start(setup.whole) as one:
        wait_for(one, lambda: (setup.whole / "plan.toml").exists())
        begins = time.monotonic() - began
        one.wait()
    assert one.returncode == 0
    return Setup(words, setup.whole, begins, time.monotonic() - began)


def wait_for(process, happens) -> None:
    while process.poll() is None and not happens():
        time.sleep(0.0002)


def kill(process, happens, *, later=0.0) -> bool:
    """Kill the process when something happens; whether it was still running."""
    with process:
        wait_for(process, happens)
        time.sleep(later)
        process.send_signal(signal.SIGKILL)
        process.stderr.close()
    return process.returncode == -signal.SIGKILL


def after(seconds):
    moment = time.monotonic() + seconds
    return lambda: time.monotonic() >= moment


def appears(out, pattern, *, beyond=()):
    """Something new of that pattern lies in one of the run's folders."""
    return lambda: any(set((out / one).glob(pattern)) - set(beyond) for one in FOLDERS)


def drafts(out):
    return [one for folder in FOLDERS for one in (out / folder).glob(".*.draft")]


def rows(out, kind):
    table = pa.concat_tables(pq.read_table(one) for one in sorted((out / kind).iterdir()))
    return table.replace_schema_metadata(None).to_pylist()


def told(out):
    """The manifest, without what a clock says, also in the files it has digests of."""
    return json.loads((out / "manifest.json").read_text()) | {"seconds": None, "files": None}


def assert_same(out, whole):
    assert (out / "verdict.json").read_bytes() == (whole / "verdict.json").read_bytes()
    for kind in FOLDERS[1:]:
        names = [sorted(one.name for one in (run / kind).iterdir()) for run in (out, whole)]
        assert names[0] == names[1]
        assert sorted(map(repr, rows(out, kind))) == sorted(map(repr, rows(whole, kind)))
    assert told(out) == told(whole)
    assert not drafts(out)


def test_three_kills_and_the_same_bytes(setup, tmp_path):
    out, draw = tmp_path / "run", random.Random(1)
    jobs = draw.randint(3, 8)  # counted in work, not seconds: test machines are slow and fast
    moments = [
        appears(out, ".*.draft"),
        appears(out, "0*.parquet"),
        lambda: len(list(out.glob("measurements/0*.parquet"))) >= jobs,
    ]
    for moment in moments:
        assert kill(setup.start(out), moment, later=draw.uniform(0, 0.1) * (moment is moments[-1]))
    assert not (out / "verdict.json").exists()
    setup.finish(out)
    assert_same(out, setup.whole)


@pytest.mark.study
@pytest.mark.timeout(3600)
def test_fifty_kills_and_the_same_bytes(setup, tmp_path):
    draw, kills, halves, runs = random.Random(50), 0, 0, 0
    while kills < 50:
        out, runs = tmp_path / str(runs), runs + 1
        for _ in range(draw.randint(1, 6)):  # so often is this run killed, unless it ends before
            known = list(out.rglob("*"))
            moment = draw.choice(
                [
                    after(draw.uniform(setup.begins, setup.ends)),
                    after(draw.uniform(setup.begins, setup.ends)),
                    appears(out, ".*.draft", beyond=known),
                    appears(out, "*.parquet", beyond=known),
                    appears(out, "*.json", beyond=known),
                ]
            )
            if not kill(setup.start(out), moment):
                break
            kills, halves = kills + 1, halves + bool(drafts(out))
        setup.finish(out)
        assert_same(out, setup.whole)
    print(f"{kills} kills in {runs} runs, {halves} of them in the middle of writing a file")
