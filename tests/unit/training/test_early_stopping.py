"""When a training ends: at its last epoch, on a plateau, or where nothing better can come."""

import pytest
import torch

from heedful.training.loop.epochs import EarlyStopping, TrainingState


def state(scores, accuracies):
    model = torch.nn.Linear(1, 1)
    return TrainingState(model, torch.optim.SGD(model.parameters()), scores, accuracies)


@pytest.mark.parametrize(
    ("stopping", "scores", "accuracies", "ends"),
    [
        (EarlyStopping(3), [0.5, 0.6], [0.5, 0.5], False),
        (EarlyStopping(3), [0.5, 0.6, 0.7], [0.5, 0.5, 0.5], True),
        (EarlyStopping(9, 2), [0.5, 0.6, 0.6], [0.5, 0.5, 0.5], False),
        (EarlyStopping(9, 2), [0.6, 0.5, 0.5], [0.5, 0.5, 0.5], True),
        (EarlyStopping(9, 2, ceiling=1.0), [0.5, 1.0], [0.5, 1.0], True),
        (
            EarlyStopping(9, 2, ceiling=1.0),
            [0.5, 1.0],
            [0.5, 0.9],
            False,
        ),  # accuracy may still rise
        (EarlyStopping(9, 2), [0.5, 1.0], [0.5, 1.0], False),  # of this score more may be had
        (EarlyStopping(9, ceiling=1.0), [0.5, 1.0], [0.5, 1.0], False),  # all epochs were asked for
    ],
)
def test_when_training_ends(stopping, scores, accuracies, ends):
    assert stopping.should_stop(state(scores, accuracies)) == ends
