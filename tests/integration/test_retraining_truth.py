"""Corpora whose truth is known: where attention is needed, where not, and where it can hide."""

from dataclasses import dataclass
from functools import cache

import pytest

import heedful
from heedful.training.fit import fit
from heedful.training.recipe import Recipe

YES, NO = "supported", "refuted"
SMALL = {"hidden": 16, "embedding": 16, "rate": 0.01}


@cache
def trained(corpus, encoder, epochs, **sizes):
    train, dev = (heedful.read(corpus, split=one) for one in ("train", "dev"))
    return fit(train, dev, Recipe(encoder=encoder, epochs=epochs, **sizes))


@dataclass(frozen=True)
class Truth:
    corpus: str
    encoder: str
    epochs: int
    used: str
    needed: str


@pytest.mark.parametrize(
    "truth",
    [
        # the highest rank decides: a sum of word weights of ordinary size is right on 2 in 3
        pytest.param(Truth("synthetic:priority", "average", 8, YES, YES), marks=pytest.mark.study),
        # every vote counts alike: a mean is all that it takes
        pytest.param(Truth("synthetic:votes", "average", 4, YES, NO), marks=pytest.mark.study),
        # one word decides; attention settles on it, though the last state knows it as well
        pytest.param(Truth("synthetic:needle", "bilstm", 3, YES, NO), marks=pytest.mark.study),
    ],
    ids=lambda one: one.corpus,
)
def test_used_and_needed_are_two_claims(truth):
    subject = trained(truth.corpus, truth.encoder, truth.epochs, **SMALL)
    verdict = heedful.audit(
        subject,
        truth.corpus,
        checks=["necessity", "permutation"],
        settings={"necessity": {"seeds": 2}, "permutation": {"draws": 20}},
        retraining={"workers": 1},
    ).verdict
    assert verdict.claims["used"].answer == truth.used
    assert verdict.claims["needed"].answer == truth.needed
    assert "Imposing uniform attention" in verdict.claims["used"].why
    gain = verdict.checks["necessity"].estimates["gain"]
    assert (gain.value > 0.1) == (truth.needed == YES)


@pytest.mark.study
def test_attention_that_was_taught_to_hide_the_needle(tmp_path):
    """The score stays, the mass goes, and an audit of the deceiver says that it does not rank."""
    subject = trained("synthetic:needle", "bilstm", 2, hidden=64, embedding=100)
    run = heedful.audit(
        subject,
        "synthetic:needle",
        checks=["deception"],
        settings={"deception": {"weights": [1.0]}},
        retraining={"workers": 1},
        out=tmp_path / "run",
    )
    found = run.verdict.checks["deception"].estimates
    assert found["mass_after"].high < 0.01 < found["mass_before"].low
    assert found["score_after"].value >= found["score_before"].value - 0.01
    assert found["score_without_words"].high < 0.6
    assert run.verdict.claims["robust"].answer == NO
    (deceiver,) = (one for one in run.manifest["retrained"] if "deceiving" in one["name"])
    model = heedful.load(tmp_path / "run" / "retrained" / deceiver["key"])
    verdict = heedful.audit(model, "synthetic:needle", checks=["agreement"]).verdict
    assert verdict.claims["ranks"].answer == NO
    assert verdict.checks["agreement"].estimates["top1_leave_one_out"].high < 0.1


@pytest.mark.study
def test_words_that_decide_nothing_leave_deception_undecided():
    """Fillers are hidden easily, which shows nothing: a model without them does as well."""
    subject = trained("synthetic:needle", "bilstm", 3, **SMALL)
    verdict = heedful.audit(
        subject,
        "synthetic:needle",
        checks=["deception"],
        settings={"deception": {"words": ["ticket", "night", "hill", "yellow"], "epochs": 3}},
        retraining={"workers": 1},
    ).verdict
    assert verdict.checks["deception"].answer == "undecided"
    assert "not decisive" in verdict.checks["deception"].why


@pytest.mark.study
def test_where_each_word_says_its_own_attention_cannot_be_taught_to_hide():
    """The deciding word stands against others: a model that sees words alone must weigh it most."""
    subject = trained("synthetic:priority", "average", 8, **SMALL)
    verdict = heedful.audit(
        subject,
        "synthetic:priority",
        checks=["deception"],
        settings={"deception": {"weights": [1.0], "epochs": 10}},
        retraining={"workers": 1},
    ).verdict
    assert verdict.checks["deception"].answer == "supports"


@pytest.mark.study
def test_a_model_trained_without_the_needle_cannot_find_it():
    """A tenth of the words holds the needle, which attention names; drawn at random it does not."""
    subject = trained("synthetic:needle", "bilstm", 3, **SMALL)
    verdict = heedful.audit(
        subject,
        "synthetic:needle",
        checks=["roar"],
        settings={
            "roar": {
                "methods": ["attention"],
                "shares": [0.1],
                "seeds": 2,
                "epochs": 8,
                "patience": 3,
            }
        },
        retraining={"workers": 1},
    ).verdict
    found = verdict.checks["roar"]
    assert found.of("score_whole").low > 0.98
    assert found.of("score", method="random").low > 0.85
    assert found.of("score", method="attention").high < 0.6
    assert found.of("beyond_random", method="attention").low > 0.3
    assert verdict.checks["roar"].answer == "no vote"


@pytest.mark.study
def test_a_copy_that_knows_holes_sees_what_the_model_hides():
    """This model says "negative" of whatever it does not know, so that erasing a negative needle
    takes nothing from it: deletion then names other words, and erasing those seems to do as well.
    The copy has learnt that without a needle there is nothing to know."""
    subject = trained("synthetic:needle", "bilstm", 3, **SMALL)
    settings = {"methods": ["leave_one_out"], "epochs": 6, "patience": 3, "steps": 2}
    run = heedful.audit(
        subject,
        "synthetic:needle",
        checks=["off_manifold"],
        limit=60,
        settings={"off_manifold": settings},
        retraining={"workers": 1, "limit": 1000},
    )
    found = run.verdict.checks["off_manifold"]
    assert found.of("same_prediction").value > 0.97
    assert found.of("copy_tvd").high < 0.05
    beyond = found.by_method("beyond_random")
    assert beyond["attention"].low > 0.3
    assert found.of("p_beyond_random", method="attention").value < 0.05
    assert found.of("sufficiency", method="attention").high < 0.05
    assert beyond["leave_one_out"].high < beyond["attention"].low
    model = found.by_method("beyond_random", setting="masking")  # of the model: no difference
    assert model["attention"].value == pytest.approx(model["leave_one_out"].value, abs=0.02)
