"""What is attacked: each campaign with what its cases share, made once before the first of them."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import pyarrow  # noqa: F401 - what cases need is imported once, before they are forked
import torch

from attacks import data_files, plans
from attacks.sandbox import Campaign

torch.set_num_threads(1)
CHUNK = 200  # cases of data that one process runs


def campaigns(asked: argparse.Namespace, scratch: Path) -> Iterator[tuple[Campaign, int]]:
    """The campaigns that were asked for, and how many cases of each."""
    common = {"seed": asked.seed, "scratch": scratch, "seconds": asked.seconds}
    if asked.data:
        yield Campaign("data", data_files.draw_data, chunk=CHUNK, **common), asked.data
    if asked.plans:
        yield Campaign("plans", plans.draw_plan, chunk=CHUNK, **common), asked.plans
