"""Settings every test shares."""

import os

import torch
from hypothesis import settings

os.environ["OMP_NUM_THREADS"] = "1"  # for the processes tests start
torch.set_num_threads(1)  # two test workers on two cores: more threads would only fight
settings.register_profile("house", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("house")
