"""Settings every test shares."""

import os
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from jaxtyping import config as jaxtyping_config

from heedful.cli.main import main

os.environ["HF_HUB_OFFLINE"] = "1"  # read when its library is imported
os.environ["OMP_NUM_THREADS"] = "1"  # for the processes tests start
torch.set_num_threads(1)  # two test workers on two cores: more threads would only fight
settings.register_profile("house", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("house")
SLOW = [
    line
    for line in (Path(__file__).parent / "slow.txt").read_text().splitlines()
    if not line.startswith("#")
]


def pytest_collection_modifyitems(config, items):
    """Mark the tests that tests/slow.txt names; a name that is nobody's must go from there."""
    found = set()
    for item in items:
        begins = [one for one in SLOW if item.nodeid.startswith(one)]
        found.update(begins)
        if begins:
            item.add_marker("slow")
    gone = sorted(set(SLOW) - found)
    if gone and config.args_source is config.ArgsSource.TESTPATHS:
        raise pytest.UsageError(f"tests/slow.txt names {gone[0]}, which does not exist.")


@pytest.fixture
def as_in_use():
    """Types unchecked, as in use: what is refused here, our own messages refuse."""
    before = jaxtyping_config.jaxtyping_disable
    jaxtyping_config.update("jaxtyping_disable", True)
    yield
    jaxtyping_config.update("jaxtyping_disable", before)


@pytest.fixture
def run(monkeypatch, capfd):
    """Call the command in this process; gives (exit code, stdout, stderr)."""

    def call(*words):
        capfd.readouterr()  # what was told before
        monkeypatch.setattr(sys, "argv", ["heedful", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        assert "Traceback" not in out + err
        return ended.value.code, out, err

    return call
