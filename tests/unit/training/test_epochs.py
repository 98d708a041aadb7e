"""Epochs until a plateau, and after an interruption the same ones."""

import pytest
import torch
from torch import nn

from heedful.core.errors import ConfigError, RunError
from heedful.core.timing import no_progress
from heedful.training.loop.epochs import Checkpoint, EarlyStopping, TrainingState, run_epochs


class Rising:
    """Scores as told; each epoch moves the one weight by one."""

    def __init__(self, scores, stop=None):
        self.scores, self.stop, self.seen = scores, stop, []

    def epoch(self, number, state, progress):
        if number == self.stop:
            raise KeyboardInterrupt
        self.seen.append(number)
        with torch.no_grad():
            state.model.weight += 1.0
        state.record_epoch(self.scores[number], 0.5)


def state():
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    return TrainingState(model, torch.optim.Adam(model.parameters(), fused=True))


def test_it_stops_when_nothing_better_came_for_so_long():
    course, found, stopping = Rising([0.1, 0.5, 0.4, 0.5, 0.3, 0.9]), state(), EarlyStopping(9, 3)
    run_epochs(course.epoch, found, stopping, checkpoint=None, progress=no_progress)
    assert course.seen == [0, 1, 2, 3, 4]  # an equal score is not better
    assert (len(found.scores), found.summary()["best_epoch"]) == (5, 2)
    assert stopping.has_plateaued(found)
    assert float(found.best["weight"]) == 2.0


def test_of_equal_scores_the_more_accurate_is_better():
    found = state()
    for accuracy in (0.6, 0.9, 0.9):
        found.record_epoch(1.0, accuracy)
    assert found.best_epoch == 1
    assert not EarlyStopping(9, 2).has_plateaued(found)
    assert EarlyStopping(9, 1).has_plateaued(found)


def test_it_says_where_it_was_stopped_by_the_limit():
    course, found, stopping = Rising([0.1, 0.2, 0.3]), state(), EarlyStopping(3, 2)
    run_epochs(course.epoch, found, stopping, checkpoint=None, progress=no_progress)
    assert not stopping.has_plateaued(found)


@pytest.mark.parametrize("stop", [0, 1, 3])
def test_after_an_interruption_it_goes_on_to_the_same_end(tmp_path, stop):
    scores, stopping = [0.1, 0.5, 0.4, 0.3, 0.2], EarlyStopping(9, 3)
    whole = state()
    run_epochs(Rising(scores).epoch, whole, stopping, checkpoint=None, progress=no_progress)
    kept = Checkpoint(tmp_path, {"lesson": "x"})
    with pytest.raises(KeyboardInterrupt):
        run_epochs(
            Rising(scores, stop).epoch, state(), stopping, checkpoint=kept, progress=no_progress
        )
    again, course = state(), Rising(scores)
    run_epochs(course.epoch, again, stopping, checkpoint=kept, progress=no_progress)
    assert course.seen == [0, 1, 2, 3, 4][stop:]
    assert again.scores == whole.scores
    assert torch.equal(again.best["weight"], whole.best["weight"])
    assert again.sessions == (2 if stop else 1)


def test_a_finished_training_is_not_run_again(tmp_path):
    scores, stopping, kept = (
        [0.5, 0.4, 0.3],
        EarlyStopping(9, 2),
        Checkpoint(tmp_path, {"lesson": "x"}),
    )
    run_epochs(Rising(scores).epoch, state(), stopping, checkpoint=kept, progress=no_progress)
    course = Rising(scores)
    run_epochs(course.epoch, state(), stopping, checkpoint=kept, progress=no_progress)
    assert course.seen == []


def test_another_trainings_checkpoint_is_refused(tmp_path):
    run_epochs(
        Rising([0.5]).epoch,
        state(),
        EarlyStopping(1),
        checkpoint=Checkpoint(tmp_path, {"a": 1}),
        progress=no_progress,
    )
    with pytest.raises(RunError, match="belongs to another training run"):
        run_epochs(
            Rising([0.5]).epoch,
            state(),
            EarlyStopping(1),
            checkpoint=Checkpoint(tmp_path, {"a": 2}),
            progress=no_progress,
        )


@pytest.mark.parametrize("wrong", [(0, None), (3, 0)])
def test_wrong_numbers_are_said(wrong):
    with pytest.raises(ConfigError, match="at least 1"):
        EarlyStopping(*wrong)
