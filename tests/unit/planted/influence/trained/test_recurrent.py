"""The truth of trained attention classifiers."""

from dataclasses import replace

import pytest
import torch

from heedful.planted.influence.kind import (
    InfluenceCase,
    InfluenceSetting,
    InfluenceTruth,
    KnownText,
    influence_kinds,
)
from heedful.planted.influence.proof import prove
from heedful.planted.influence.trained import trial
from heedful.planted.influence.trained.recurrent import FAMILY
from heedful.planted.influence.trained.trial import TrialCase

CHEAPEST = "trained-recurrent-natural"
KINDS = [name for name, one in influence_kinds().items() if one.family == FAMILY]


@pytest.fixture(scope="module")
def natural():
    case = InfluenceCase(CHEAPEST, 10, seed=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial, "TRIAL_TEXTS", 4)  # the proof is tested on more
        assert case.model.redrawn == 0
    return case


def broken_bounds(case):
    return [one.what for one in prove(case, count=8) if not one.holds]


def test_the_family_holds_true_and_false_kinds():
    explains = [influence_kinds()[name].truth for name in KINDS]
    assert len(KINDS) >= 8
    assert {one.used and one.ranks for one in explains} >= {True, False}
    assert all(influence_kinds()[name].trained for name in KINDS)


def test_the_truth_of_the_cheapest_kind_is_proved(natural):
    assert not broken_bounds(natural)


@pytest.mark.parametrize("kind", [name for name in KINDS if name != CHEAPEST])
def test_the_truth_of_every_kind_is_proved(kind):
    assert not broken_bounds(InfluenceCase(kind, 10, seed=0))


def test_the_proof_fails_if_the_truth_is_denied(natural, monkeypatch):
    wrong = replace(natural.about, truth=InfluenceTruth(used=False, ranks=False))
    monkeypatch.setattr(InfluenceCase, "about", wrong)
    assert broken_bounds(natural) == [
        "pairs of words in order, mean",
        "texts whose top word is of the first tier",
        "effect of other weights, most",
    ]


def test_the_proof_fails_if_tiers_are_reversed(natural):
    def reverse(draw, mean):
        known = natural.model.draw(draw, mean)
        return replace(known, tiers=known.tiers[::-1])

    model = replace(natural.model, draw=reverse)
    broken = broken_bounds(TrialCase(CHEAPEST, 10, 0, model))
    assert "sets that order words as their tiers" in broken
    assert "texts whose top word is of the first tier" in broken


def test_the_proof_fails_if_words_that_matter_are_denied(natural):
    def deny(draw, mean):
        known = natural.model.draw(draw, mean)
        return KnownText(known.text, known.tiers[1:])

    broken = broken_bounds(TrialCase(CHEAPEST, 10, 0, replace(natural.model, draw=deny)))
    assert "largest change by a word that never matters" in broken


def test_a_training_repeats_itself_and_leaves_the_global_stream_alone(natural):
    before = torch.get_rng_state()
    train = natural.about.build.__wrapped__
    setting = InfluenceSetting(CHEAPEST, 10, 0, attempt=natural.model.redrawn)
    again = train(setting).subject.network.state_dict()
    for name, weights in natural.subject.network.state_dict().items():
        assert torch.equal(weights, again[name])
    assert torch.equal(before, torch.get_rng_state())


def test_texts_are_distinct_and_have_several_words(natural):
    known = [*natural.known(60), *natural.known(60, length=natural.about.short)]
    assert len({one.text for one in known}) == len(known)
    assert min(len(one.text.split()) for one in known) >= 4
    assert len({row["label"] for row in natural.texts(40)}) == 2
