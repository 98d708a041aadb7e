"""When the checks that retrain answer what: estimates made up, rules as the docs have them."""

import pytest

from heedful.checks import checks
from heedful.checks.spec import Evidence
from heedful.core.records import CheckResult, Estimate, EstimateRow, MissingMeasure
from heedful.numerics.stats.bootstrap import Place
from heedful.pipeline.plan.plan import Plan
from heedful.pipeline.verdict.judge import judge
from support.check_powers import trusted

NAN = float("nan")


def at(value, half=0.005):
    return Estimate(value, value - half, value + half, 100)


def judged(results, drift=None):
    settings = Plan("m", "d", checks=tuple(results)).settings
    places = {"seeds": drift} if drift else {}
    return judge(Evidence(results, settings, places), trusted())


def verdict(check, *, drift=None, missing=None, by=(), **estimates):
    reasons = tuple(MissingMeasure(name, why) for name, why in (missing or {}).items())
    return judged({check: CheckResult("undecided", "", estimates, by, missing=reasons)}, drift)


def rows(measure, **estimates):
    return tuple(EstimateRow(measure, one, method=name) for name, one in estimates.items())


VOTES = {"supported": "supports", "refuted": "refutes", "undecided": "undecided"}


def necessity(gain, p, swap=0.2, half=0.005):
    return verdict(
        "necessity",
        score_trained=at(0.8),
        score_uniform=at(0.8 - gain),
        score_base=at(0.8),
        gain=at(gain, half),
        p_not_worse=Estimate(p, NAN, NAN, 100),
        p_equivalent=Estimate(p, NAN, NAN, 100),
        uniform_swap_tvd=at(swap),
    )


@pytest.mark.parametrize(
    ("gain", "p", "half", "answer"),
    [
        (0.05, 1.0, 0.01, "supported"),  # worse by more than the margin
        (0.0, 0.001, 0.005, "refuted"),  # not worse by the margin: shown
        (-0.05, 0.001, 0.01, "refuted"),  # better without
        (0.0, 0.3, 0.05, "undecided"),  # no difference to be seen is none shown
        (0.012, 0.7, 0.005, "undecided"),  # above zero, perhaps less than the margin
    ],
)
def test_needed_is_shown_or_left_open(gain, p, half, answer):
    found = necessity(gain, p, half=half)
    assert found.claims["needed"].answer == answer
    assert found.checks["necessity"].answer == VOTES[answer]
    if gain == 0.012:
        assert "Learned attention helps" in found.claims["needed"].why


def test_the_swap_is_shown_and_decides_nothing():
    found = necessity(0.0, 0.001, swap=0.2)
    assert found.claims["used"].answer == "not tested"
    assert found.claims["needed"].answer == "refuted"


@pytest.mark.parametrize(
    ("place", "answer"),
    [(0.2, "supported"), (0.9, "refuted"), (0.5, "undecided"), (1.3, "refuted")],
)
def test_seeds_by_the_way_from_the_same_to_shuffled(place, answer):
    drift = Place(at(place, 0.05), at(0.5))
    assert verdict("seeds", drift=drift, jsd_seeds=at(0.1)).claims["robust"].answer == answer


def test_flat_attention_leaves_seeds_open():
    drift = Place(at(0.9), Estimate(0.004, 0.003, 0.005, 100))
    found = verdict("seeds", drift=drift, jsd_seeds=at(0.0))
    assert found.claims["robust"].answer == "undecided"
    assert "flat" in found.claims["robust"].why


@pytest.mark.parametrize(
    ("after", "lost", "worth", "answer"),
    [
        (0.01, 0.0, 0.3, "refuted"),  # hidden at no cost
        (0.01, 0.1, 0.3, "supported"),  # hidden at a cost
        (0.45, 0.0, 0.3, "supported"),  # not hidden
        (0.2, 0.0, 0.3, "undecided"),  # half hidden
        (0.01, 0.02, 0.3, "undecided"),  # the cost straddles the margin
        (0.01, 0.0, 0.0, "undecided"),  # the words were not decisive
    ],
)
def test_deception_by_mass_score_and_control(after, lost, worth, answer):
    found = verdict(
        "deception",
        mass_before=at(0.6),
        mass_after=at(after),
        score_before=at(0.8),
        score_after=at(0.8 - lost),
        score_without_words=at(0.8 - worth),
        score_lost=at(lost),
        words_worth=at(worth),
        hidden_share=at(0.1),
    )
    assert found.claims["robust"].answer == answer


def test_models_that_learned_nothing_are_not_comparable():
    found = verdict(
        "necessity",
        score_trained=at(0.5),
        score_uniform=at(0.5),
        score_base=at(0.8),
        gain=at(0.0),
        p_not_worse=Estimate(0.001, NAN, NAN, 100),
        uniform_swap_tvd=at(0.2),
    )
    assert found.claims["needed"].answer == "undecided"
    assert "not comparable" in found.claims["needed"].why


def test_what_attention_never_showed_cannot_be_hidden():
    found = verdict(
        "deception",
        mass_before=at(0.01),
        mass_after=at(0.009),
        score_lost=at(0.0),
        words_worth=at(0.4),
        hidden_share=at(0.06),
    )
    assert found.claims["robust"].answer == "undecided"
    assert "from the start" in found.claims["robust"].why


def test_one_text_leaves_seeds_open():
    drift = Place(Estimate(0.2, NAN, NAN, 1), Estimate(0.5, NAN, NAN, 1))
    assert verdict("seeds", drift=drift, jsd_seeds=at(0.1)).claims["robust"].answer == "undecided"


@pytest.mark.parametrize("check", ["necessity", "seeds", "guide", "adversary", "deception"])
def test_what_could_not_be_made_is_undecided_and_says_why(check):
    found = verdict(check, missing={"a": "the data has no training split"})
    assert found.checks[check].answer == "undecided"
    assert found.checks[check].why == "The data has no training split."
    claim = found.claims[checks.spec(check).claim]
    assert claim.answer == "undecided"
    assert "training split" in claim.why


def test_one_against_is_enough_against_robust():
    results = {
        "seeds": CheckResult("undecided", "", {"jsd_seeds": at(0.1)}),
        "deception": CheckResult(
            "undecided",
            "",
            {
                **{"mass_before": at(0.6), "mass_after": at(0.01), "score_lost": at(0.0)},
                **{"words_worth": at(0.3), "hidden_share": at(0.1)},
            },
        ),
        "permutation": CheckResult("undecided", "", {"median_tvd": at(0.01), "leverage": at(0.3)}),
        "necessity": CheckResult("undecided", "", {"gain": at(0.1), "uniform_swap_tvd": at(0.2)}),
    }
    found = judged(results, Place(at(0.1), at(0.5)))
    assert found.checks["seeds"].answer == "supports"
    assert found.claims["robust"].answer == "refuted"
    assert found.checks["permutation"].answer == "no vote"  # on used, which influence decides
    assert found.claims["used"].answer == "undecided"
    assert found.claims["needed"].answer == "supported"


def test_reports_without_a_vote_decide_nothing():
    found = verdict("adversary", **{one.name: at(0.3) for one in checks.spec("adversary").measures})
    assert found.checks["adversary"].answer == "no vote"
    assert found.claims["exclusive"].answer == "undecided"
    assert found.claims["exclusive"].why.startswith("No check that ran has a vote")
    led = verdict("guide", **{one.name: at(0.3) for one in checks.spec("guide").measures})
    assert led.checks["guide"].answer == "no vote"
    assert led.answer == "undecided"


def test_training_without_words_has_no_vote_and_says_what_it_cannot_show():
    found = verdict(
        "roar",
        score_whole=at(0.9),
        by=(
            *rows("score", attention=at(0.6), leave_one_out=at(0.7), random=at(0.8)),
            *rows("beyond_random", attention=at(0.2), leave_one_out=at(0.1)),
        ),
    )
    assert found.claims["ranks"].answer == "undecided"
    assert found.checks["roar"].answer == "no vote"
    why = found.checks["roar"].why
    assert "without 10% and 30% and 50% of the words, models have accuracy 0.800" in why
    assert "(whole texts: 0.900)" in why
    assert "they lose 0.200 [0.195, 0.205] more" in why
    assert "leave_one_out costs most, 0.100 [0.095, 0.105]" in why
    assert "infer from what is missing" in why
    assert verdict("roar", missing={"score_whole": "no texts"}).checks["roar"].why == "No texts."


@pytest.mark.parametrize(
    ("alike", "words"), [(0.95, "whole texts. "), (0.7, "too few for a good copy. ")]
)
def test_a_copy_that_knows_holes_has_no_vote_and_says_how_alike_it_is(alike, words):
    found = verdict(
        "off_manifold",
        same_prediction=at(alike),
        by=(
            *rows("beyond_random", attention=at(0.2), leave_one_out=at(0.3)),
            *rows("p_beyond_random", attention=Estimate(0.01, NAN, NAN, 100)),
        ),
    )
    assert found.claims["ranks"].answer == "undecided"
    why = found.checks["off_manifold"].why
    assert f"model on {alike:.1%} of" in why
    assert words in why
    assert "takes 0.200 [0.195, 0.205] more of the copy's probability" in why
    assert "beyond chance (p 0.01, corrected" in why
    assert "leave_one_out has the largest effect, 0.300" in why
    nothing = verdict("off_manifold", same_prediction=at(1.0)).checks["off_manifold"].why
    assert nothing == "No text has two words, so there is nothing to rank."
    refused = verdict("off_manifold", missing={"copy_tvd": "no texts"}).checks["off_manifold"]
    assert (refused.answer, refused.why) == ("undecided", "No texts.")
