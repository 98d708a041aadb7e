"""A sample of `make fuzz` and `make kills`: an answer or one clear line, and nothing is lost."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


def last_line(*words):
    """What the runner says at its end; a process of its own, since it forks."""
    paths = [str(TESTS.parent / "src"), str(TESTS), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", *map(str, words)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout[-20_000:], done.stderr[-2000:])
    assert done.returncode == 0
    return done.stdout.splitlines()[-1]


SAMPLE = {"data": 300, "plans": 100, "models": 40, "runs": 40}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", SAMPLE)
def test_an_answer_or_one_clear_line(kind):
    words = (f"--{kind}", SAMPLE[kind], "--seed", 1, "--workers", 1)
    assert last_line("attacks", *words) == f"{SAMPLE[kind]} passed, 0 failed"


@pytest.mark.timeout(1800)
def test_killed_commands_end_as_if_nothing_had_happened():
    assert last_line("attacks.kills", "--count", 20, "--seed", 1).endswith(" passed, 0 failed")
