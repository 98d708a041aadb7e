"""The truth of trained transformers."""

from dataclasses import replace

import pytest
import torch

from heedful.core.values import Example
from heedful.planted.closed_form.transformer_kinds import make_word_level_subject
from heedful.planted.influence.kind import (
    InfluenceCase,
    InfluenceSetting,
    InfluenceTruth,
    influence_kinds,
)
from heedful.planted.influence.proof import prove
from heedful.planted.influence.trained import trial
from heedful.planted.influence.trained.rule import WORDS, TrainingSets
from heedful.planted.influence.trained.transformers import FAMILY, build_untrained, run_layers

CHEAPEST = "trained-transformers-redundant"
KINDS = [name for name, one in influence_kinds().items() if one.family == FAMILY]


@pytest.fixture(scope="module")
def redundant():
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
    assert {influence_kinds()[name].architecture for name in KINDS} == {"transformer"}


def test_the_truth_of_the_cheapest_kind_is_proved(redundant):
    assert not broken_bounds(redundant)


@pytest.mark.parametrize("kind", [name for name in KINDS if name != CHEAPEST])
def test_the_truth_of_every_kind_is_proved(kind):
    assert not broken_bounds(InfluenceCase(kind, 10, seed=0))


def test_the_proof_fails_if_the_truth_is_denied(redundant, monkeypatch):
    wrong = replace(redundant.about, truth=InfluenceTruth(used=False, ranks=False))
    monkeypatch.setattr(InfluenceCase, "about", wrong)
    assert broken_bounds(redundant) == [
        "pairs of words in order, mean",
        "texts whose top word is of the first tier",
        "effect of other weights, most",
    ]


def test_training_runs_the_network_that_is_audited(redundant):
    subject = redundant.subject
    texts = [one.text for one in redundant.known(6)]
    batch = subject.batch([subject.encode(Example(i, text, -1)) for i, text in enumerate(texts)])
    forward = subject.forward(batch)
    sets = TrainingSets(batch.ids, batch.present, batch.mask, torch.zeros(len(batch)))
    last = run_layers(subject.model, sets)
    torch.testing.assert_close(last.log_odds(), forward.logits[:, 1] - forward.logits[:, 0])
    torch.testing.assert_close(last.rows, forward.rows)


def test_other_rows_in_training_are_those_of_the_decoder():
    setting = InfluenceSetting("trained-transformers-two-layers", 10, seed=1)
    model = build_untrained(setting, layers=2, heads=2).double().eval()
    subject = make_word_level_subject(model, WORDS, special_tokens=True)
    batch = subject.batch([subject.encode(Example(0, "w1 w2 w3 w4", -1))])
    sets = TrainingSets(batch.ids, batch.present, batch.mask, torch.zeros(1))
    last = run_layers(model, sets)
    rows = last.place(batch.mask.double() / batch.mask.sum())
    decoded = subject.decoder(batch, subject.forward(batch))(rows)
    torch.testing.assert_close(last.log_odds(rows), decoded[:, 1] - decoded[:, 0])
