"""Doses of the truth: they are what they say, and a rule that does not follow them falls short."""

import numpy as np
import pytest
from benchmarks.titration import DECOY, DOSES, REVERSED, dose_name, failures, standardise


def rows(orders=(0.9, 0.8, 0.6, 0.3, 0.0), answers=()):
    names = [*map(dose_name, DOSES), REVERSED, DECOY]
    said = ["supported", "supported", "supported", "undecided", "refuted", "refuted", "refuted"]
    said = dict(zip(names, said, strict=True)) | dict(answers)
    values = dict(zip(names, (*orders, -0.9, 0.2), strict=True))
    ends = {name: [one, one - 0.04, one + 0.04] for name, one in values.items()}
    return [{"ranking": name, "answer": said[name], "order": ends[name]} for name in names]


def test_places_that_follow_the_doses_hold():
    assert failures(rows()) == []


@pytest.mark.parametrize(
    ("orders", "answers"),
    [
        ((0.9, 0.8, 0.85, 0.3, 0.0), ()),
        ((0.9, 0.89, 0.88, 0.87, 0.86), ()),
        ((0.9, 0.8, 0.6, 0.3, 0.0), ((dose_name(0.0), "undecided"),)),
        ((0.9, 0.8, 0.6, 0.3, 0.0), ((dose_name(1.0), "undecided"),)),
        ((0.9, 0.8, 0.6, 0.3, 0.0), ((REVERSED, "supported"),)),
        ((0.9, 0.8, 0.6, 0.3, 0.0), ((DECOY, "supported"),)),
    ],
)
def test_places_that_do_not_follow_the_doses_fall_short(orders, answers):
    assert len(failures(rows(orders, answers))) == 1


def test_standardised_influence_has_mean_0_and_spread_1():
    found = standardise(np.array([0.1, 0.4, 0.9]))
    assert found.mean() == pytest.approx(0)
    assert found.std() == pytest.approx(1)
    assert (standardise(np.ones(3)) == 0).all()
