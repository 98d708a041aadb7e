"""When a training ends: at its last epoch, on a plateau, or where nothing better can come."""

import pytest
import torch

from heedful.training.loop.checkpoint import State
from heedful.training.loop.epochs import Until


def state(scores, accuracies):
    model = torch.nn.Linear(1, 1)
    return State(model, torch.optim.SGD(model.parameters()), scores, accuracies)


@pytest.mark.parametrize(
    ("until", "scores", "accuracies", "ends"),
    [
        (Until(3), [0.5, 0.6], [0.5, 0.5], False),
        (Until(3), [0.5, 0.6, 0.7], [0.5, 0.5, 0.5], True),
        (Until(9, 2), [0.5, 0.6, 0.6], [0.5, 0.5, 0.5], False),
        (Until(9, 2), [0.6, 0.5, 0.5], [0.5, 0.5, 0.5], True),
        (Until(9, 2, ceiling=1.0), [0.5, 1.0], [0.5, 1.0], True),
        (Until(9, 2, ceiling=1.0), [0.5, 1.0], [0.5, 0.9], False),  # accuracy may still rise
        (Until(9, 2), [0.5, 1.0], [0.5, 1.0], False),  # of this score more may be had
        (Until(9, ceiling=1.0), [0.5, 1.0], [0.5, 1.0], False),  # all epochs were asked for
    ],
)
def test_when_training_ends(until, scores, accuracies, ends):
    assert until.reached(state(scores, accuracies)) == ends
