"""Settings every test shares."""

import sys
from pathlib import Path

import torch
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))  # tests/helpers.py

torch.set_num_threads(1)  # two test workers on two cores: more threads would only fight
settings.register_profile("house", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("house")
