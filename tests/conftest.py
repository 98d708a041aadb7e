"""Settings every test shares."""

import os
import sys

import pytest
import torch
from hypothesis import settings

from heedful.cli.main import main

os.environ["HF_HUB_OFFLINE"] = "1"  # read when its library is imported
os.environ["OMP_NUM_THREADS"] = "1"  # for the processes tests start
torch.set_num_threads(1)  # two test workers on two cores: more threads would only fight
settings.register_profile("house", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("house")


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
