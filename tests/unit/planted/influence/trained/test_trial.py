"""Trainings whose truth fails are repeated and counted."""

import pytest

from heedful.core.errors import ConfigError
from heedful.planted.influence.kind import InfluenceSetting, PlantedModel
from heedful.planted.influence.trained import trial
from heedful.planted.influence.trained.recurrent import build_untrained, train_natural
from heedful.planted.influence.trained.rule import draw_rule

SETTING = InfluenceSetting("trained-recurrent-natural", 10, seed=0)


def leave_untrained(setting):
    subject = build_untrained(setting, "average")
    subject.network.double().eval().requires_grad_(False)
    return PlantedModel(subject, draw_rule(setting, "mean").draw)


def train_on_the_second_attempt(setting):
    return train_natural.__wrapped__(setting) if setting.attempt else leave_untrained(setting)


def test_a_training_that_fails_is_repeated_and_counted(monkeypatch):
    monkeypatch.setattr(trial, "TRIAL_TEXTS", 4)
    model = trial.train_until_proved(SETTING, train_on_the_second_attempt)
    assert model.redrawn == 1


def test_attempts_end(monkeypatch):
    monkeypatch.setattr(trial, "TRIAL_TEXTS", 4)
    monkeypatch.setattr(trial, "MAX_ATTEMPTS", 2)
    with pytest.raises(ConfigError, match=r"None of 2 trainings .* smallest largest change"):
        trial.train_until_proved(SETTING, leave_untrained)
