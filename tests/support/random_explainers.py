"""Explainers with random weights, as tests need them."""

from pathlib import Path

import torch

from heedful.core.values import Example
from heedful.models.diffmask import Explainer, GateNetwork, model_identity, save_explainer
from heedful.models.internals.hidden_states import read_hidden_states

PROBE = Example(0, "w1 w2 fine film", 0)


def write_explainer(subject, folder: Path, *, seed: int = 0) -> Explainer:
    """Gates drawn for a subject, some open and some closed, in a folder."""
    batch = subject.batch([subject.encode(PROBE)])
    embedded = subject.embed(batch)
    _, states = read_hidden_states(subject, batch, embedded)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        gates = GateNetwork([one.shape[-1] for one in states], torch.randn(embedded.shape[-1]))
        for probe in gates.probes:
            probe[-1].bias.data.fill_(-0.5)
    made = Explainer(gates, model_identity(subject), subject.family, {"made": "by a test"})
    save_explainer(made, folder)
    return made
