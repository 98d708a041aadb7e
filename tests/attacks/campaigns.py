"""What is attacked: each campaign with what its cases share, made once before the first of them."""

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow  # noqa: F401 - what cases need is imported once, before they are forked
import torch

from attacks import data_files, model_folders, plans, run_folders
from attacks.sandbox import Campaign, run_command

torch.set_num_threads(1)
CHUNK = 200  # cases of data that one process runs


def campaigns(asked: argparse.Namespace, scratch: Path) -> Iterator[tuple[Campaign, int]]:
    """The campaigns that were asked for, and how many cases of each."""
    common = {"seed": asked.seed, "scratch": scratch, "seconds": asked.seconds}
    if asked.data:
        yield Campaign("data", data_files.draw_data, chunk=CHUNK, **common), asked.data
    if asked.plans:
        yield Campaign("plans", plans.draw_plan, chunk=CHUNK, **common), asked.plans
    if asked.models or asked.runs:
        bases = model_folders.Bases.make(scratch / "bases")
        warm_up(bases, scratch)
    if asked.models:
        yield Campaign("models", model_folders.draw_model(bases), **common), asked.models
    if asked.runs:
        runs = run_folders.make_runs(bases, scratch / "sound")
        draw = run_folders.draw_run(runs, verify=has_command("verify"))
        yield Campaign("runs", draw, **common), asked.runs


def has_command(name: str) -> bool:
    """Whether the command line has a command of that name."""
    from heedful.cli.main import app

    return any(one.name == name for one in app.registered_commands)


def warm_up(bases: model_folders.Bases, scratch: Path) -> None:
    """Use every sound folder once: what is imported late is imported, and they are sound.

    Commands leave what they print beside the working folder, which is one of our own from here on.
    """
    (scratch / "warm/work").mkdir(parents=True)
    os.chdir(scratch / "warm/work")
    for model in (bases.bert, bases.gpt2, bases.own):
        answer = run_command("explain", model, model_folders.TEXT, "--methods", "attention")
        if answer.code:
            raise RuntimeError(f"{model} is not sound: {answer.err}")
